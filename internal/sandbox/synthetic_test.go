package sandbox

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestSyntheticCard(t *testing.T) {
	depths := map[int]int{}
	for range 2000 {
		card := fmt.Sprintf("%d%015d", 3+rand.IntN(4), rand.Int64N(1e15))
		var item struct {
			BIN  string
			Data struct {
				Card struct {
					Min string `json:"bin_min"`
					Max string `json:"bin_max"`
				}
			}
		}
		if err := json.Unmarshal(SyntheticCard(card), &item); err != nil {
			t.Fatal(err)
		}
		prefix := SyntheticRange(card)
		depths[len(prefix)]++
		if !strings.HasPrefix(card, prefix) || item.BIN != card[:6] ||
			strings.TrimRight(item.Data.Card.Min, "0") != strings.TrimRight(prefix, "0") ||
			item.Data.Card.Max != prefix+strings.Repeat("9", 19-len(prefix)) || len(item.Data.Card.Min) != 19 {
			t.Fatalf("%s in %s: %+v", card, prefix, item)
		}
		if string(SyntheticCard(card)) != string(SyntheticCard(prefix+strings.Repeat("5", 16-len(prefix)))) {
			t.Fatalf("two cards of the range %s differ", prefix)
		}
	}
	for depth := 6; depth <= 10; depth++ {
		if depths[depth] == 0 {
			t.Errorf("no range of %d digits", depth)
		}
	}
	for _, card := range []string{"", "41111", "tok_411111", strings.Repeat("4", 20)} {
		if SyntheticCard(card) != nil {
			t.Errorf("%q has an item", card)
		}
	}
}

// TestSynthetic reads results of each format whole and in parts.
func TestSynthetic(t *testing.T) {
	for _, format := range []Format{CSV, JSONArray} {
		for size := range int64(300) {
			if whole, err := io.ReadAll(Synthetic(format, size)); err != nil || int64(len(whole)) != size {
				t.Errorf("%s: %d bytes of %d, %v", format, len(whole), size, err)
			}
		}
		const size = 100_003
		content := Synthetic(format, size)
		whole, err := io.ReadAll(content)
		if err != nil || len(whole) != size || content.Size() != size {
			t.Fatalf("%s: %d bytes, %v", format, len(whole), err)
		}
		for range 500 {
			part := make([]byte, rand.IntN(3000))
			offset := rand.IntN(size - len(part))
			if _, err := content.ReadAt(part, int64(offset)); err != nil || !bytes.Equal(part, whole[offset:offset+len(part)]) {
				t.Fatalf("%s: %d bytes at %d differ from the whole (%v)", format, len(part), offset, err)
			}
		}
		var numbers []string
		if format == CSV {
			rows, err := csv.NewReader(bytes.NewReader(whole)).ReadAll()
			if err != nil || rows[0][0] != "row" {
				t.Fatal(rows, err)
			}
			for _, row := range rows[1:] {
				numbers = append(numbers, row[0])
			}
		} else {
			var rows []struct{ Row string }
			if err := json.Unmarshal(whole, &rows); err != nil {
				t.Fatal(err)
			}
			for _, row := range rows {
				numbers = append(numbers, row.Row)
			}
		}
		for i, number := range numbers {
			if want := fmt.Sprintf("%011d", i); number != want {
				t.Fatalf("%s: row %d has the number %s, want %s", format, i, number, want)
			}
		}
		if len(numbers) < 600 {
			t.Errorf("%s: %d rows in %d bytes", format, len(numbers), size)
		}
	}
}
