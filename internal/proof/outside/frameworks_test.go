//go:build unix

package outside

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/internal/proof/testkit/options"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/updater"
)

// A framework is a web framework with its defaults, and a small service on it. The service writes
// a refund into its journal before it responds.
type framework struct {
	name     string
	needs    []string // a command that fails if it is not installed
	command  []string
	environs []string
}

var frameworks = []framework{
	{"Flask", []string{"/usr/bin/python3", "-c", "import flask"}, []string{"/usr/bin/python3", "testdata/flask_app.py", "PORT"}, nil},
	{"Django", []string{"/usr/bin/python3", "-c", "import django"}, []string{"/usr/bin/python3", "testdata/django_app.py", "PORT"}, nil},
	{"PHP", []string{"php", "-v"}, []string{"php", "-S", "127.0.0.1:PORT", "testdata/php_app.php"}, []string{"PHP_CLI_SERVER_WORKERS=4"}},
	{"Sinatra", []string{"ruby", "-e", "require 'sinatra/base'; require 'webrick'"}, []string{"ruby", "testdata/sinatra_app.rb", "PORT"}, nil},
	{"Express", []string{"node", "-e", "require('express')"}, []string{"node", "testdata/express_app.js", "PORT"}, nil},
	{"Fastify", []string{"node", "-e", "require('fastify')"}, []string{"node", "testdata/fastify_app.js", "PORT"}, nil},
}

// A running framework can be killed and started again.
type running struct {
	framework
	t                *testing.T
	address          string
	journal, content string
	mu               sync.Mutex
	cmd              *exec.Cmd
	ended            chan struct{} // closed when it has
}

// run starts a framework with a content for downloads. NODE_PATH leads to the packages of npm.
func (f framework) run(t *testing.T, content []byte) *running {
	t.Helper()
	if out, err := exec.Command(f.needs[0], f.needs[1:]...).CombinedOutput(); err != nil {
		if os.Getenv("CI_REQUIRE_SERVERS") != "" {
			t.Fatalf("%s is not installed: %s", f.name, out)
		}
		t.Skipf("%s is not installed", f.name)
	}
	dir := t.TempDir()
	r := &running{framework: f, t: t, address: freeAddress(t), journal: filepath.Join(dir, "journal"), content: filepath.Join(dir, "content.csv")}
	r.replace(content, time.Now().Add(-48*time.Hour))
	if err := os.WriteFile(r.journal, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.start()
	t.Cleanup(r.kill)
	return r
}

// ports are not those that the system gives to connections and listeners, and each is given once: a
// program may be killed, and started again later.
var ports atomic.Uint32

// freeAddress returns an address for a program that wants a number.
func freeAddress(t *testing.T) string {
	t.Helper()
	const first, most = 20_000, 12_000
	for range most {
		n := (uint32(os.Getpid())*97 + ports.Add(1)) % most // other processes begin elsewhere
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first+n))
		if err == nil {
			defer listener.Close()
			return listener.Addr().String()
		}
	}
	t.Fatal("no free port")
	return ""
}

func (r *running) start() {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	_, port, _ := net.SplitHostPort(r.address)
	args := make([]string, len(r.command))
	for i, arg := range r.command {
		args[i] = strings.ReplaceAll(arg, "PORT", port)
	}
	r.cmd = exec.Command(args[0], args[1:]...)
	r.cmd.Env = append(append(os.Environ(), "JOURNAL="+r.journal, "CONTENT="+r.content), r.environs...)
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := r.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.ended = make(chan struct{})
	go func() { r.cmd.Wait(); close(r.ended) }()
	listens(r.t, r.name, "tcp", r.address, r.ended)
}

func (r *running) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL)
	<-r.ended
}

// replace replaces the content at once, as a deployment does.
func (r *running) replace(content []byte, modified time.Time) {
	if os.WriteFile(r.content+".new", content, 0o600) != nil || os.Chtimes(r.content+".new", modified, modified) != nil || os.Rename(r.content+".new", r.content) != nil {
		r.t.Error("the content cannot be replaced")
	}
}

