package outside

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/internal/proof/testkit/program"
	"github.com/carddata/carddata-go/internal/transport"
	"github.com/carddata/carddata-go/refunds"
)

// TestBehindProxies submits refunds through each proxy to a service that sometimes fails.
func TestBehindProxies(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	for _, proxy := range []struct {
		name string
		// repeats: it is set up to send a POST a second time, which no client can see.
		repeats bool
		start   func(t *testing.T, journals ...*journal) (address string)
	}{
		{"no proxy", false, func(_ *testing.T, journals ...*journal) string { return journals[0].address }},
		{"nginx, as it comes", false, func(t *testing.T, journals ...*journal) string { return nginx(t, "", "", journals...) }},
		{"nginx, that tries the next upstream", false, func(t *testing.T, journals ...*journal) string {
			return nginx(t, "", "proxy_next_upstream error timeout http_503;", journals...)
		}},
		{"nginx, that repeats a POST", true, func(t *testing.T, journals ...*journal) string {
			return nginx(t, "", "proxy_next_upstream error timeout http_503 non_idempotent;", journals...)
		}},
		{"haproxy, as it comes", false, func(t *testing.T, journals ...*journal) string { return haproxy(t, "", journals...) }},
		{"haproxy, that repeats a POST", true, func(t *testing.T, journals ...*journal) string {
			return haproxy(t, "retry-on all-retryable-errors", journals...)
		}},
	} {
		t.Run(proxy.name, func(t *testing.T) {
			t.Parallel()
			one, two := newJournal(t, usually()), newJournal(t, usually())
			told := submitAll(t, proxy.start(t, one, two), 2000)
			sum := map[refunds.Outcome]int{}
			doubled := 0
			for id, outcome := range told {
				n := received(id, one, two)
				sum[outcome]++
				if n > 1 {
					doubled++
				}
				switch {
				case n > 1 && !proxy.repeats:
					t.Errorf("%s: received %d times", id, n)
				case outcome == refunds.OutcomeAccepted && n == 0, outcome == refunds.OutcomeNotSent && n > 0,
					outcome == refunds.OutcomeRejected && n > 0 && !proxy.repeats:
					t.Errorf("%s: %v, and received %d times", id, outcome, n)
				}
			}
			t.Logf("%v; received twice: %d", sum, doubled)
		})
	}
}

// TestBehindARateLimit: nginx limits the rate, and says so by its status alone. Each refusal leaves
// a refund unknown, unless the caller knows that nothing was recorded.
func TestBehindARateLimit(t *testing.T) {
	testkit.Long(t) // and not beside others: in real time, a busy machine looks like a service that queues
	const n, perSecond = 2000, 200
	for name, limit := range map[string]struct {
		status string
		opts   []refunds.Option
		most   int // unknown: finding the limit costs a few dozen
	}{
		"503, the default":  {"", nil, n / 10},
		"429":               {"limit_req_status 429;", nil, n / 10},
		"429, WithRefusals": {"limit_req_status 429;", []refunds.Option{refunds.WithRefusals(429)}, 0},
		"503, WithRefusals": {"", []refunds.Option{refunds.WithRefusals(503)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJournal(t, always)
			zone := fmt.Sprintf("limit_req_zone $request_method zone=all:1m rate=%dr/s;", perSecond)
			socket := nginx(t, zone, "limit_req zone=all burst=5 nodelay; "+limit.status, j)
			began := time.Now()
			sum := map[refunds.Outcome]int{}
			for id, outcome := range submitAll(t, socket, n, limit.opts...) {
				sum[outcome]++
				if got := received(id, j); outcome != refunds.OutcomeUnknown && (outcome == refunds.OutcomeAccepted) != (got == 1) {
					t.Errorf("%s: %v, and received %d times", id, outcome, got)
				}
			}
			t.Logf("%v in %v", sum, time.Since(began).Round(time.Second/10))
			if sum[refunds.OutcomeUnknown] > limit.most {
				t.Errorf("%d of %d unknown", sum[refunds.OutcomeUnknown], n)
			}
		})
	}
}

