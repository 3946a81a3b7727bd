package input

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// taken returns the records of an input as JSON, and what is wrong with it.
func taken(t *testing.T, name, text string) (records []string, wrong string) {
	t.Helper()
	lines, err := Refunds([]byte(text), name, "acct")
	if err != nil {
		return nil, err.Error()
	}
	for _, line := range lines {
		if line.Err != nil {
			wrong += fmt.Sprintf("line %d: %v\n", line.Number, line.Err)
			continue
		}
		text, err := json.Marshal(line.Record)
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, string(text))
	}
	return records, wrong
}

const wantObject = "the line is not one JSON object in UTF-8"

const wantInteger = "amount must be an integer of at most 64 bits, without fraction, exponent and quotes"

// TestBadLines: a bad line is reported by its number, and costs nothing but itself.
func TestBadLines(t *testing.T) {
	for _, test := range []struct{ line, reason string }{
		{`{"refund_id":"b","amount":10.5}`, wantInteger},
		{`{"refund_id":"b","amount":1e3}`, wantInteger},
		{`{"refund_id":"b","amount":9223372036854775808}`, wantInteger},
		{`{"refund_id":"b","amount":-9223372036854775809}`, wantInteger},
		{`{"refund_id":"b","amount":"5"}`, wantInteger},
		{`{"refund_id":"b","amount":true}`, wantInteger},
		{`{"amount":5}`, "refund_id is missing"},
		{`{"refund_id":""}`, "refund_id is missing"},
		{`{"refund_id":null}`, "refund_id is missing"},
		{`{"refund_id":5}`, "refund_id must be a string"},
		{`{"refund_id":"b","amuont":5}`, "a refund record has no such member: amuont"},
		{`{"refund_id":"b","Amount":5}`, "a refund record has no such member: Amount"},
		{`{"refund_id":"b","svc_codes":{"status":"canary"}}`, "a refund record has no such member: svc_codes.status"},
		{`{"refund_id":"b","amount":5,"amount":6}`, "amount appears twice"},
		{`{"refund_id":"b","svc_codes":"canary"}`, "svc_codes must be an object"},
		{`{"refund_id":"b","additional_data":{"metadata":["canary"]}}`, "additional_data.metadata must be an object"},
		{`{"refund_id":"b","additional_data":{"description":{}}}`, "additional_data.description must be a string"},
		{"{\"refund_id\":\"b\",\"currency\":\"\xff\"}", wantObject},
		{`{"refund_id":"b","additional_data":{"description":"\ud83d"}}`, wantObject},
		{`{"refund_id":"b","additional_data":{"metadata":{"a":"\ude00"}}}`, wantObject},
		{`{"refund_id":"b","additional_data":{"metadata":{"a":[{"k":1,"k":2}]}}}`, "additional_data.metadata.a.0.k appears twice"},
		{`{"refund_id":"b"`, wantObject},
		{`{"refund_id":"b"} {"refund_id":"c"}`, wantObject},
		{`canary`, wantObject},
		{`["canary"]`, wantObject},
		{`null`, wantObject},
	} {
		records, wrong := taken(t, "in.jsonl", `{"refund_id":"a"}`+"\n"+test.line+"\n"+`{"refund_id":"z"}`)
		if want := "line 2: " + test.reason + "\n"; strings.Join(records, "") != `{"refund_id":"a"}{"refund_id":"z"}` || wrong != want {
			t.Errorf("%.60s: read %s, said %swant %s", test.line, records, wrong, want)
		}
	}
}

func TestBadRows(t *testing.T) {
	const header = "refund_id,amount,additional_data.description,additional_data.metadata\n"
	for _, test := range []struct{ rows, refused string }{
		{"b,10.5,,", wantInteger},
		{"b,1e3,,", wantInteger},
		{"b,9223372036854775808,,", wantInteger},
		{"b, 5,,", "amount is no JSON"},
		{"b,+5,,", "amount is no JSON"},
		{"b,007,,", "amount is no JSON"},
		{",5,canary,", "refund_id is missing"},
		{"b,5,canary", "the row has more or fewer fields than the header"},
		{"b,5,canary,,", "the row has more or fewer fields than the header"},
		{"b,5,ca\"nary,", "the quotes in the line do not match"},
		{"b,5,,canary", "additional_data.metadata is no JSON"},
		{`b,5,,"{""k"":1,""k"":2}"`, "additional_data.metadata is no JSON"},
		{"b,5,,[]", "additional_data.metadata must be an object"},
		{"b,5,\xff,", "the line is not UTF-8"},
	} {
		records, wrong := taken(t, "in.csv", header+"a,1,,\n"+test.rows+"\ny,2,\"of\r\n\r\nthree \"\"lines\"\"\",\nz,3,,\n")
		want := `{"refund_id":"a","amount":1}{"refund_id":"y","amount":2,"additional_data":{"description":"of\n\nthree \"lines\""}}{"refund_id":"z","amount":3}`
		if strings.Join(records, "") != want || wrong != "line 3: "+test.refused+"\n" {
			t.Errorf("%.60s: read %s, said %swant %s", test.rows, records, wrong, test.refused)
		}
	}
}

