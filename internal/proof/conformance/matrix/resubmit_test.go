package matrix

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/refunds"
)

// TestMatrixResubmit proves what the caller's word changes: unknown outcomes are
// repeated like lookups, and a refund that may have been recorded once stays
// unknown unless it is accepted, also where the last answer refuses it.
func TestMatrixResubmit(t *testing.T) {
	ok, no := answer(200, "{}"), answer(400, "{}")
	for _, row := range []struct {
		point string
		world world
		want  cell
	}{
		{"reset", wire(reset), unknown(3, errNoAnswer)},
		{"500", wire(answer(500, "")), unknown(3, bins.ErrServer)},
		{"503", wire(answer(503, "")), unknown(3, bins.ErrServer)},
		{"408", wire(answer(408, "")), unknown(3, bins.ErrTimeout)},
		{"not HTTP", wire(sayAndClose("SSH-2.0\r\n\r\n")), unknown(2, errBadResponse)},
		{"HTML", wire(answer(200, page)), unknown(1, errBadResponse)},
		{"302", wire(answer(302, "", "Location: /")), unknown(1, errRedirect)},
		{"400", wire(no), rejected(1, bins.ErrBadRequest)},
		{"write of 1 byte", writing(1), unknown(3, errNoAnswer)},
		{"reset, then accepted", wire(in(reset, ok)), accepted(2)},
		{"503, then accepted", wire(in(answer(503, ""), ok)), accepted(2)},
		{"reset, then 400", wire(in(reset, no)), unknown(2, bins.ErrBadRequest)},
		{"reset, then 429", wire(in(reset, answer(429, ""))), unknown(3, bins.ErrRateLimited)},
		{"503, then HTML", wire(in(answer(503, ""), answer(200, page))), unknown(2, errBadResponse)},
	} {
		t.Run(row.point, func(t *testing.T) {
			s := row.world(t)
			s.ofCall = []bins.Option{refunds.WithResubmit()}
			proveCell(t, s, site.submit, row.want)
		})
	}
}

// TestMatrixKeptConnection proves the rows of a connection that served a request
// before, where net/http has rules of its own: it sends a GET again by itself,
// which the service sees and the count of attempts does not.
func TestMatrixKeptConnection(t *testing.T) {
	for _, row := range []struct {
		name           string
		call           func(site, *testing.T, context.Context) result
		seen, attempts int
		is             error
	}{
		{"lookup", site.lookup, 4, 4, errNoAnswer},
		{"submit", site.submit, 1, 1, refunds.ErrOutcomeUnknown},
		{"download", site.download, 5, 4, errNoAnswer},
	} {
		for end, script := range map[string]script{"reset": reset, "end": sayAndClose("")} {
			t.Run(row.name+"/"+end, func(t *testing.T) {
				s := wire(in(answer(200, cardsJSON), script))(t)
				transport := &http.Transport{}
				defer transport.CloseIdleConnections()
				s.http = &http.Client{Transport: transport}
				if got := row.call(s, t, t.Context()); got.err != nil {
					t.Fatal(got.err)
				}
				got := row.call(s, t, t.Context())
				if !errors.Is(got.err, row.is) || got.attempts != row.attempts {
					t.Errorf("%d attempts: %v", got.attempts, got.err)
				}
				if n := s.seen() - 1; n != row.seen {
					t.Errorf("the service saw %d requests, want %d", n, row.seen)
				}
			})
		}
	}
}