func submitAll(t *testing.T, address string, n int, opts ...refunds.Option) map[string]refunds.Outcome {
	t.Helper()
	network := "tcp"
	if filepath.IsAbs(address) {
		network = "unix"
	}
	opts = append(opts, refunds.WithInsecureHTTP(), refunds.WithHTTPClient(&http.Client{
		Transport: &transport.Simulation{Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, address)
		}},
	}))
	client, err := refunds.NewClient("http://service.test", opts...)
	if err != nil {
		t.Fatal(err)
	}
	input := refunds.Items("acct_1", func(yield func(*refunds.Refund) bool) {
		for i := range n {
			if !yield(&refunds.Refund{RefundID: fmt.Sprint("rf_", i), Amount: new(int64(1)), Currency: "EUR"}) {
				return
			}
		}
	})
	told := map[string]refunds.Outcome{}
	for s, err := range client.SubmitAll(t.Context(), input, refunds.BulkOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		told[s.RefundID] = s.Outcome
	}
	if len(told) != n {
		t.Fatalf("%d results for %d refunds", len(told), n)
	}
	return told
}

// nginx starts one before the journals, and returns its socket.
func nginx(t *testing.T, zone, location string, journals ...*journal) string {
	t.Helper()
	var servers strings.Builder
	for _, j := range journals {
		fmt.Fprintf(&servers, "server %s max_fails=0; ", j.address)
	}
	dir := proxyDir(t)
	socket := filepath.Join(dir, "socket")
	start(t, socket, fmt.Sprintf(`daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/error.log;
events { worker_connections 1024; }
http {
  access_log off;
  client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/fastcgi; uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;
  upstream journals { %[2]s}
  %[3]s
  server { listen unix:%[4]s; location / { %[5]s proxy_pass http://journals; } }
}
`, dir, servers.String(), zone, socket, location), "nginx", "-p", dir, "-c")
	return socket
}

// haproxy starts one before the journals, and returns its socket.
func haproxy(t *testing.T, retries string, journals ...*journal) string {
	t.Helper()
	socket := filepath.Join(proxyDir(t), "socket")
	var config strings.Builder
	fmt.Fprintf(&config, `defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
  option redispatch
  %s
frontend in
  bind unix@%s
  default_backend journals
backend journals
`, retries, socket)
	for i, j := range journals {
		fmt.Fprintf(&config, "  server j%d %s\n", i, j.address)
	}
	start(t, socket, config.String(), "haproxy", "-db", "-f")
	return socket
}

// proxyDir is shorter than t.TempDir: the path of a socket has at most a hundred bytes.
func proxyDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "proxy-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// installed returns the path of a program. Without it, the test is skipped where that is allowed.
func installed(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		path, err = exec.LookPath("/usr/sbin/" + name)
	}
	if err != nil {
		if os.Getenv("CI_REQUIRE_SERVERS") != "" {
			t.Fatalf("%s is not installed", name)
		}
		t.Skipf("%s is not installed", name)
	}
	return path
}

// start runs a program with a configuration, and waits until it listens.
func start(t *testing.T, socket, config string, name string, args ...string) {
	t.Helper()
	path := installed(t, name)
	file := filepath.Join(filepath.Dir(socket), "config")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, append(args, file)...)
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	t.Cleanup(func() { cmd.Process.Kill(); <-ended })
	listens(t, name, "unix", socket, ended)
}

// listens waits until a program listens, and fails if it ends before.
func listens(t *testing.T, name, network, address string, ended <-chan struct{}) {
	t.Helper()
	program.WaitFor(t, func() bool {
		select {
		case <-ended:
			t.Fatalf("%s has ended", name)
		default:
		}
		c, err := net.Dial(network, address)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}
