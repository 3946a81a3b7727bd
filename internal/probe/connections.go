package probe

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

var (
	requestIDName = regexp.MustCompile(`(?i)req(uest)?-?id|correlation|trace-?(id|parent|context)|(transaction|tracking|activity|call)-?id|cf-(ray|id)`)
	quotaName     = regexp.MustCompile(`(?i)rate-?limit|quota|throttl|remaining`)
)

func servicePoints(seen facts) []Point {
	id := seen.headers(requestIDName)
	for _, name := range []string{"X-Request-Id", "X-Correlation-Id", "Request-Id"} { // as the library looks at them
		if slices.Contains(id, name) {
			id = []string{name}
		}
	}
	return []Point{seen.headerPoint(id[:min(1, len(id))]), seen.headerPoint(seen.headers(quotaName)), idlePoint(seen)}
}

// headers are the names of this kind that responses had.
func (f facts) headers(kind *regexp.Regexp) (names []string) {
	for _, fact := range f {
		for _, name := range fact.Headers {
			if kind.MatchString(name) {
				names = append(names, name)
			}
		}
	}
	return unique(names)
}

func (f facts) headerPoint(names []string) Point {
	responses := 0
	for _, fact := range f {
		if fact.Status > 0 {
			responses++
		}
	}
	return answer(responses, orNone(names)...)
}

// idlePoint prefers what was seen after a response: that is when a client keeps a
// connection. Before any request, servers often wait for another time.
func idlePoint(seen facts) Point {
	t := tally{}
	for _, id := range []string{"idle-after-response", "idle-bins", "idle-updater", "idle-refunds"} {
		if fact := seen[id]; fact != nil && (len(t) == 0 || seen["idle-after-response"] == nil) {
			t[fact.Idle]++
		}
	}
	return t.point()
}

const (
	idleWatch = 120 * time.Second
	idleGrace = 500 * time.Millisecond // one that closes after 120 s does so a little later
)

// connect sees what each area offers before any request.
func (e *sender) connect(ctx context.Context) {
	t := e.plan.Target
	for area, base := range map[string]string{"bins": t.BinURL, "updater": t.UpdaterURL, "refunds": t.RefundURL} {
		u, err := url.Parse(base)
		if base == "" || err != nil || e.ledger.Seen()["connect-"+area] != nil {
			continue
		}
		fact := &Fact{Entry: "connect-" + area}
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			if conn, err := e.dial(ctx, u, version); err == nil {
				if secure, ok := conn.(*tls.Conn); ok {
					fact.TLS, fact.ALPN = append(fact.TLS, tls.VersionName(version)), secure.ConnectionState().NegotiatedProtocol
				}
				conn.Close()
			}
		}
		e.ledger.keep(fact)
		if e.config.Mode == ModeConnect {
			if conn, err := e.dial(ctx, u, 0); err == nil {
				e.watch(conn, "idle-"+area)
			}
		}
	}
}

// Connections says what each area offers before any request.
func Connections(ledger *Ledger) (list []string) {
	for _, area := range []string{"bins", "updater", "refunds"} {
		if fact := ledger.Seen()["connect-"+area]; fact != nil && len(fact.TLS) > 0 {
			list = append(list, fmt.Sprintf("%s: %s; %s", area, strings.Join(fact.TLS, ", "), cmp.Or(fact.ALPN, "no ALPN")))
		}
	}
	return list
}

// dial makes a connection of one TLS version that offers HTTP/2, or with 0 one for
// HTTP/1.1.
func (e *sender) dial(ctx context.Context, u *url.URL, version uint16) (net.Conn, error) {
	port := cmp.Or(u.Port(), map[string]string{"https": "443", "http": "80"}[u.Scheme])
	conn, err := e.config.Dial(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil || u.Scheme != "https" {
		return conn, err
	}
	config := e.config.TLS.Clone()
	config.ServerName = cmp.Or(config.ServerName, u.Hostname())
	if version > 0 {
		config.MinVersion, config.MaxVersion, config.NextProtos = version, version, []string{"h2", "http/1.1"}
	}
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return secure, nil
}

// do sends a request. To watch its connection, it leaves that open.
func (e *sender) do(req *http.Request, idle bool) (*http.Response, net.Conn, error) {
	if !idle {
		resp, err := e.client.Do(req)
		return resp, nil, err
	}
	conn, err := e.dial(req.Context(), req.URL, 0)
	if err != nil {
		return nil, nil, err
	}
	conn.SetDeadline(time.Now().Add(requestTimeout))
	resp, err := (*http.Response)(nil), req.Write(conn)
	if err == nil {
		resp, err = http.ReadResponse(bufio.NewReader(conn), req)
	}
	if err != nil {
		conn.Close()
	}
	return resp, conn, err
}

// watch waits until the other side closes an idle connection.
func (e *sender) watch(conn net.Conn, id string) {
	e.watches.Go(func() {
		defer context.AfterFunc(e.stop, func() { conn.Close() })()
		defer conn.Close()
		began := time.Now()
		conn.SetReadDeadline(began.Add(idleWatch + idleGrace))
		_, err := io.Copy(io.Discard, conn) // some say something before they close
		idle := fmt.Sprintf("closed after %.0f s", max(1, math.Round(time.Since(began).Seconds())))
		if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
			idle = fmt.Sprintf("open after %.0f s", idleWatch.Seconds())
		}
		if e.stop.Err() == nil {
			e.ledger.keep(&Fact{Entry: id, Idle: idle})
		}
	})
}
