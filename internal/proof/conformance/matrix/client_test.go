package matrix

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/proof/conformance/operations"
	"github.com/carddata/carddata-go/internal/proof/testkit"
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
	ofClient := []bins.Option{bins.WithHTTPClient(&http.Client{}), bins.WithRateLimit(1, 1), bins.WithInsecureHTTP(), nil}
	for _, e := range operations.At(t, testkit.Base) {
		_, err := e.Call(none)
		refused(e.Name+" without a context", err)
		for _, option := range ofClient {
			_, err := e.Call(t.Context(), option)
			refused(e.Name+" with an option of clients", err)
			if e.Name == "refund" && !errors.Is(err, refunds.ErrNotSent) {
				t.Errorf("%s: not ErrNotSent: %v", e.Name, err)
			}
		}
	}
}

// TestOptionOfAnotherPackage: it would have no effect, so it is refused under its name.
func TestOptionOfAnotherPackage(t *testing.T) {
	for name, option := range map[string]bins.Option{
		"refunds.WithResubmit": refunds.WithResubmit(), "refunds.WithReceiptCheck": refunds.WithReceiptCheck(nil), "refunds.WithBeforeSend": refunds.WithBeforeSend(nil),
		"updater.WithNotReady": updater.WithNotReady(nil), "updater.WithWait": updater.WithWait(0, 0),
		"updater.WithRedirectHosts": updater.WithRedirectHosts(),
	} {
		_, errBins := bins.NewClient(testkit.Base, bins.StaticToken("key"), option)
		_, errRefunds := refunds.NewClient(testkit.Base, option)
		_, errUpdater := updater.NewClient(testkit.Base, merchant, updater.StaticToken("token"), option)
		for pkg, err := range map[string]error{"bins": errBins, "refunds": errRefunds, "updater": errUpdater} {
			own := strings.HasPrefix(name, pkg)
			if own != (err == nil) || !own && (!errors.Is(err, bins.ErrInvalidArgument) || !strings.Contains(err.Error(), name)) {
				t.Errorf("%s given to %s: %v", name, pkg, err)
			}
		}
	}
}

// TestPauseHoldsAllMerchants: after a Retry-After, the clients of other merchants send
// nothing either.
func TestPauseHoldsAllMerchants(t *testing.T) {
	mock := testkit.NewMock(http.MethodGet, testkit.Base+"/updater/inquiries/jobs/job/download", testkit.Answer(503, "", "Retry-After", "20"))
	client, err := updater.NewClient(testkit.Base, merchant, updater.StaticToken("token"), updater.WithHTTPClient(mock.Client()), updater.WithMaxRetries(0))
	if err != nil {
		t.Fatal(err)
	}
	sibling, err := client.ForMerchant("m-2")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Download(t.Context(), "job"); !errors.Is(err, updater.ErrServer) {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := sibling.Download(ctx, "job"); !errors.Is(err, updater.ErrRateLimited) || len(mock.Requests()) != 1 {
		t.Errorf("%d requests, %v", len(mock.Requests()), err)
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
