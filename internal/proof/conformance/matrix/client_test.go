package matrix

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/proof/testkit"
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
	// What only another package has would have no effect, and says so under its name.
	for name, option := range map[string]bins.Option{
		"refunds.WithResubmit": refunds.WithResubmit(), "refunds.WithReceiptCheck": refunds.WithReceiptCheck(nil), "refunds.WithBeforeSend": refunds.WithBeforeSend(nil),
		"updater.WithNotReady": updater.WithNotReady(nil), "updater.WithWait": updater.WithWait(0, 0), "updater.WithEncodedContent": updater.WithEncodedContent(),
		"updater.WithRedirectHosts": updater.WithRedirectHosts(), "updater.WithResumeTimeout": updater.WithResumeTimeout(0),
	} {
		_, newRefunds := refunds.NewClient("https://service.test", option)
		_, newUpdater := updater.NewClient("https://service.test", merchant, updater.StaticToken("token"), option)
		foreign := map[string]error{"lookup": lookup(lookups, ctx, one, option), "new bins": newBins(bins.StaticToken("key"), option)}
		if strings.HasPrefix(name, "refunds") {
			foreign["download"], foreign["new updater"] = download(downloads, ctx, option), newUpdater
			if newRefunds != nil {
				t.Errorf("%s: %v", name, newRefunds)
			}
		} else {
			foreign["submit"], foreign["new refunds"] = submit(submits, ctx, "acc", refund, option), newRefunds
			if newUpdater != nil {
				t.Errorf("%s: %v", name, newUpdater)
			}
		}
		for call, err := range foreign {
			errs[call+" with "+name] = err
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s with %s: %v", call, name, err)
			}
		}
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
