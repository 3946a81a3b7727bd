package matrix

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/carddata/carddata-go/internal/proof/testkit/options"
)

// TestMatrixBehindProxy proves the rows of a proxy that refuses. net/http reads
// the proxy's address once per process, so that they run in one of their own.
func TestMatrixBehindProxy(t *testing.T) {
	const inside = "CARDDATA_TEST_BEHIND_PROXY"
	if os.Getenv(inside) == "" {
		again := exec.Command(os.Args[0], "-test.run=^TestMatrixBehindProxy$", "-test.v")
		again.Env = append(os.Environ(), inside+"=1", "NO_PROXY=", "no_proxy=")
		out, err := again.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "--- PASS: TestMatrixBehindProxy/407/download") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	var serve atomic.Pointer[func(*net.TCPConn)]
	proxy := listen(t, func(_ *rawServer, c *net.TCPConn) { (*serve.Load())(c) })
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"} {
		t.Setenv(name, "http://"+proxy.address)
	}
	// A proxy would read what travels as plain http, and so is not asked.
	plain := site{base: "http://0.0.0.0:1", opts: []options.Option{options.WithInsecureHTTP()}}
	if got := plain.lookup(t, t.Context()); !errors.Is(got.err, errNoAnswer) || proxy.seenConnections() > 0 {
		t.Errorf("plain http made %d connections to the proxy: %v", proxy.seenConnections(), got.err)
	}

	behind := func(answer string) world {
		return func(t *testing.T) site {
			f := func(c *net.TCPConn) {
				req, err := http.ReadRequest(bufio.NewReader(c))
				if err != nil || req.Method != http.MethodConnect || len(req.Header) > 1 || req.Header.Get("User-Agent") == "" {
					t.Errorf("the proxy received %v, %v", req, err)
				}
				if answer == "" {
					reset(c, 0)
					return
				}
				sayAndClose(answer)(c, 0)
			}
			serve.Store(&f)
			before := proxy.seenConnections()
			return site{base: "https://service.test", seen: func() int { return proxy.seenConnections() - before }}
		}
	}
	for _, row := range []matrixRow{
		{"502", behind("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n"), fail(2, errNoAnswer), notSent(2, errNoAnswer), fail(2, errNoAnswer)},
		{"reset", behind(""), fail(4, errNoAnswer), notSent(3, errNoAnswer), fail(4, errNoAnswer)},
		{"407", behind("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n"), fail(1, errNoAnswer), notSent(1, errNoAnswer), fail(1, errNoAnswer)},
		{"403", behind("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"), fail(1, errNoAnswer), notSent(1, errNoAnswer), fail(1, errNoAnswer)},
		{"429", behind("HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n\r\n"), fail(2, errNoAnswer), notSent(2, errNoAnswer), fail(2, errNoAnswer)},
	} {
		for _, column := range columns {
			t.Run(row.point+"/"+column.name, func(t *testing.T) { proveCell(t, row.world(t), column.call, column.of(row)) })
		}
	}
}
