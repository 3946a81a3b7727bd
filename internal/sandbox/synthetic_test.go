package sandbox

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
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

func TestSetLookup(t *testing.T) {
	e := New()
	e.SetLookup(SyntheticCard)
	if got := e.result("4000001", false); string(got) != string(SyntheticCard("4000001")) {
		t.Errorf("item = %s", got)
	}
	if got := e.result("tok", false); !strings.Contains(string(got), "unknown bin") {
		t.Errorf("item = %s", got)
	}
	e.Reset()
	if got := e.result("4000001", false); !strings.Contains(string(got), "unknown bin") {
		t.Errorf("item after reset = %s", got)
	}
}

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

// rowNumbers checks that the content can be read in its format, and returns the number of
// each row.
func rowNumbers(t *testing.T, format Format, content []byte) (numbers []string) {
	t.Helper()
	documents := bytes.Split(bytes.TrimSpace(content), []byte("\n"))
	switch format {
	case CSV:
		if rows, err := csv.NewReader(bytes.NewReader(content)).ReadAll(); err != nil || rows[0][0] != "row" {
			t.Fatal(rows[0], err)
		}
		documents = nil
	case JSONArray:
		documents = [][]byte{content}
	}
	for _, document := range documents {
		if !json.Valid(document) {
			t.Fatalf("not JSON: %.100s", document)
		}
	}
	for _, found := range regexp.MustCompile(`(?m)^(?:\{"row":")?([0-9]{11})`).FindAllSubmatch(content, -1) {
		numbers = append(numbers, string(found[1]))
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
