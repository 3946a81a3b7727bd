package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/examples/internal/program"
)

func TestIdentifier(t *testing.T) {
	for _, test := range []struct {
		cell, card, kept string
		kind             string
	}{
		{" 411111 ", "411111", "411111", ""},
		{"4242 4242-4242  4242", "4242424242424242", "4242 4242-4242  4242", ""},
		{"4242\u00a04242\u20114242\u20134242", "4242424242424242", "4242\u00a04242\u20114242\u20134242", ""},
		{"4571-7360", "45717360", "4571-7360", ""},
		{"-411111", "-411111", "-411111", ""},
		{"411111-", "411111-", "411111-", ""},
		{"tok 4111-1111", "tok 4111-1111", "tok 4111-1111", ""},
		{"4111 1111 x 1111", "4111 1111 x 1111", "4111 1111 x 1111", ""},
		{"é", "é", "é", ""},
		{"99999 99999 99999 99999", "", "", "too_many_digits"},
		{"99999\u00a099999\u201399999 99999", "", "", "too_many_digits"},
		{"４２４２４２４２４２４２４２４２", "", "", "other_digits"},
		{"４２４２ ４２４２ ４２４２ ４２４２", "", "", "other_digits"},
		{"٤٢٤٢٤٢٤٢٤٢٤٢٤٢٤٢", "", "", "other_digits"},
		{"424242424242４２４２", "", "", "other_digits"},
		{"tok-４", "tok-４", "tok-４", ""},
	} {
		for _, keep := range []bool{false, true} {
			want := test.card
			if keep {
				want = test.kept
			}
			card, stripped, bad := identifier(test.cell, keep)
			switch {
			case bad != nil && bad.kind != test.kind, bad == nil && test.kind != "":
				t.Errorf("%q (%v): %v, want %q", test.cell, keep, bad, test.kind)
			case bad == nil && (card != want || stripped != (test.card != test.kept && !keep)):
				t.Errorf("%q (%v): %q, %v, want %q", test.cell, keep, card, stripped, want)
			}
		}
	}
}

func TestSeparators(t *testing.T) {
	for _, test := range []struct{ arg, sent, other string }{
		{"-keep-separators=false", "45717360,411111", "-keep-separators"},
		{"-keep-separators", "4571-7360,45717360,41 11 11", "-keep-separators=false"},
	} {
		engine, vars := serve(t)
		out := filepath.Join(t.TempDir(), "out")
		in := write(t, "in.txt", "4571-7360\n45717360\n41 11 11\n")
		got := bulk(t, vars, "-in", in, "-out", out, "-columns", "card_brand", test.arg)
		if cards := sent(t, engine); got.Code != 0 || strings.Join(cards, ",") != test.sent {
			t.Errorf("%s: sent %q; %+v", test.arg, cards, got)
		}
		stripped := strings.Contains(strings.Join(strings.Fields(got.Stdout), " "), "stripped 2 rows whose card was sent without")
		if rows := strings.Split(read(t, out), "\n"); stripped == (test.arg == "-keep-separators") || !strings.HasPrefix(rows[1], "4571-7360,") {
			t.Errorf("%s: %q\n%s", test.arg, rows, got.Stdout)
		}
		if got := bulk(t, vars, "-in", in, "-out", out, "-columns", "card_brand", "-resume", test.other); got.Code != 2 {
			t.Errorf("%s after %s: %+v", test.other, test.arg, got)
		}
	}
}

// TestOtherDigits has card numbers that masks and -prefix do not see.
func TestOtherDigits(t *testing.T) {
	const number = "４１１１１１１１１１１１１１１１"
	engine, vars := serve(t)
	out := filepath.Join(t.TempDir(), "out")
	got := bulk(t, vars, "-in", write(t, "in.txt", "411111\n"+number+"\n"), "-out", out, "-prefix", "8")
	if cards := sent(t, engine); got.Code != exitFailedRows || !slices.Equal(cards, []string{"411111"}) {
		t.Errorf("sent %q; %+v", cards, got)
	}
	for _, path := range []string{out, out + ".state", out + ".failed.csv"} {
		program.Result{Stdout: read(t, path)}.CheckMasked(t, number)
	}
}
