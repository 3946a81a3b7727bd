// Package operations calls the three operations of the library in one way, so
// that one table can prove a property of all of them. Only tests import it.
package operations

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/proof/testkit/options"
	"github.com/carddata/carddata-go/internal/sandbox/memnet"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/updater"
)

// An Operation is one of the three operations, ready to be called.
type Operation struct {
	Name   string
	Client any
	Call   func(ctx context.Context, opts ...options.Option) (any, error)
}

// New makes the three clients of one service and returns lookup, refund and
// download, in this order.
func New(base string, args Arguments, opts ...options.Option) (list []Operation, err error) {
	lookups, errLookups := bins.NewClient(base, args.Key, options.For[bins.Option](opts)...)
	submissions, errSubmissions := refunds.NewClient(base, options.For[refunds.Option](opts)...)
	downloads, errDownloads := updater.NewClient(base, args.Merchant, args.Token, options.For[updater.Option](opts)...)
	if err := errors.Join(errLookups, errSubmissions, errDownloads); err != nil {
		return nil, err
	}
	return []Operation{
		{"lookup", lookups, func(ctx context.Context, opts ...options.Option) (any, error) {
			return lookups.Lookup(ctx, &bins.LookupRequest{Cards: bins.Cards(args.Cards...), KeepRaw: true}, options.For[bins.CallOption](opts)...)
		}},
		{"refund", submissions, func(ctx context.Context, opts ...options.Option) (any, error) {
			return submissions.Submit(ctx, args.Account, args.Refund, options.For[refunds.CallOption](opts)...)
		}},
		{"download", downloads, func(ctx context.Context, opts ...options.Option) (any, error) {
			d, err := downloads.Download(ctx, args.Job, options.For[updater.CallOption](opts)...)
			if err != nil {
				return nil, err
			}
			_, err = io.Copy(io.Discard, d)
			return d, cmp.Or(err, d.Close())
		}},
	}, nil
}

// Arguments are the arguments of the three operations.
type Arguments struct {
	Key, Token             bins.TokenSource
	Merchant, Account, Job string
	Cards                  []string
	Refund                 *refunds.Refund
}

// Plain returns arguments without anything special.
func Plain() Arguments {
	return Arguments{
		Key: bins.StaticToken("key"), Token: bins.StaticToken("token"), Merchant: "merchant", Account: "account", Job: "job",
		Cards: []string{"411111"}, Refund: &refunds.Refund{RefundID: "refund-1"},
	}
}

// At is New with plain arguments and without pauses between attempts.
func At(t *testing.T, base string, opts ...options.Option) []Operation {
	t.Helper()
	list, err := New(base, Plain(), append(opts, options.WithRetryWait(0, 0))...)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// A RoundTripper is an HTTP transport of the caller's.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f RoundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// InMemory is net/http's transport in a bubble. It hands each connection to serve.
func InMemory(serve func(net.Conn)) *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		l := memnet.Listen()
		defer l.Close()
		client, err := l.Dial(ctx)
		if err != nil {
			return nil, err
		}
		server, err := l.Accept()
		if err != nil {
			return nil, err
		}
		go func() {
			defer server.Close()
			serve(server)
		}()
		return client, nil
	}}
}
