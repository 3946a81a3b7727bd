package bins

import (
	"encoding/json"
	"testing"
)

// TestEncodeAsJSON: what is sent is what encoding/json makes of the request.
func TestEncodeAsJSON(t *testing.T) {
	for _, r := range []LookupRequest{
		{Cards: Cards("411111")},
		{Cards: Cards("411111", "", "tok_1 2/3"), Enhanced: new(true), KeepRaw: true},
		{Cards: Cards(`"`, `\`, "a\nb", "\x00", "\x7f", "<&>", "é", "\u2028", "\U0001f600"), Enhanced: new(false)},
	} {
		want, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := r.encode(); err != nil || string(got) != string(want) {
			t.Errorf("encoded as %s, %v, want %s", got, err, want)
		}
	}
}

// TestCardsAreCopied: the caller's slice is the caller's.
func TestCardsAreCopied(t *testing.T) {
	own := []string{"411111", "555555"}
	cards := Cards(own...)
	own[1] = "changed"
	if cards[1].Card.Reveal() != "555555" {
		t.Error("a card follows the slice that it came from")
	}
}
