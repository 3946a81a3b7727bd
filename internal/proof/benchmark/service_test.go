package benchmark

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/sandbox"
)

const cardDigits = 10

func card(i int) string { return fmt.Sprintf("4%0*d", cardDigits-1, i) }

// cards returns n cards, beginning with the i-th.
func cards(i, n int) []string {
	cards := make([]string, n)
	for j := range cards {
		cards[j] = card(i + j)
	}
	return cards
}

// A service responds to lookups of bins.MaxCards cards in memory, at next to no cost of its
// own: it writes the digits of the cards into a copy of one response.
type service struct{ latency time.Duration }

func (s service) RoundTrip(r *http.Request) (*http.Response, error) {
	request, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body.Close()
	time.Sleep(s.latency)
	body := responses.Get().(*bytes.Buffer)
	body.Reset()
	body.Write(template().text)
	template().name(body.Bytes(), requested(request))
	return &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, ContentLength: int64(body.Len()), Body: pooled{body}, Request: r,
	}, nil
}

var responses = sync.Pool{New: func() any { return new(bytes.Buffer) }}

type pooled struct{ *bytes.Buffer }

func (p pooled) Close() error {
	responses.Put(p.Buffer)
	return nil
}

// A responseTemplate is a response to bins.MaxCards cards, with the places of their digits.
type responseTemplate struct {
	text  []byte
	marks []mark
}

type mark struct{ offset, item, digits int }

var (
	namesCard = regexp.MustCompile(`"(bin|bin_min|bin_max)":"(\d*)"`)
	template  = sync.OnceValue(newTemplate)
)

func newTemplate() *responseTemplate {
	t := &responseTemplate{text: []byte(`{"cards":[`)}
	for i, item := range fullItems(bins.MaxCards) {
		if i > 0 {
			t.text = append(t.text, ',')
		}
		for _, place := range namesCard.FindAllSubmatchIndex(item, -1) {
			// After the digits of a card, a range has only zeros or only nines.
			for at := place[4] + cardDigits; at < place[5]; at++ {
				item[at] = item[place[5]-1]
			}
			t.marks = append(t.marks, mark{len(t.text) + place[4], i, min(place[5]-place[4], cardDigits)})
		}
		t.text = append(t.text, item...)
	}
	t.text = append(t.text, "]}"...)
	return t
}

// fullItems returns items with every member, for cards of different banks.
func fullItems(n int) []json.RawMessage {
	const full = 2200 // bytes
	var items []json.RawMessage
	for i := 0; len(items) < n; i++ {
		if item := sandbox.SyntheticCard(card(i * 1_000_003)); len(item) >= full {
			items = append(items, item)
		}
	}
	return items
}

func (t *responseTemplate) name(text []byte, cards []string) {
	for _, m := range t.marks {
		copy(text[m.offset:], cards[m.item][:m.digits])
	}
}

// requested returns the cards of a request.
func requested(body []byte) []string {
	var cards []string
	for rest := string(body); ; {
		_, after, ok := strings.Cut(rest, `"card":"`)
		if !ok {
			return cards
		}
		card, after, _ := strings.Cut(after, `"`)
		cards, rest = append(cards, card), after
	}
}

func TestServiceNamesTheCards(t *testing.T) {
	client, err := bins.NewClient("https://bins.example", bins.StaticToken(token), bins.WithHTTPClient(&http.Client{Transport: service{}}))
	if err != nil {
		t.Fatal(err)
	}
	asked := cards(123_456, bins.MaxCards)
	resp, err := client.Lookup(t.Context(), &bins.LookupRequest{Cards: bins.Cards(asked...)})
	if err != nil {
		t.Fatal(err)
	}
	banks := map[string]bool{}
	for i, r := range resp.Cards {
		if card := asked[i]; r.BIN != card[:6] || r.Data.Card.BINMin != card+strings.Repeat("0", 9) || r.Data.Card.BINMax != card+strings.Repeat("9", 9) {
			t.Fatalf("item %d is %+v", i, r)
		}
		banks[r.Data.Card.Bank.Name] = true
	}
	if n := len(template().text); len(banks) < 25 || n < 110_000 || n > 120_000 {
		t.Errorf("%d banks, %d bytes", len(banks), n)
	}
}
