package matrix

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/proof/conformance/operations"
	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/internal/proof/testkit/options"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/updater"
)

// TestMisuseIsAnError proves that no value that Go lets a caller make panics.
func TestMisuseIsAnError(t *testing.T) {
	refused := func(name string, err error) {
		t.Helper()
		if !errors.Is(err, bins.ErrInvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, client := range map[string]*bins.Client{"a zero client": {}, "no client": nil} {
		_, err := client.Lookup(t.Context(), &bins.LookupRequest{Cards: bins.Cards("411111")})
		refused("lookup of "+name, err)
	}
	for name, client := range map[string]*refunds.Client{"a zero client": {}, "no client": nil} {
		_, err := client.Submit(t.Context(), "acc", &refunds.Refund{RefundID: "rf"})
		refused("refund of "+name, err)
	}
	for name, client := range map[string]*updater.Client{"a zero client": {}, "no client": nil} {
		_, err := client.Download(t.Context(), "job")
		refused("download of "+name, err)
		_, err = client.ForMerchant("m")
		refused("sibling of "+name, err)
	}
	_, err := new(updater.Download).Read(make([]byte, 1))
	refused("a zero download", err)
	if err := new(updater.Download).Close(); err != nil {
		t.Errorf("closing a zero download: %v", err)
	}

	for name, token := range map[string]bins.TokenSource{"no source": nil, "no function": bins.TokenFunc(nil), "an empty token": bins.StaticToken("")} {
		_, err := bins.NewClient(testkit.Base, token)
		refused(name, err)
		_, err = updater.NewClient(testkit.Base, merchant, token)
		refused(name+" of downloads", err)
	}
	var none context.Context
	for _, e := range operations.At(t, testkit.Base) {
		_, err := e.Call(none)
		refused(e.Name+" without a context", err)
		_, err = e.Call(t.Context(), options.WithMaxRetries(-1))
		refused(e.Name+" with an unusable option", err)
		if e.Name == "refund" && !errors.Is(err, refunds.ErrNotSent) {
			t.Errorf("%s: not ErrNotSent: %v", e.Name, err)
		}
	}
	_, err = bins.NewClient(testkit.Base, bins.StaticToken("key"), nil)
	refused("an option that is nil", err)
	_, err = refunds.NewClient(testkit.Base, refunds.WithResubmit(), nil)
	refused("an option of refunds that is nil", err)
	_, err = updater.NewClient(testkit.Base, merchant, updater.StaticToken("token"), nil)
	refused("an option of updater that is nil", err)
}

// TestPauseIsOfItsMerchant: three responses with a Retry-After hold back the client of their merchant, and no other.
func TestPauseIsOfItsMerchant(t *testing.T) {
	mock := testkit.NewMock(http.MethodGet, testkit.Base+"/updater/inquiries/jobs/job/download", testkit.Answer(200, "a,b"),
		testkit.Answer(503, "", "Retry-After", "20"), testkit.Answer(503, "", "Retry-After", "20"), testkit.Answer(503, "", "Retry-After", "20"), testkit.Answer(200, "a,b"))
	client, err := updater.NewClient(testkit.Base, merchant, updater.StaticToken("token"), updater.WithHTTPClient(mock.Client()), updater.WithMaxRetries(0))
	if err != nil {
		t.Fatal(err)
	}
	sibling, err := client.ForMerchant("m-2")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := sibling.Download(ctx, "job"); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if _, err := client.Download(ctx, "job"); !errors.Is(err, updater.ErrServer) {
			t.Fatal(err)
		}
	}
	if _, err := client.Download(ctx, "job"); !errors.Is(err, updater.ErrRateLimited) || len(mock.Requests()) != 4 {
		t.Errorf("%d requests, %v", len(mock.Requests()), err)
	}
	if _, err := sibling.Download(ctx, "job"); err != nil {
		t.Error(err)
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
