package bins

import (
	"encoding/json"
	"testing"
)

// BenchmarkDecode reads an answer of 50 cards, in the forms in which services
// write it, beside encoding/json, and beside its mere check of the syntax.
func BenchmarkDecode(b *testing.B) {
	for form, body := range forms(b, syntheticAnswer()) {
		for name, decoder := range map[string]func() error{
			"decode":        func() error { _, err := decode(body, false, MaxCards, nil); return err },
			"encoding-json": func() error { _, err := decodeSlowly(body, false); return err },
			"valid":         func() error { json.Valid(body); return nil },
		} {
			b.Run(form+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				for b.Loop() {
					if err := decoder(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
