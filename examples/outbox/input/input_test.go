package main

import (
	"fmt"
	"strings"
	"testing"
)

// enqueue runs enqueue on an input, and returns what is stored, in order, and what
// was said.
func enqueueText(t *testing.T, name, text string, flags ...string) (code int, contents []string, said string) {
	t.Helper()
	s := newSystem(t)
	got := s.run("enqueue", append(flags, "-in", write(t, name, text))...)
	got.CheckMasked(t, "canary")
	return got.Code, s.contents(), got.Stdout + got.Stderr
}

func (s *system) contents() (contents []string) {
	s.t.Helper()
	err := s.db.query(s.t.Context(), func(scan scanner) error {
		var content string
		err := scan(&content)
		contents = append(contents, content)
		return err
	}, `SELECT content FROM outbox_refund ORDER BY id`)
	if err != nil {
		s.t.Fatal(err)
	}
	return contents
}

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
		{`{"refund_id":"b","4111111111111111":5}`, "a refund record has no such member: 411111******1111"},
		{`{"refund_id":"b","amount":5,"amount":6}`, "amount stands there twice"},
		{`{"refund_id":"b","svc_codes":"canary"}`, "svc_codes must be an object"},
		{`{"refund_id":"b","additional_data":{"metadata":["canary"]}}`, "additional_data.metadata must be an object"},
		{`{"refund_id":"b","additional_data":{"description":{}}}`, "additional_data.description must be a string"},
		{"{\"refund_id\":\"b\",\"currency\":\"\xff\"}", "the line is not UTF-8"},
		{`{"refund_id":"b\u0000"}`, "refund_id holds what is no text"},
		{`{"refund_id":"b","additional_data":{"description":"\ud83d"}}`, "an escape in the line is half of a character"},
		{`{"refund_id":"b","additional_data":{"metadata":{"a":"\ude00"}}}`, "an escape in the line is half of a character"},
		{`{"refund_id":"b","additional_data":{"metadata":{"a":[{"k":1,"k":2}]}}}`, "a member of additional_data.metadata stands there twice"},
		{`{"refund_id":"` + strings.Repeat("b", maxIndexed+1) + `"}`, "refund_id is longer than 512 bytes"},
		{`{"refund_id":"b"`, "the line is not one JSON value"},
		{`{"refund_id":"b"} {"refund_id":"c"}`, "the line is not one JSON value"},
		{`canary`, "the line is not one JSON value"},
		{`["canary"]`, "the line must be an object"},
		{`null`, "the line must be an object"},
		{`{"refund_id":"` + strings.Repeat("b", maxLine) + `"}`, "the line is longer than a record can be"},
	} {
		code, contents, said := enqueueText(t, "in.jsonl", `{"refund_id":"a"}`+"\n"+test.line+"\n"+`{"refund_id":"z"}`)
		want := fmt.Sprintf("line 2: refused: %s\n", test.reason)
		if code != exitAttention || strings.Join(contents, "") != `{"refund_id":"a"}{"refund_id":"z"}` || !strings.Contains(said, want) {
			t.Errorf("%.60s: exit code %d, stored %s, said\n%swant %s", test.line, code, contents, said, want)
		}
	}
}

