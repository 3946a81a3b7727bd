package main

import (
	"bytes"
	"io"

	"github.com/carddata/carddata-go/internal/mask"
)

// A maskWriter masks card numbers in a stream, also those that two writes
// share, and takes the meaning out of control characters.
type maskWriter struct {
	to   io.Writer
	held []byte // the digits and separators at the end, which may go on
}

const (
	numberBytes = "0123456789 -"
	maxHeld     = 4 << 10 // what is longer shows no digit at all
)

func (w *maskWriter) Write(p []byte) (int, error) {
	w.held = append(w.held, p...)
	end := len(bytes.TrimRight(w.held, numberBytes))
	if len(w.held)-end > maxHeld {
		for i, b := range w.held[end:] {
			if b >= '0' && b <= '9' {
				w.held[end+i] = '*'
			}
		}
		end = len(w.held)
	}
	if err := w.print(end); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (w *maskWriter) flush() error { return w.print(len(w.held)) }

func (w *maskWriter) print(end int) error {
	text := []byte(mask.Text(string(w.held[:end])))
	for i, b := range text {
		if b < ' ' && b != '\n' && b != '\t' || b == 0x7f {
			text[i] = '?'
		}
	}
	w.held = append(w.held[:0], w.held[end:]...)
	_, err := w.to.Write(text)
	return err
}