// recorded counts how often each refund is in the journal.
func (r *running) recorded() map[string]int {
	journal, err := os.ReadFile(r.journal)
	if err != nil {
		r.t.Fatal(err)
	}
	counts := map[string]int{}
	for line := range strings.Lines(string(journal)) {
		counts[strings.TrimSpace(line)]++
	}
	return counts
}

// cutting forwards connections, and cuts some of them after a number of bytes of the response. It
// calls onCut before the client can notice.
func cutting(t *testing.T, address string, share float64, most int64, onCut func()) (front string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	random, lock := rand.New(rand.NewPCG(1, 2)), sync.Mutex{}
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			lock.Lock()
			cut, after := random.Float64() < share, random.Int64N(most)
			lock.Unlock()
			go func() {
				defer c.Close()
				s, err := net.Dial("tcp", address)
				if err != nil {
					return
				}
				defer s.Close()
				go func() { io.Copy(s, c); s.(*net.TCPConn).CloseWrite() }()
				if cut {
					io.CopyN(c, s, after)
					onCut()
					return
				}
				io.Copy(c, s)
			}()
		}
	}()
	return listener.Addr().String()
}

func contents() (a, b []byte) {
	for i := range 40_000 {
		a = fmt.Appendf(a, "4%015d,12/29\n", i)
	}
	b = bytes.ReplaceAll(a, []byte("12/29"), []byte("01/30"))
	return a, b
}

// TestFrameworks: without a fault, every word is right, and nothing pauses.
func TestFrameworks(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	content, _ := contents()
	for _, f := range frameworks {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			service := f.run(t, content)
			service.meet("http://"+service.address, content)
		})
	}
}

// meet uses all three operations at an address of the service, which has no fault.
func (r *running) meet(base string, content []byte, opts ...options.Option) {
	t := r.t
	t.Helper()
	opts = append(opts, options.WithInsecureHTTP())
	client, err := refunds.NewClient(base, options.For[refunds.Option](opts)...)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		kind   string
		action refunds.Action
	}{
		{"empty", refunds.ActionDone}, {"none", refunds.ActionDone}, {"ok", refunds.ActionDone}, {"json", refunds.ActionDone},
		{"bad", refunds.ActionCorrect}, {"boom", refunds.ActionFindOut}, {"gone", refunds.ActionFindOut},
		{"errors", refunds.ActionFindOut}, {"problem", refunds.ActionFindOut}, {"page", refunds.ActionFindOut},
	} {
		// What fails holds up no other refund.
		for j := range 2 {
			for _, kind := range []string{want.kind, "json"} {
				_, err := client.Submit(t.Context(), "acct_1", &refunds.Refund{RefundID: fmt.Sprint(kind, 2*i+j)})
				if action := refunds.ActionOf(err); kind == want.kind && action != want.action || kind != want.kind && action != refunds.ActionDone {
					t.Errorf("%s: %v", kind, err)
				}
			}
		}
	}
	if n := len(r.recorded()); n != 30 {
		t.Errorf("%d refunds recorded", n)
	}

	lookups, err := bins.NewClient(base, bins.StaticToken("key"), options.For[bins.Option](opts)...)
	if err != nil {
		t.Fatal(err)
	}
	cards := 0
	for r, err := range lookups.LookupAll(t.Context(), numbers(300), bins.BulkOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Card(); err != nil {
			t.Error(err)
		}
		cards++
	}
	if cards != 300 {
		t.Errorf("%d cards", cards)
	}

	path := filepath.Join(t.TempDir(), "result.csv")
	if _, err := downloads(t, base, options.For[updater.Option](opts)...).DownloadFile(t.Context(), "42", path, updater.FileOptions{}); err != nil {
		t.Error(err)
	}
	if got, _ := os.ReadFile(path); !bytes.Equal(got, content) {
		t.Errorf("%d bytes", len(got))
	}
}

