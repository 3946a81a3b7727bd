package bins_test

import (
	"errors"
	"testing"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/proof/testkit"
)

const path = "/bins/multiple"

// newClient returns a client of the mock, without retries.
func newClient(t testing.TB, mock *testkit.Mock, opts ...bins.Option) *bins.Client {
	t.Helper()
	opts = append([]bins.Option{bins.WithHTTPClient(mock.Client()), bins.WithMaxRetries(0)}, opts...)
	client, err := bins.NewClient(testkit.Base, bins.StaticToken("key-1"), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// request asks for one card, and keeps its JSON.
func request() *bins.LookupRequest {
	return &bins.LookupRequest{Cards: bins.Cards("45717360"), KeepRaw: true}
}

// decoded returns what a client reads from a body.
func decoded(t testing.TB, body string) *bins.LookupResponse {
	t.Helper()
	mock := newAnswer(200, body, "X-Request-Id", "req-7")
	resp, err := newClient(t, mock).Lookup(t.Context(), request())
	if err != nil {
		t.Fatalf("%v, body: %.200s", err, body)
	}
	if resp.RequestID != "req-7" {
		t.Errorf("the request id is %q", resp.RequestID)
	}
	return resp
}

// failure returns the error of a lookup, which must be an *Error.
func failure(t testing.TB, resp *bins.LookupResponse, err error) *bins.Error {
	t.Helper()
	failure, ok := errors.AsType[*bins.Error](err)
	if !ok || resp != nil {
		t.Fatalf("want nothing and an *Error, got %v and %T", resp, err)
	}
	return failure
}

// newAnswer returns a service that always sends the same response.
func newAnswer(status int, body string, header ...string) *testkit.Mock {
	return testkit.NewMock("POST", testkit.Base+path, testkit.Answer(status, body, header...))
}