func TestGoodInputs(t *testing.T) {
	const bom = "\ufeff"
	for _, test := range []struct{ name, file, text, want string }{
		{"jsonl", "in.jsonl", `{"refund_id":"a","amount":9223372036854775807,"additional_data":{"metadata":{"n":12345678901234567890.10}}}` + "\n",
			`{"refund_id":"a","amount":9223372036854775807,"additional_data":{"metadata":{"n":12345678901234567890.10}}}`},
		{"escapes", "in.jsonl", `{"refund_id":"\\ud83d\ud83d\ude00","additional_data":{"metadata":{"a":{"k":1},"k":[{"k":2},{"k":3}]}}}`,
			`{"refund_id":"\\ud83d😀","additional_data":{"metadata":{"a":{"k":1},"k":[{"k":2},{"k":3}]}}}`},
		{"windows jsonl", "in.ndjson", bom + "{\"refund_id\":\"a\",\"amount\":0}\r\n\r\n{\"refund_id\":\"b\",\"currency\":null}", `{"refund_id":"a","amount":0}{"refund_id":"b"}`},
		{"files put together", "in.jsonl", bom + "{\"refund_id\":\"a\"}\n" + bom + "{\"refund_id\":\"b\"}\n", `{"refund_id":"a"}{"refund_id":"b"}`},
		{"array", "in.json", bom + "[\n {\"refund_id\":\"a\"},\n {\"refund_id\":\n\"b\"}\n]\n", `{"refund_id":"a"}{"refund_id":"b"}`},
		{"windows csv", "in.csv", bom + "refund_id,payment_method_details.card.attributes.bin,amount\r\na,041111,-5\r\n\r\nb,,", `{"refund_id":"a","amount":-5,"payment_method_details":{"card":{"attributes":{"bin":"041111"}}}}{"refund_id":"b"}`},
		{"semicolons", "in.csv", "refund_id;amount;additional_data.description\na;5;\"x;y, z\"\n", `{"refund_id":"a","amount":5,"additional_data":{"description":"x;y, z"}}`},
		{"tabs", "in.tsv", bom + "amount\trefund_id\n5\ta\n", `{"refund_id":"a","amount":5}`},
		{"metadata in csv", "in.csv", "refund_id,additional_data.metadata\na,\"{\"\"k\"\":1.0}\"\n", `{"refund_id":"a","additional_data":{"metadata":{"k":1.0}}}`},
		{"header only", "in.csv", "refund_id\n", ""},
		{"nothing", "in.jsonl", "", ""},
	} {
		records, wrong := taken(t, test.file, test.text)
		if strings.Join(records, "") != test.want || wrong != "" {
			t.Errorf("%s: read %s, want %s; said %s", test.name, records, test.want, wrong)
		}
	}
}

// TestUnusableInputs: of these nothing is taken, rather than less than was meant.
func TestUnusableInputs(t *testing.T) {
	for _, test := range []struct{ file, text, want string }{
		{"in.csv", "refund_id,amuont\na,5\n", "line 2: a refund record has no such member: amuont\n"},
		{"in.csv", "refund_id,svc_codes\na,5\n", "line 2: svc_codes must be an object\n"},
		{"in.csv", "refund_id,svc_codes,svc_codes.svc_refund_status\na,5,6\n", "outbox: the header names a column twice: svc_codes"},
		{"in.json", "{\"refund_id\":\"a\"}", "outbox: the input is no JSON array, or is cut off"},
		{"in.json", "[{\"refund_id\":\"a\"},\n{\"refund_id\":", "outbox: the input is no JSON array, or is cut off"},
		{"in.csv", "refund_id,amount,amount\na,5,6\n", "outbox: the header names a column twice: amount"},
		{"in.csv", "amount\n5\n", "outbox: the input does not begin with a CSV header in UTF-8 that names refund_id"},
		{"in.csv", "refund_id,\"amount\n5\n", "outbox: the input does not begin with a CSV header in UTF-8 that names refund_id"},
		{"in.csv", "", "outbox: the input does not begin with a CSV header in UTF-8 that names refund_id"},
		{"in.csv", "\xff\xfer\x00", "outbox: the input does not begin with a CSV header in UTF-8 that names refund_id"},
		{"in.txt", "a", "outbox: the input's format does not show in its name: .csv, .tsv, .jsonl or .json"},
	} {
		if records, wrong := taken(t, test.file, test.text); len(records) > 0 || wrong != test.want {
			t.Errorf("%q: read %s, said\n%swant %s", test.text, records, wrong, test.want)
		}
	}
}

// TestUnreadableRest: where what follows a bad line cannot be told from it, that is
// said, and what stands before it is taken.
func TestUnreadableRest(t *testing.T) {
	for _, test := range []struct{ file, text, want string }{
		{"in.csv", "refund_id,additional_data.description\na,\nb,\"canary\nc,canary\nd,canary\n", "line 3: the quotes do not match"},
		{"in.csv", "refund_id,amount,additional_data.description\na,,\nb,1,\"canary\nc,2,\"canary\nd,3,canary\n", "line 3: the quotes do not match"},
		{"in.csv", "refund_id,amount,additional_data.description\na,,\nb,\"1,canary\nc,2,canary\"\nd,3,canary\n", "line 3: the quotes do not match"},
	} {
		if records, wrong := taken(t, test.file, test.text); strings.Join(records, "") != `{"refund_id":"a"}` || wrong != test.want+": nothing is read from here on\n" {
			t.Errorf("%s: read %s, said %s", test.want, records, wrong)
		}
	}
}