func TestBadRows(t *testing.T) {
	const header = "refund_id,amount,additional_data.description,additional_data.metadata\n"
	for _, test := range []struct{ rows, refused string }{
		{"b,10.5,,", "line 3: refused: " + wantInteger},
		{"b,1e3,,", "line 3: refused: " + wantInteger},
		{"b,9223372036854775808,,", "line 3: refused: " + wantInteger},
		{"b, 5,,", "line 3: refused: " + wantInteger},
		{"b,+5,,", "line 3: refused: " + wantInteger},
		{"b,007,,", "line 3: refused: " + wantInteger},
		{",5,canary,", "line 3: refused: refund_id is missing"},
		{"b,5,canary", "line 3: refused: the row has more or fewer fields than the header"},
		{"b,5,canary,,", "line 3: refused: the row has more or fewer fields than the header"},
		{"b,5,ca\"nary,", "line 3: refused: the quotes in the line do not match"},
		{"b,5,\"canary,", "line 3: refused: the quotes in the line do not match"},
		{"b,5,,canary", "line 3: refused: additional_data.metadata must be an object"},
		{`b,5,,"{""k"":1,""k"":2}"`, "line 3: refused: a member of additional_data.metadata stands there twice"},
		{"b,5,,null", "line 3: refused: additional_data.metadata must be an object"},
		{"b,5,\xff,", "line 3: refused: additional_data.description holds what is no text"},
		{strings.Repeat("b", maxLine), "line 3: refused: the line is longer than a record can be"},
	} {
		code, contents, said := enqueueText(t, "in.csv", header+"a,1,,\n"+test.rows+"\ny,2,\"of\r\n\r\nthree \"\"lines\"\"\",\nz,3,,\n")
		want := `{"refund_id":"a","amount":1}{"refund_id":"y","amount":2,"additional_data":{"description":"of\n\nthree \"lines\""}}{"refund_id":"z","amount":3}`
		if code != exitAttention || strings.Join(contents, "") != want || !strings.Contains(said, test.refused+"\n") || strings.Count(said, "refused: ") != 1 {
			t.Errorf("%.60s: exit code %d, stored %s, said\n%swant %s", test.rows, code, contents, said, test.refused)
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
		{"windows csv", "in.csv", bom + "refund_id,payment_method_details.card.attributes.bin,amount\r\na,041111,-5\r\n\r\nb,,", `{"refund_id":"a","amount":-5,"payment_method_details":{"card":{"attributes":{"bin":"041111"}}}}{"refund_id":"b"}`},
		{"metadata in csv", "in.csv", "refund_id,additional_data.metadata\na,\"{\"\"k\"\":1.0}\"\n", `{"refund_id":"a","additional_data":{"metadata":{"k":1.0}}}`},
		{"header only", "in.csv", "refund_id\n", ""},
		{"nothing", "in.jsonl", "", ""},
	} {
		code, contents, said := enqueueText(t, test.file, test.text)
		if code != 0 || strings.Join(contents, "") != test.want {
			t.Errorf("%s: exit code %d, stored %s, want %s; said\n%s", test.name, code, contents, test.want, said)
		}
	}
}

// TestUnusableInputs: of these nothing is taken, rather than less than was meant.
func TestUnusableInputs(t *testing.T) {
	for _, test := range []struct{ file, text, want string }{
		{"in.csv", "refund_id,amuont\na,5\n", "outbox: line 1: a refund record has no such member: amuont"},
		{"in.csv", "refund_id,amount,amount\na,5,6\n", "outbox: line 1 names amount twice"},
		{"in.csv", "amount\n5\n", "outbox: line 1 names no refund_id"},
		{"in.csv", "refund_id,\"amount\n5\n", "outbox: the input does not begin with a CSV header"},
		{"in.csv", "", "outbox: the input does not begin with a CSV header"},
		{"in.csv", "\xff\xfer\x00", "outbox: the input is UTF-16, save it as UTF-8"},
		{"in.txt", "a", "outbox: the input's format does not show in its name: .csv or .jsonl"},
	} {
		code, contents, said := enqueueText(t, test.file, test.text)
		if code != 2 || len(contents) > 0 || said != test.want+"\n" {
			t.Errorf("%q: exit code %d, stored %s, said\n%swant %s", test.text, code, contents, said, test.want)
		}
	}
}

// TestSameRefundID: identical content is taken once, another is an update, and
// another amount is refused unless it is allowed or corrects what was rejected.
func TestSameRefundID(t *testing.T) {
	s := newSystem(t)
	text := `{"refund_id":"a","amount":5}
{"amount":5,"refund_id":"a"}
{"refund_id":"a","amount":5,"refund_response":{"status":"approved"}}
{"refund_id":"a","amount":6}
{"refund_id":"a","amount":5,"currency":"EUR"}
{"refund_id":"a"}
{}
`
	in := write(t, "in.jsonl", text)
	const changed = "refused: another record has the refund_id, with another amount or currency (-allow-changes)\n"
	want := "line 3: another record has the refund_id, with other content: this one is sent after it\n" +
		"line 4: " + changed + "line 5: " + changed + "line 6: " + changed + "line 7: refused: refund_id is missing\n"
	if got := s.must(exitAttention, "enqueue", "-in", in); got.Stderr != want ||
		got.Stdout != "enqueued 2, of them 1 updates; 1 were there before; 4 lines refused\n" {
		t.Errorf("%+v", got)
	}
	if got := s.must(exitAttention, "enqueue", "-in", in); got.Stdout != "enqueued 0, of them 0 updates; 3 were there before; 4 lines refused\n" {
		t.Errorf("again: %+v", got)
	}
	if got := s.must(exitAttention, "enqueue", "-in", in, "-allow-changes"); got.Stdout != "enqueued 3, of them 3 updates; 3 were there before; 1 lines refused\n" {
		t.Errorf("allowed: %+v", got)
	}
	if n := len(s.contents()); n != 5 {
		t.Errorf("%d records", n)
	}
}
