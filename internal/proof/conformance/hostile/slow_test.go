package hostile_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/proof/conformance/operations"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/updater"
)

// TestOneByteASecond answers so slowly that no read ever waits long. Each call
// ends by the bounds that it has: of the attempt, of an error's body, and of the
// caller's deadline.
func TestOneByteASecond(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n"
	const refused = "HTTP/1.1 400 Bad Request\r\nContent-Length: 5000\r\n\r\n"
	type end struct {
		err   error
		after time.Duration
	}
	for _, test := range []struct {
		name  string
		swift string // before the bytes begin to trickle
		slow  string
		ends  [3]end // of a lookup, a refund and a download
	}{
		{"a header", "", ok, [3]end{
			{bins.ErrTimeout, 10 * time.Second}, {refunds.ErrOutcomeUnknown, 35 * time.Second}, {updater.ErrTimeout, 30 * time.Second}}},
		{"a result", ok, strings.Repeat(" ", 5000), [3]end{
			{bins.ErrTimeout, 10 * time.Second}, {nil, 35 * time.Second}, {context.DeadlineExceeded, time.Minute}}},
		{"an error", refused, strings.Repeat(" ", 5000), [3]end{
			{bins.ErrBadRequest, 5 * time.Second}, {refunds.ErrRejected, 5 * time.Second}, {updater.ErrBadRequest, 5 * time.Second}}},
	} {
		for i, want := range test.ends {
			synctest.Test(t, func(t *testing.T) {
				trickle := func(c net.Conn) {
					if _, err := c.Read(make([]byte, 4096)); err != nil {
						return
					}
					io.WriteString(c, test.swift)
					for j := range test.slow {
						time.Sleep(time.Second)
						if _, err := io.WriteString(c, test.slow[j:j+1]); err != nil {
							return
						}
					}
				}
				transport := operations.InMemory(trickle)
				transport.DisableKeepAlives = true
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				e := operations.At(t, "http://127.0.0.1", bins.WithMaxRetries(0), bins.WithHTTPClient(&http.Client{Transport: transport}))[i]
				began := time.Now()
				v, err := e.Call(ctx)
				if d, ok := v.(*updater.Download); ok && err == nil {
					_, err = io.Copy(io.Discard, d)
					d.Close()
				}
				if took := time.Since(began); !errors.Is(err, want.err) || took != want.after {
					t.Errorf("%s of %s: %v after %v, want %v after %v", test.name, e.Name, err, took, want.err, want.after)
				}
				time.Sleep(2 * time.Second) // until the service has seen it
			})
		}
	}
}
