package main

import "testing"

func TestIdentifier(t *testing.T) {
	for _, test := range []struct {
		cell, card string
		stripped   bool
		kind       string
	}{
		{" 411111 ", "411111", false, ""},
		{"4242 4242-4242  4242", "4242424242424242", true, ""},
		{"4242\u00a04242\u20114242\u20134242", "4242424242424242", true, ""},
		{"4571-7360", "45717360", true, ""},
		{"-411111", "-411111", false, ""},
		{"411111-", "411111-", false, ""},
		{"tok 4111-1111", "tok 4111-1111", false, ""},
		{"4111 1111 x 1111", "4111 1111 x 1111", false, ""},
		{"99999 99999 99999 99999", "", false, "too_many_digits"},
		{"99999\u00a099999\u201399999 99999", "", false, "too_many_digits"},
	} {
		card, stripped, bad := identifier(test.cell)
		switch {
		case bad != nil && bad.kind != test.kind, bad == nil && test.kind != "":
			t.Errorf("%q: %v, want %q", test.cell, bad, test.kind)
		case bad == nil && (card != test.card || stripped != test.stripped):
			t.Errorf("%q: %q, %v, want %q", test.cell, card, stripped, test.card)
		}
	}
}
