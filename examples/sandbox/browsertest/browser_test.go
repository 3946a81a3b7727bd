package browsertest

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/carddata/carddata-go/examples/internal/program"
)

var (
	binary  string          // of the sandbox
	browser context.Context // nil without a browser
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	chromium := findChromium()
	if chromium == "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "browsertest")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "sandbox.exe")
	if out, err := exec.Command("go", "build", "-C", "..", "-buildvcs=false", "-o", binary, ".").CombinedOutput(); err != nil {
		panic(fmt.Sprintf("go build: %v\n%s", err, out))
	}
	options := slices.Concat(chromedp.DefaultExecAllocatorOptions[:], []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(chromium),
		chromedp.Flag("host-resolver-rules", "MAP rebound.example 127.0.0.1"),
	})
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // which Chromium refuses to root
	}
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	defer end()
	var stop context.CancelFunc
	browser, stop = chromedp.NewContext(allocator)
	defer stop()
	if err := chromedp.Do(browser); err != nil {
		panic(err)
	}
	return m.Run()
}

func findChromium() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// A tab shows the page of a sandbox of its own.
type tab struct {
	*testing.T
	ctx context.Context
	url string

	mu     sync.Mutex
	errors []string
}

// openTab opens a tab of that size. Whatever the browser complains about fails
// the test.
func openTab(t *testing.T, width, height int64, features ...*emulation.MediaFeature) *tab {
	t.Helper()
	if browser == nil {
		if os.Getenv("CI_REQUIRE_SERVERS") != "" {
			t.Fatal("Chromium is not installed")
		}
		t.Skip("Chromium is not installed (on Debian: apt-get install chromium)")
	}
	b := &tab{T: t, url: startSandbox(t)}
	ctx, stop := chromedp.NewContext(browser, chromedp.WithListener(b.listen))
	t.Cleanup(stop)
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	t.Cleanup(cancel)
	b.ctx = ctx
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.errors) > 0 {
			t.Errorf("the browser complained:\n%s", strings.Join(b.errors, "\n"))
		}
	})
	b.do(chromedp.EmulateViewport(width, height))
	if _, err := chromedp.Run(ctx, func(ctx context.Context, target *chromedp.Target) (cdp.Empty, error) {
		return cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
	}); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.Navigate(b.url))
	b.wait(`document.getElementById("link").textContent === "live"`)
	return b
}

func (b *tab) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.errors = append(b.errors, e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		b.errors = append(b.errors, "console."+string(e.Type))
	case *log.EventEntryAdded:
		b.errors = append(b.errors, e.Entry.Text)
	}
}

func (b *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.Fatal(err)
	}
}

func evaluate[T any](b *tab, expression string) T {
	b.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatalf("%s: %v", expression, err)
	}
	return v
}

// wait waits until an expression is true. chromedp.Poll does not work under the
// content security policy of the page.
func (b *tab) wait(expression string) {
	b.Helper()
	evaluate := chromedp.Evaluate[chromedp.Void](`new Promise(resolve => {
		const look = () => (`+expression+`) ? resolve() : setTimeout(look, 10);
		look();
	})`, chromedp.EvalAwaitPromise)
	ctx, cancel := context.WithTimeout(b.ctx, 20*time.Second)
	defer cancel()
	if err := chromedp.Do(ctx, evaluate); err != nil {
		text, _ := chromedp.Run(b.ctx, chromedp.Evaluate[string]("document.body.innerText"))
		b.Fatalf("%s: %v; the page says:\n%s", expression, err, text)
	}
}

func startSandbox(t *testing.T) string {
	t.Helper()
	cmd := program.Command(t, nil, binary, "-addr", "127.0.0.1:0")
	cmd.Cancel = func() error { return nil } // the page would complain that it is gone
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	cmd.Stdout = writer
	wait := program.Start(t, cmd)
	writer.Close()
	t.Cleanup(func() {
		cmd.Process.Kill()
		wait()
	})
	line, err := bufio.NewReader(reader).ReadString('\n')
	_, url, _ := strings.Cut(line, "CARDDATA_BIN_URL=")
	url, _, _ = strings.Cut(url, " ")
	if err != nil || !strings.HasPrefix(url, "http://127.0.0.1:") {
		t.Fatalf("%q, %v", line, err)
	}
	return url
}

// send sends a request to the sandbox and returns the response's status, 0 when
// there was none, and its header.
func (b *tab) send(method, path, body string) (int, http.Header) {
	b.Helper()
	req, err := http.NewRequestWithContext(b.ctx, method, b.url+path, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer key")
	req.Header.Set("X-Merchant-Id", "m-1")
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	// As a POST that may be sent twice goes over a connection that is not new.
	transport := &http.Transport{DisableKeepAlives: true}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return 0, nil
	}
	resp.Body.Close()
	return resp.StatusCode, resp.Header
}

func (b *tab) lookup(cards ...string) (int, http.Header) {
	b.Helper()
	return b.send(http.MethodPost, "/bins/multiple", `{"cards": [{"card": "`+strings.Join(cards, `"}, {"card": "`)+`"}]}`)
}

func (b *tab) refund(id string) (int, http.Header) {
	b.Helper()
	return b.send(http.MethodPost, "/v1/acct/refunds", `{"refund_id": "`+id+`", "amount": 1250, "currency": "DKK"}`)
}

func (b *tab) download() (int, http.Header) {
	b.Helper()
	return b.send(http.MethodGet, "/updater/inquiries/jobs/42/download", "")
}
