package main

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/carddata/carddata-go/examples/internal/program"
)

func TestMaskWriter(t *testing.T) {
	spaces := strings.Repeat(" ", maxHeld)
	digits := strings.Repeat("4111111111111111", 1+maxHeld/16)
	for _, test := range []struct{ in, want string }{
		{"", ""},
		{"411111,8 digits 12345678", "411111,8 digits 12345678"},
		{"4111111111111111", "411111******1111"},
		{"a,4111-1111 11111111\n4242424242424242,b", "a,411111******1111\n424242******4242,b"},
		{"\x1b[2Jx\r\n\ty\x00\x7f", "?[2Jx?\n\ty??"},
		{"größe 4111111111111111 €", "größe 411111******1111 €"},
		{"x" + spaces, "x" + spaces},
		{digits, strings.Repeat("*", len(digits))},
	} {
		var whole, split strings.Builder
		if err := copyMasked(&whole, strings.NewReader(test.in)); err != nil || whole.String() != test.want {
			t.Errorf("%.40q: %v, %.60q", test.in, err, whole.String())
		}
		// The end of the longest run is masked by itself when it comes in pieces.
		err := copyMasked(&split, iotest.OneByteReader(strings.NewReader(test.in)))
		if test.in != digits && (err != nil || split.String() != test.want) {
			t.Errorf("%.40q in single bytes: %v, %.60q", test.in, err, split.String())
		}
		program.Result{Stdout: whole.String(), Stderr: split.String()}.CheckMasked(t)
	}
}

func copyMasked(to io.Writer, from io.Reader) error {
	w := &maskWriter{to: to}
	if _, err := io.Copy(w, from); err != nil {
		return err
	}
	return w.flush()
}
