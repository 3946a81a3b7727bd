package bins

import (
	"bytes"
	"encoding/json"

	"github.com/carddata/carddata-go/internal/transport"
)

// These bound what a small text can unfold to in memory: a documented answer of
// 50 cards has some 3,000 members in 800 objects.
const (
	maxMembers = 100_000
	maxObjects = 10_000
)

// decode reads an answer to so many cards. It reads what encoding/json would, by
// a faster way where that is certain.
func decode(body []byte, keepRaw bool, cards int) (*LookupResponse, error) {
	if !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) {
		return nil, transport.Unusable("not an object")
	}
	s := scanner{body: body, keepRaw: keepRaw, expected: min(cards, MaxCards), followers: documented}
	if resp, ok := s.response(); ok {
		return resp, nil
	}
	if bytes.Count(body, []byte(",")) > maxMembers || bytes.Count(body, []byte("{")) > maxObjects {
		return nil, transport.Unusable("too many members")
	}
	return decodeSlowly(body, keepRaw)
}

func decodeSlowly(body []byte, keepRaw bool) (*LookupResponse, error) {
	resp := new(LookupResponse)
	if err := json.Unmarshal(body, resp); err != nil {
		return nil, transport.Malformed(err)
	}
	for i := range resp.Cards {
		if data := resp.Cards[i].Data; data != nil && data.Card != nil && string(data.Card.NetworkFees) == "null" {
			data.Card.NetworkFees = nil
		}
	}
	if !keepRaw {
		return resp, nil
	}
	var raw struct{ Cards []json.RawMessage }
	if err := json.Unmarshal(body, &raw); err != nil {
		return nil, transport.Malformed(err)
	}
	for i, item := range raw.Cards {
		resp.Cards[i].Raw = item
	}
	return resp, nil
}
