package updater_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/updater"
	"github.com/carddata/carddata-go/updater/updatertest"

	"github.com/jarcoal/httpmock"
)

const path = "/updater/inquiries/jobs/job-1/download"

func newMock(responses ...httpmock.Responder) *testkit.Mock {
	return testkit.NewMock("GET", testkit.Base+path, responses...)
}

// newClient returns a client of the mock that does not wait.
func newClient(t testing.TB, mock *testkit.Mock, opts ...updater.Option) *updater.Client {
	t.Helper()
	opts = append([]updater.Option{updater.WithHTTPClient(mock.Client()), updater.WithRetryWait(0, 0)}, opts...)
	client, err := updater.NewClient(testkit.Base, "merchant-1", updater.StaticToken("token-1"), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// download opens job-1 of a service with these responses.
func download(t testing.TB, responses ...httpmock.Responder) (*testkit.Mock, *updater.Download, error) {
	t.Helper()
	mock := newMock(responses...)
	d, err := newClient(t, mock).Download(t.Context(), "job-1")
	return mock, d, err
}

// open opens job 7 until the test ends.
func open(t *testing.T, ctx context.Context, client *updater.Client) *updater.Download {
	t.Helper()
	d, err := client.Download(ctx, "7")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// bubble runs a subtest in virtual time.
func bubble(t *testing.T, name string, test func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, test) })
}

// failure returns the error of a download as the *Error that it must be.
func failure(t testing.TB, d *updater.Download, err error) *updater.Error {
	t.Helper()
	failure, ok := errors.AsType[*updater.Error](err)
	if !ok || d != nil {
		t.Fatalf("want nothing and an *Error, got %v and %T %v", d, err, err)
	}
	return failure
}

type limiterFunc func(context.Context) error

func (f limiterFunc) Wait(ctx context.Context) error { return f(ctx) }

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// pieces keeps each write.
type pieces [][]byte

func (w *pieces) Write(p []byte) (int, error) {
	*w = append(*w, bytes.Clone(p))
	return len(p), nil
}

func debugLog(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// show returns a file for %+v with its fields.
func show(file *updater.File) any {
	type fields updater.File
	return (*fields)(file)
}

// scripted is the option of a client that meets the faults that choose returns, each as its
// request leaves.
func scripted(fake *updatertest.Server, choose func(*http.Request) updatertest.Fault) updater.Option {
	network := fake.HTTPClient().Transport
	return updater.WithHTTPClient(&http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		fake.Script(choose(r))
		return network.RoundTrip(r)
	})})
}

// partOf sends a part of the content, whatever range is asked for.
func partOf(content []byte, from, end int) updatertest.Fault {
	of := fmt.Sprintf("bytes %d-%d/%d", from, end-1, len(content))
	return updatertest.Fault{Status: http.StatusPartialContent, Header: http.Header{"Content-Range": {of}}, Body: new(string(content[from:end]))}
}

var (
	inChunks = updatertest.Fault{Header: http.Header{"Content-Length": nil}}
	// unframed is a body whose end is that of its connection. net/http does not send this header.
	unframed = updatertest.Fault{Header: http.Header{"Content-Length": nil, "Transfer-Encoding": {"identity"}}}
)
