package sandbox

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"math/rand/v2"
	"testing"
)

func TestSynthetic(t *testing.T) {
	for _, format := range []Format{CSV, NDJSON, JSONArray} {
		t.Run(string(format), func(t *testing.T) {
			const size = 100_003
			content := Synthetic(format, size)
			whole, err := io.ReadAll(content)
			if err != nil || len(whole) != size || content.Size() != size {
				t.Fatalf("%d bytes, %v", len(whole), err)
			}
			for range 500 {
				part := make([]byte, rand.IntN(3000))
				offset := rand.IntN(size - len(part))
				if _, err := content.ReadAt(part, int64(offset)); err != nil || !bytes.Equal(part, whole[offset:offset+len(part)]) {
					t.Fatalf("%d bytes at %d differ from the whole (%v)", len(part), offset, err)
				}
			}
			numbers := rowNumbers(t, format, whole)
			for i, number := range numbers {
				if want := firstNumber(int64(i / rowsPerCycle))[:cycleDigits] + string(rune('0'+i%rowsPerCycle)); number != want {
					t.Fatalf("row %d has the number %s, want %s", i, number, want)
				}
			}
			if len(numbers) < 600 {
				t.Errorf("%d rows in %d bytes", len(numbers), size)
			}
		})
	}
}

func rowNumbers(t *testing.T, format Format, content []byte) []string {
	t.Helper()
	type object struct{ Row string }
	var numbers []string
	switch format {
	case CSV:
		rows, err := csv.NewReader(bytes.NewReader(content)).ReadAll()
		if err != nil || rows[0][0] != "row" {
			t.Fatal(rows[0], err)
		}
		for _, row := range rows[1:] {
			numbers = append(numbers, row[0])
		}
	case NDJSON:
		decoder := json.NewDecoder(bytes.NewReader(content))
		for {
			var o object
			err := decoder.Decode(&o)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			numbers = append(numbers, o.Row)
		}
	case JSONArray:
		var all []object
		if err := json.Unmarshal(content, &all); err != nil {
			t.Fatal(err)
		}
		for _, o := range all {
			numbers = append(numbers, o.Row)
		}
	}
	return numbers
}

func TestSyntheticSizes(t *testing.T) {
	for _, format := range []Format{CSV, NDJSON, JSONArray} {
		for size := range int64(300) {
			if whole, err := io.ReadAll(Synthetic(format, size)); err != nil || int64(len(whole)) != size {
				t.Errorf("%s: %d bytes of %d, %v", format, len(whole), size, err)
			}
		}
	}
}
