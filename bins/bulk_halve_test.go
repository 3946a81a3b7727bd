package bins_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/bins"
)

// badIn reports whether a body asks for a card that is one of so many in 1,000, spread evenly.
func badIn(body string, of1000 int) bool {
	for _, rest := range strings.Split(body, `"card":"`)[1:] {
		if isBad(rest[:8], of1000) {
			return true
		}
	}
	return false
}

func isBad(card string, of1000 int) bool {
	h := uint32(2166136261)
	for _, c := range []byte(card) {
		h = (h ^ uint32(c)) * 16777619
	}
	return int(h%1000) < of1000
}

// badOf counts the bad cards of so many.
func badOf(cards, of1000 int) (bad int) {
	for card := range numbered(cards) {
		if isBad(card, of1000) {
			bad++
		}
	}
	return bad
}

// A card that makes its requests fail has an error, and every other card its data, at the price that the comment
// of LookupAll says.
func TestBadCardsFailAlone(t *testing.T) {
	for _, test := range []struct {
		status, of1000 int
		want           error
		requests       int           // at most, for 1,000 cards
		within         time.Duration // at 100 ms a response
	}{
		{400, 4, bins.ErrBadRequest, 100, 5 * time.Second},
		{400, 20, bins.ErrBadRequest, 250, 10 * time.Second},
		{422, 100, bins.ErrBadRequest, 800, 20 * time.Second},
		{413, 20, bins.ErrTooLarge, 250, 10 * time.Second},
		{500, 4, bins.ErrServer, 160, time.Minute},
		{500, 20, bins.ErrServer, 450, 2 * time.Minute},
		{500, 100, bins.ErrServer, 1600, 2 * time.Minute},
		{200, 20, bins.ErrBadResponse, 450, time.Minute}, // a page
	} {
		t.Run(fmt.Sprint(test.status, " for ", test.of1000, " of 1000"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &service{latency: 100 * time.Millisecond}
				network := transportFunc(func(r *http.Request) (*http.Response, error) {
					body, err := r.GetBody()
					if err != nil {
						return nil, err
					}
					text, _ := io.ReadAll(body)
					if !badIn(string(text), test.of1000) {
						return s.RoundTrip(r)
					}
					s.requests.Add(1)
					time.Sleep(100 * time.Millisecond)
					return &http.Response{StatusCode: test.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("<html>"))}, nil
				})
				bad := badOf(1000, test.of1000)
				r := runBulk(t, clientOver(t, network), 1000, bins.BulkOptions{}, test.want)
				if r.end != nil || r.failed != bad || r.results != 1000-bad || int(s.requests.Load()) > test.requests || r.took > test.within {
					t.Errorf("%d requests: %+v", s.requests.Load(), r)
				}
			})
		})
	}
}

// One bad card of fifty costs thirteen requests, and is not sent again once it was refused alone.
func TestOneBadCardCosts13Requests(t *testing.T) {
	alone := 0
	s := &service{refuse: func(body string) int {
		if !strings.Contains(body, `"40000033"`) {
			return 0
		}
		if strings.Count(body, `"card":`) == 1 {
			alone++
		}
		return 400
	}}
	r := runBulk(t, s.client(t, bins.WithMaxRetries(0)), 50, bins.BulkOptions{})
	if n := int(s.requests.Load()); n > 13 || alone != 1 || r.failed != 1 || r.progress.Requests != n || r.progress.Retries != n-1 {
		t.Errorf("%d requests, %d of them for the card alone, %+v", n, alone, r)
	}
}

// A retry within a call counts as those do that follow a failure.
func TestLookupAllCountsTheRetriesOfACall(t *testing.T) {
	s := &service{fail: func(n int64) int { return map[int64]int{1: http.StatusMisdirectedRequest}[n] }}
	if r := runBulk(t, s.client(t), 50, bins.BulkOptions{}); !r.isWhole(50) || r.progress.Requests != 2 || r.progress.Retries != 1 {
		t.Errorf("%+v", r)
	}
}

// What says nothing of the cards is not halved. Only a probe is a part of its request.
func TestOtherFailuresAreNotHalved(t *testing.T) {
	for _, status := range []int{429, 503, 401} {
		synctest.Test(t, func(t *testing.T) {
			began, parts := time.Now(), 0
			s := &service{latency: 10 * time.Millisecond}
			s.refuse = func(body string) int {
				if n := strings.Count(body, `"card":`); n > 1 && n < 40 {
					parts++
				}
				if since := time.Since(began); since > 20*time.Millisecond && since < 2*time.Minute {
					return status
				}
				return 0
			}
			if r := runBulk(t, clientOver(t, s), 2000, bins.BulkOptions{}); !r.isWhole(2000) || parts > 0 {
				t.Errorf("%d: %+v, %d parts", status, r, parts)
			}
		})
	}
}

// A half that meets an overload waits for it like any other request.
func TestHalvesOutlastAnOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		s := &service{latency: 10 * time.Millisecond}
		s.refuse = func(body string) int {
			if n++; n%3 == 0 && strings.Count(body, `"card":`) < bins.MaxCards {
				return 503
			}
			if badIn(body, 20) {
				return 400
			}
			return 0
		}
		bad := badOf(2000, 20)
		if r := runBulk(t, clientOver(t, s), 2000, bins.BulkOptions{}, bins.ErrBadRequest); r.end != nil || r.failed != bad || r.results != 2000-bad {
			t.Errorf("%+v", r)
		}
	})
}
