package matrix

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/proof/conformance/operations"
	"github.com/carddata/carddata-go/internal/proof/testkit/options"
)

// local is a world where the call ends before the network; a server is there to see
// that nothing arrives.
func local(change ...func(*site)) world { return wire(answer(200, cardsJSON), change...) }

func unusable(s *site) { s.unusable = true }

func with(opts ...options.Option) func(*site) {
	return func(s *site) { s.opts = append(s.opts, opts...) }
}

func source(f func(context.Context) (string, error)) func(*site) {
	return func(s *site) { s.token = bins.TokenFunc(f) }
}

// spent is a limiter that has no leave to give within an hour.
func spent(s *site) {
	l := rate.NewLimiter(rate.Every(time.Hour), 1)
	l.Allow()
	with(options.WithLimiter(l))(s)
}

// renewing is a source that answers with another token each time.
func renewing(s *site) {
	var asked atomic.Int64
	source(func(context.Context) (string, error) {
		return "token-" + string(rune('a'+asked.Add(1))), nil
	})(s)
}

func ended(s *site) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s.ctx = ctx
}

// dialing is a world that counts dials. Each ends as dial says. The HTTP
// transport is net/http's, so that its events are the true ones.
func dialing(dial func(ctx context.Context, network, address string) (net.Conn, error)) world {
	return func(t *testing.T) site {
		var dials atomic.Int64
		transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			dials.Add(1)
			return dial(ctx, network, address)
		}}
		t.Cleanup(transport.CloseIdleConnections)
		return site{
			base: "https://service.test", http: &http.Client{Transport: transport},
			seen: func() int { return int(dials.Load()) },
		}
	}
}

func dialError(err error) world {
	return dialing(func(_ context.Context, network, _ string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	})
}

// refusedPort is a world of the library's own transport, at a port where nothing
// listens.
func refusedPort(*testing.T) site { return site{base: "http://127.0.0.1:1"} }

// mute is a transport of the caller's that reports no events.
func mute(err error) world {
	return func(*testing.T) site {
		var asked atomic.Int64
		return site{
			base: "https://service.test",
			http: &http.Client{Transport: operations.RoundTripper(func(r *http.Request) (*http.Response, error) {
				asked.Add(1)
				if r.Body != nil {
					r.Body.Close()
				}
				return nil, err
			})},
			seen: func() int { return int(asked.Load()) },
		}
	}
}

var errMute = errors.New("a transport's own error")

func zipped(plain string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, plain)
	w.Close()
	return b.String()
}
