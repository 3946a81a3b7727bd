package browsertest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
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

	"github.com/carddata/carddata-go/examples/tools/sandbox/console"
)

var browser context.Context // nil without a browser

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	chromium := findChromium()
	if chromium == "" {
		return m.Run()
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(chromium))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium has none for root
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

// A tab shows the page of its own sandbox.
type tab struct {
	*testing.T
	ctx context.Context
	url string

	mu     sync.Mutex
	errors []string
}

// openTab opens a tab of that size. An error in the browser's console fails the test.
func openTab(t *testing.T, width, height int64, features ...*emulation.MediaFeature) *tab {
	t.Helper()
	if browser == nil {
		if os.Getenv("CI_REQUIRE_SERVERS") != "" {
			t.Fatal("Chromium is not installed")
		}
		t.Skip("Chromium is not installed (on Debian: apt-get install chromium)")
	}
	server := httptest.NewServer(console.New(false))
	t.Cleanup(server.Close)
	b := &tab{T: t, url: server.URL}
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

// send sends a request to the sandbox. It returns status and header of the response, or 0
// if there was none.
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
	// On a kept connection, net/http could repeat a request that was cut off.
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

func (b *tab) fault(rule string) {
	b.Helper()
	if status, _ := b.send(http.MethodPost, "/sandbox/faults", rule); status != http.StatusOK {
		b.Fatalf("%s: %d", rule, status)
	}
}

// click clicks on the first element that matches a CSS selector.
func (b *tab) click(selector string) {
	b.Helper()
	b.do(chromedp.Click(chromedp.CSS(selector)))
}
