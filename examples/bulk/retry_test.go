package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/internal/sandbox"
)

func TestRetryFailed(t *testing.T) {
	engine, vars := serve(t)
	engine.Script(sandbox.Bins, sandbox.Fault{Status: 400})
	var text strings.Builder
	text.WriteString("id,card\n1,411111\n2,45717360\n\n3\n\"4\n\",999999\n") // a ragged row, and one of two lines
	in := write(t, "in.csv", text.String())
	out := filepath.Join(t.TempDir(), "out.csv")
	failed := out + ".failed.csv"
	if got := bulk(t, vars, "-in", in, "-out", out, "-columns", "card_brand"); got.Code != exitFailedRows ||
		!strings.HasSuffix(got.Stderr, "\nto ask again for the failed rows, give their file as -retry-failed, and another -out\n") {
		t.Fatalf("%+v", got)
	}
	// The ragged row was corrected, and a row has come since.
	in = write(t, "in.csv", strings.Replace(text.String(), "\n3\n", "\n3,510510\n", 1)+"5,411111\n")
	engine, vars = serve(t)
	again := filepath.Join(t.TempDir(), "again.csv")
	args := []string{"-in", in, "-out", again, "-columns", "card_brand", "-retry-failed", failed}
	got := bulk(t, vars, args...)
	if got.Code != 0 || read(t, again) != "id,card,card_brand\n1,411111,VISA\n2,45717360,VISA\n3,510510,MASTERCARD\n\"4\n\",999999,\n" {
		t.Errorf("%+v\n%s", got, read(t, again))
	}
	if cards := sent(t, engine); !slices.Equal(cards, []string{"411111", "45717360", "510510", "999999"}) {
		t.Errorf("sent %q", cards)
	}
	if got := bulk(t, vars, append(args, "-resume")...); got.Code != 0 || engine.RequestCount(sandbox.Bins) != 1 {
		t.Errorf("%+v", got)
	}

	some := write(t, "some.csv", failedHead+"6,999999,no_answer,x\n2,411111,no_answer,x\n2,411111,no_answer,x\n")
	again = filepath.Join(t.TempDir(), "again.csv")
	args = []string{"-in", in, "-out", again, "-columns", "card_brand", "-retry-failed", some}
	if got := bulk(t, vars, args...); got.Code != 0 || read(t, again) != "id,card,card_brand\n1,411111,VISA\n\"4\n\",999999,\n" {
		t.Errorf("%+v\n%s", got, read(t, again))
	}
	args[7] = failed
	if got := bulk(t, vars, append(args, "-resume")...); got.Code != 2 || !strings.Contains(got.Stderr, "begun with other flags") {
		t.Errorf("%+v", got)
	}
	for _, test := range []struct{ failed, stderr string }{
		{failedHead + "2,411111,no_answer,x\n4,,ragged,x\n", "bulk: line 4 begins no row of the input"},
		{failedHead + "7,,no_answer,x\n", "bulk: line 7 begins no row of the input"},
		{failedHead + "99,,no_answer,x\n", "bulk: line 99 begins no row of the input"},
		{failedHead + "1,,no_answer,x\n", "bulk: line 1 begins no row of the input"},
		{failedHead + "2,411111,no_answer,x\n3,4111", "bulk: after 1 rows, "},
		{failedHead + "x,411111,no_answer,x\n", "is no failed file of a run"},
		{"id,card\n1,411111\n", "is no failed file of a run"},
		{"", "is no failed file of a run"},
	} {
		path := write(t, "failed.csv", test.failed)
		got := bulk(t, vars, "-in", in, "-out", filepath.Join(t.TempDir(), "out"), "-retry-failed", path)
		if got.Code != 2 || !strings.Contains(got.Stderr, test.stderr) {
			t.Errorf("%q: %+v", test.failed, got)
		}
	}
	none := filepath.Join(t.TempDir(), "out")
	if got := bulk(t, vars, "-in", in, "-out", none, "-retry-failed", write(t, "x.csv", failedHead)); got.Code != 0 || strings.Count(read(t, none), "\n") != 1 {
		t.Errorf("%+v", got)
	}
}
