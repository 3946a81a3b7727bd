package matrix

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jarcoal/httpmock"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/updater"
)

// TestMisuseIsAnError proves that no value that Go lets a caller make panics.
func TestMisuseIsAnError(t *testing.T) {
	lookups, err := bins.NewClient("https://service.test", bins.StaticToken("key"))
	if err != nil {
		t.Fatal(err)
	}
	submits, err := refunds.NewClient("https://service.test")
	if err != nil {
		t.Fatal(err)
	}
	downloads, err := updater.NewClient("https://service.test", merchant, updater.StaticToken("token"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, one, refund := t.Context(), &bins.LookupRequest{Cards: bins.Cards("411111")}, &refunds.Refund{RefundID: "rf"}
	var none context.Context
	lookup := func(c *bins.Client, ctx context.Context, r *bins.LookupRequest, opts ...bins.Option) error {
		_, err := c.Lookup(ctx, r, opts...)
		return err
	}
	submit := func(c *refunds.Client, ctx context.Context, account string, r *refunds.Refund, opts ...bins.Option) error {
		_, err := c.Submit(ctx, account, r, opts...)
		return err
	}
	download := func(c *updater.Client, ctx context.Context, opts ...bins.Option) error {
		_, err := c.Download(ctx, "job", opts...)
		return err
	}
	sibling := func(c *updater.Client, id string) error { _, err := c.ForMerchant(id); return err }
	read := func(d *updater.Download) error { _, err := d.Read(make([]byte, 1)); return err }
	newBins := func(token bins.TokenSource, opts ...bins.Option) error {
		_, err := bins.NewClient("https://service.test", token, opts...)
		return err
	}
	newUpdater := func(token updater.TokenSource) error {
		_, err := updater.NewClient("https://service.test", merchant, token)
		return err
	}
	perClient := map[string]bins.Option{
		"WithHTTPClient": bins.WithHTTPClient(&http.Client{}), "WithRateLimit": bins.WithRateLimit(1, 1), "WithInsecureHTTP": bins.WithInsecureHTTP(),
	}
	errs := map[string]error{
		"lookup of a zero client": lookup(&bins.Client{}, ctx, one), "lookup of nil": lookup(nil, ctx, one),
		"submit of a zero client": submit(&refunds.Client{}, ctx, "acc", refund), "submit of nil": submit(nil, ctx, "acc", refund),
		"download of a zero client": download(&updater.Client{}, ctx), "download of nil": download(nil, ctx),
		"sibling of a zero client": sibling(&updater.Client{}, "m"), "sibling of nil": sibling(nil, "m"),
		"sibling without an id": sibling(downloads, ""), "a zero download": read(&updater.Download{}),
		"lookup, nil context": lookup(lookups, none, one), "submit, nil context": submit(submits, none, "acc", refund),
		"download, nil context": download(downloads, none),
		"lookup of no request":  lookup(lookups, ctx, nil), "lookup of no cards": lookup(lookups, ctx, &bins.LookupRequest{}),
		"submit of no refund": submit(submits, ctx, "acc", nil), "submit of a zero refund": submit(submits, ctx, "acc", &refunds.Refund{}),
		"submit of no account": submit(submits, ctx, "", refund),
		"lookup, nil option":   lookup(lookups, ctx, one, nil), "submit, nil option": submit(submits, ctx, "acc", refund, nil),
		"download, nil option": download(downloads, ctx, nil),
		"a nil token source":   newBins(nil), "a nil token function": newBins(bins.TokenFunc(nil)), "an empty token": newBins(bins.StaticToken("")),
		"a nil token source of downloads": newUpdater(nil), "a nil token function of downloads": newUpdater(updater.TokenFunc(nil)),
		"an empty token of downloads": newUpdater(updater.StaticToken("")),
		"a client with a nil option":  newBins(bins.StaticToken("key"), nil), "a nil http.Client": newBins(bins.StaticToken("key"), bins.WithHTTPClient(nil)),
	}
	for name, option := range perClient {
		errs["lookup with "+name] = lookup(lookups, ctx, one, option)
		errs["submit with "+name] = submit(submits, ctx, "acc", refund, option)
		errs["download with "+name] = download(downloads, ctx, option)
	}
	for name, err := range errs {
		if !errors.Is(err, bins.ErrInvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
		if strings.HasPrefix(name, "submit") && !errors.Is(err, refunds.ErrNotSent) {
			t.Errorf("%s: not ErrNotSent: %v", name, err)
		}
	}
	if err := new(updater.Download).Close(); err != nil {
		t.Errorf("closing a zero download: %v", err)
	}
}

// TestPauseHoldsAllCalls proves that the wait which one call was asked for holds
// those that begin later, also for other merchants, and fails those at once
// that cannot outlast it.
func TestPauseHoldsAllCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mock := httpmock.NewMockTransport()
		var surprises atomic.Int64
		mock.RegisterNoResponder(func(*http.Request) (*http.Response, error) {
			surprises.Add(1)
			return nil, errors.New("not a request of this test")
		})
		began := time.Now()
		var arrived []time.Duration
		var mu sync.Mutex
		mock.RegisterResponder(http.MethodGet, `=~^https://service\.test/updater/inquiries/jobs/job-[0-9]/download$`,
			func(r *http.Request) (*http.Response, error) {
				mu.Lock()
				defer mu.Unlock()
				arrived = append(arrived, time.Since(began))
				resp := httpmock.NewStringResponse(200, "")
				if len(arrived) == 1 {
					resp.StatusCode = 503
					resp.Header.Set("Retry-After", "20")
				}
				return resp, nil
			})
		client, err := updater.NewClient("https://service.test", merchant, updater.StaticToken("token"),
			updater.WithHTTPClient(&http.Client{Transport: mock}), updater.WithMaxRetries(0))
		if err != nil {
			t.Fatal(err)
		}
		sibling, err := client.ForMerchant("m-2")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Download(t.Context(), "job-0"); !errors.Is(err, updater.ErrServer) {
			t.Fatal(err)
		}
		impatient, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if _, err := sibling.Download(impatient, "job-1"); !errors.Is(err, updater.ErrLocalLimit) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a call that cannot outlast the pause: %v", err)
		}
		if took := time.Since(began); took != 0 {
			t.Errorf("the refusal took %v", took)
		}
		var calls sync.WaitGroup
		for i, c := range []*updater.Client{client, sibling, client, sibling} {
			time.Sleep(time.Second)
			calls.Go(func() {
				// The one with the least to spare must still be let through in time.
				ctx, cancel := context.WithDeadline(t.Context(), began.Add(20*time.Second+time.Duration(i+1)*time.Microsecond))
				defer cancel()
				if d, err := c.Download(ctx, fmt.Sprint("job-", i+2)); err != nil {
					t.Errorf("call %d: %v", i, err)
				} else {
					d.Close()
				}
			})
		}
		calls.Wait()
		for _, at := range arrived[1:] {
			if at < 20*time.Second || at > 23*time.Second {
				t.Errorf("a request arrived after %v", at)
			}
		}
		if len(arrived) != 5 || surprises.Load() > 0 {
			t.Errorf("%d requests, %d of them surprises", len(arrived), surprises.Load())
		}
	})
}