// TestFrameworksBehindCuts: whatever is cut or killed, no word about a refund is wrong, and each
// file is whole and of one version, also if its content is replaced meanwhile.
func TestFrameworksBehindCuts(t *testing.T) {
	testkit.Long(t)
	t.Parallel()
	a, b := contents()
	for _, f := range frameworks {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			service := f.run(t, a)
			client, err := refunds.NewClient("http://"+cutting(t, service.address, 0.1, 200, func() {}), refunds.WithInsecureHTTP())
			if err != nil {
				t.Fatal(err)
			}
			outcomes := map[string]refunds.Outcome{}
			input := refunds.Items("acct_1", func(yield func(*refunds.Refund) bool) {
				for i := range 200 {
					if i == 100 {
						service.kill()
						service.start()
					}
					if !yield(&refunds.Refund{RefundID: fmt.Sprint([]string{"empty", "ok", "json"}[i%3], i)}) {
						return
					}
				}
			})
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			for s, err := range client.SubmitAll(ctx, input, refunds.BulkOptions{Concurrency: 4}) {
				if err != nil {
					t.Fatal(err)
				}
				outcomes[s.RefundID] = s.Outcome
			}
			lookups, err := bins.NewClient("http://"+cutting(t, service.address, 0.3, 4000, func() {}), bins.StaticToken("key"), bins.WithInsecureHTTP())
			if err != nil {
				t.Fatal(err)
			}
			cards := 0
			for r, err := range lookups.LookupAll(ctx, numbers(2000), bins.BulkOptions{Concurrency: 4}) {
				card, failed := r.Card()
				if err != nil || failed != nil || card.CardBrand != "VISA" || r.Result.BIN != r.Input.Reveal() {
					t.Fatal(r, err, failed)
				}
				cards++
			}
			if cards != 2000 {
				t.Errorf("%d cards", cards)
			}
			recorded, sum := service.recorded(), map[refunds.Outcome]int{}
			for id, outcome := range outcomes {
				sum[outcome]++
				if n := recorded[id]; n > 1 || outcome == refunds.OutcomeAccepted && n != 1 || (outcome == refunds.OutcomeRejected || outcome == refunds.OutcomeNotSent) && n != 0 {
					t.Errorf("%s: %v, and recorded %d times", id, outcome, n)
				}
			}
			if len(outcomes) != 200 {
				t.Errorf("%d results", len(outcomes))
			}

			// Replaced between two requests, because some frameworks look at a file and open it
			// later, and then its header is of another version.
			var lock sync.Mutex
			cuts := 0
			front := cutting(t, service.address, 0.6, int64(len(a)), func() {
				lock.Lock()
				defer lock.Unlock()
				switch cuts++; cuts % 4 {
				case 2: // killed in the middle of a download
					service.kill()
					service.start()
				case 0:
					service.replace([][]byte{a, b}[cuts%2], time.Now().Add(-time.Duration(cuts)*time.Hour))
				}
			})
			whole, failed := 0, 0
			for range 12 {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				path := filepath.Join(t.TempDir(), "result.csv")
				_, err := downloads(t, "http://"+front).DownloadFile(ctx, "42", path, updater.FileOptions{})
				cancel()
				switch got, _ := os.ReadFile(path); {
				case err == nil && (bytes.Equal(got, a) || bytes.Equal(got, b)):
					whole++
				case err != nil && len(got) == 0:
					failed++
					if !errors.As(err, new(*updater.Error)) {
						t.Error(err)
					}
				default:
					t.Errorf("%d bytes of a mixed file, %v", len(got), err)
				}
			}
			t.Logf("refunds %v, files %d whole, %d failed", sum, whole, failed)
		})
	}
}

func downloads(t *testing.T, base string, opts ...updater.Option) *updater.Client {
	t.Helper()
	opts = append(opts, updater.WithInsecureHTTP(), updater.WithRetryWait(time.Millisecond, 5*time.Millisecond))
	client, err := updater.NewClient(base, "merchant-1", updater.StaticToken("token"), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func numbers(n int) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for i := range n {
			if !yield(fmt.Sprintf("4%07d", i)) {
				return
			}
		}
	}
}
