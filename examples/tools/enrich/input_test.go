package main

import (
	"encoding/csv"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	long   = "1234567890123456789012345678901234567890123456789012345678901234567890"
	canary = "4111111111111111"
	badCSV = "id,card\n1,411111\n2\n3,,x\n4,\n5,  \n6,999999999999999999999999999999\n" + // to line 7
		"7,9999 9999-9999 9999 9999 9\n8,4.11111E+15\n9,a\x00b\n10,\xff\n11,tok_1\n12,4\"1\n" + // to line 13
		"13,\"411111\"x\n14,\"411\n15,411111\n16,\"4111\n1111\"\n17," // to line 19; broken: 15
	badCSVFailed = `3,,ragged,the row has more or fewer fields than the header
4,,ragged,the row has more or fewer fields than the header
7,999999********************9999,too_many_digits,the card has more digits than a card number can have
8,999999***********9999,too_many_digits,the card has more digits than a card number can have
9,****,rounded,"the card was rounded to an exponent, as spreadsheets do"
10,****,control_character,the card holds a control character
11,****,not_utf8,the card is not valid UTF-8
13,,broken_quotes,the quotes in this line do not match
14,,broken_quotes,the quotes in this line do not match
15,,broken_quotes,the quotes in this line do not match
17,****,control_character,the card holds a control character
`
)

func TestBadInput(t *testing.T) {
	for _, test := range []struct {
		name, file, input string
		output            []string // the cards of
		failed            string
	}{
		{"csv", "in.csv", badCSV + long + long + long + long + "\n18,411111\n", []string{"1,411111", "4,", "5,  ", "11,tok_1", "15,411111", "18,411111"},
			badCSVFailed + "19,123456" + strings.Repeat("*", 270) + "7890,too_many_digits,the card has more digits than a card number can have\n"},
		{"long rows", "in.csv", "id,card\n1,411111\n2," + strings.Repeat("x", 3*maxRow) + "\n3,411111\n4," + strings.Repeat("x", 300) + "\n5,\"" +
			strings.Repeat("y\n", maxRow) + "6,411111\n", []string{"1,411111", "3,411111", "6,411111"}, ""},
		{"ndjson", "in.ndjson", "{\"card\":\"411111\"}\n[]\nnull\n{\"n\":1}\n{\"card\":null}\n{\"card\":\"\"}\n{\"card\":4.1e15}\n{\"card\":[1]}\n" +
			"{\"card\":\"\xff\"}\n{\"card\":\"1\",\"card_brand\":1}\n{\"card\":\"411111\"\n{\"card\":\"411111\"}", []string{`{"card":"411111"`, `{"n":1`, `{"card":null`, `{"card":""`, `{"card":"411111"`},
			`2,,not_json,the line is no JSON object
3,,not_json,the line is no JSON object
7,,not_text,the card is neither text nor digits
8,,not_text,the card is neither text nor digits
9,,not_utf8,the line is not valid UTF-8
10,,member_exists,the object has a member of a new column's name
11,,not_json,the line is no JSON object
`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, vars := serve(t)
			in := write(t, test.file, test.input)
			out := filepath.Join(t.TempDir(), "out")
			got := enrich(t, vars, "-in", in, "-out", out, "-columns", "card_brand")
			if got.Code != exitFailedRows {
				t.Fatalf("%+v", got)
			}
			rows := strings.Split(strings.TrimSuffix(read(t, out), "\n"), "\n")
			if test.file != "in.ndjson" {
				rows = rows[1:]
			}
			for i, row := range rows {
				rows[i] = row[:strings.LastIndex(row, ",")]
			}
			if !slices.Equal(rows, test.output) {
				t.Errorf("output: %q, want %q", rows, test.output)
			}
			if failed := read(t, out+".failed.csv"); test.failed != "" && failed != failedHead+test.failed {
				t.Errorf("failed:\n%s", failed)
			} else if test.failed == "" && (!strings.Contains(failed, "\n3,,too_long,") || !strings.Contains(failed, "\n5,****,too_long,") ||
				!strings.Contains(failed, "\n6,,broken_quotes,")) {
				t.Errorf("failed:\n%.2000s", failed)
			}
		})
	}
}

// FuzzCSV compares the rows with those that encoding/csv reads.
func FuzzCSV(f *testing.F) {
	for _, seed := range []string{
		"a,b\n1,2\n", "a\r\n\"x\"\"y\"\r\n", "a,b\n\"x\ny\",\n\n,", badCSV, "\"a\"\r\n\"b\"", "a\n\"", "x\"y", "a,\"b\nc\r\nd\"\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		std := csv.NewReader(strings.NewReader(text))
		std.FieldsPerRecord = -1
		want, err := std.ReadAll()
		if err != nil || strings.Contains(text, "\r\r") || strings.HasPrefix(text, "\ufeff") || strings.HasPrefix(text, "\xff\xfe") || strings.HasPrefix(text, "\xfe\xff") {
			t.Skip()
		}
		in, _, err := openInput(strings.NewReader(text), &ndjsonFormat{})
		if err != nil {
			t.Fatal(err)
		}
		format := &csvFormat{delimiter: ','}
		in.format = format
		var got [][]string
		for {
			row, err := in.next()
			if err == io.EOF {
				break
			}
			if len(row.text) == 0 { // encoding/csv skips it
				continue
			}
			fields, err := format.read(row.text)
			if err != nil {
				t.Fatalf("%q in %q: %v", row.text, text, err)
			}
			got = append(got, fields)
		}
		if !slices.EqualFunc(got, want, slices.Equal) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	})
}
