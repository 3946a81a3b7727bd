package bins

import (
	"encoding/json"
	"testing"
)

// BenchmarkDecode reads a response of 50 cards in each form, and compares with encoding/json and
// with a check of the syntax alone.
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
