package benchmark

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
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
// own: it writes the digits of the cards between the pieces of items.
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
	separator := `{"cards":[`
	for i, card := range requested(request) {
		it := items()[i]
		for _, text := range []string{separator, it[0], card[:6], it[1], card, "000000000", it[2], card, "999999999", it[3]} {
			body.WriteString(text)
		}
		separator = ","
	}
	body.WriteString("]}")
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

// items are the pieces of items with every member, for cards of different banks. Between the
// pieces stand bin, bin_min and bin_max.
var items = sync.OnceValue(func() (list [][]string) {
	const full = 2200 // bytes
	digits := regexp.MustCompile(`\b4\d{5,}\b`)
	for i := 0; len(list) < bins.MaxCards; i++ {
		if text := sandbox.SyntheticCard(card(i * 1_000_003)); len(text) >= full {
			list = append(list, digits.Split(string(text), 4))
		}
	}
	return list
})

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
