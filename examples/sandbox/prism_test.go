package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/internal/sandbox/console"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/updater"
)

// prism starts Stoplight Prism, which knows nothing of this project, between
// callers and a server, and returns its address. It replies to a request or a response
// that contradicts the OpenAPI document with an error of its own.
func prism(t *testing.T, document []byte, server string) string {
	t.Helper()
	path, err := exec.LookPath("prism")
	if err != nil && os.Getenv("CI_REQUIRE_SERVERS") == "1" {
		t.Fatal(err)
	}
	if err != nil {
		t.Skip("Prism is not installed (npm install @stoplight/prism-cli)")
	}
	file := filepath.Join(t.TempDir(), "openapi.json")
	if err := os.WriteFile(file, document, 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := sandbox.ListenLoopback("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	_, port, _ := strings.Cut(address, ":")
	cmd := exec.CommandContext(t.Context(), path, "proxy", file, server, "--errors", "--host", "127.0.0.1", "--port", port)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.Contains(lines.Text(), "is listening") {
			go io.Copy(io.Discard, out)
			return "http://" + address
		}
	}
	t.Fatal("Prism did not start")
	return ""
}

func post(t *testing.T, method, url, body string) (status int, contentType, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer k"}, "X-Merchant-Id": {"m"}}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	read, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header.Get("Content-Type"), string(read)
}

const violation = "application/problem+json"

// TestLibraryAndSandboxKeepToTheInterface has the library call the sandbox a
// thousand times through Prism, which checks both sides.
func TestLibraryAndSandboxKeepToTheInterface(t *testing.T) {
	engine := sandbox.New()
	server, err := engine.ListenTCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	url := prism(t, sandbox.OpenAPI, server.URL())
	calls := newCalls(t, url)

	const each, callers = 125, 8
	var done sync.WaitGroup
	for range callers {
		done.Go(func() {
			for i := range each {
				if err := calls[i%len(calls)](t.Context()); err != nil {
					t.Errorf("call %d: %v", i%len(calls), err)
				}
			}
		})
	}
	done.Wait()
	total := 0
	for _, area := range []sandbox.Area{sandbox.Bins, sandbox.Refunds, sandbox.Updater} {
		total += engine.RequestCount(area)
	}
	if total < each*callers {
		t.Errorf("%d requests of %d arrived", total, each*callers)
	}

	// It does look: at requests, and at responses.
	for _, body := range []string{`{"amount":"x"}`, `{"refund_id":5}`, `{"amount":10.5}`} {
		if status, contentType, text := post(t, "POST", url+"/v1/a/refunds", body); status != http.StatusUnprocessableEntity || contentType != violation {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}
	engine.SetResult("9", json.RawMessage(`{"bin":9}`))
	if status, contentType, text := post(t, "POST", url+"/bins/multiple", `{"cards":[{"card":"9"}]}`); status != http.StatusInternalServerError || contentType != violation {
		t.Errorf("%d %s", status, text)
	}
}

// newCalls returns calls of all kinds, each of which fails when it does not end as
// it should.
func newCalls(t *testing.T, url string) []func(context.Context) error {
	t.Helper()
	lookups, err1 := bins.NewClient(url, bins.StaticToken("k"))
	submissions, err2 := refunds.NewClient(url)
	downloads, err3 := updater.NewClient(url, "m", updater.StaticToken("k"))
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	known := []string{"411111", "42424201", "45717360", "5555555555554444", "999999", "378282246310005", "620000"}
	lookup := func(ctx context.Context) error {
		cards := make([]string, 1+rand.IntN(50))
		for i := range cards {
			cards[i] = known[rand.IntN(len(known))]
		}
		request := &bins.LookupRequest{Cards: bins.Cards(cards...)}
		if n := rand.IntN(3); n > 0 {
			request.Enhanced = new(n > 1)
		}
		resp, err := lookups.Lookup(ctx, request)
		if err == nil && len(resp.Cards) != len(cards) {
			err = fmt.Errorf("%d items for %d cards", len(resp.Cards), len(cards))
		}
		return err
	}
	submit := func(ctx context.Context) error {
		refund := &refunds.Refund{RefundID: fmt.Sprint(rand.Int64()), Amount: new(rand.Int64N(1_000_000)), Currency: "DKK", Created: time.Now().Format(time.RFC3339)}
		refund.PaymentMethodDetails.Card.Attributes.BIN = "45717360"
		refund.RefundResponse.Status = "approved"
		refund.AdditionalData.Metadata = map[string]any{"a": []any{1, nil, "b"}}
		refund.SVCCodes.SVCRefundStatus = "amount_too_high"
		_, err := submissions.Submit(ctx, "acct/"+refund.RefundID[:1], refund)
		return err
	}
	small := func(ctx context.Context) error {
		_, err := submissions.Submit(ctx, "a", &refunds.Refund{RefundID: "r"})
		return err
	}
	download := func(ctx context.Context) error {
		result, err := downloads.Download(ctx, "42")
		if err != nil {
			return err
		}
		defer result.Close()
		_, err = io.Copy(io.Discard, result)
		return err
	}
	missing := func(ctx context.Context) error {
		_, err := downloads.Download(ctx, "7/7")
		if failure, ok := errors.AsType[*updater.Error](err); !ok || failure.Code != "job_not_found" {
			return fmt.Errorf("a job that is not there: %w", err)
		}
		return nil
	}
	return []func(context.Context) error{lookup, submit, lookup, download, small, missing}
}

// TestConsoleKeepsToItsDocument does the same for the sandbox's own API.
func TestConsoleKeepsToItsDocument(t *testing.T) {
	l, err := sandbox.ListenLoopback("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	site := console.New(console.Options{})
	server := http.Server{Handler: site}
	go server.Serve(l)
	defer server.Close()
	direct := "http://" + l.Addr().String()
	_, _, document := post(t, "GET", direct+"/sandbox/openapi.json", "")
	url := prism(t, []byte(document), direct)

	fill := func() {
		post(t, "POST", direct+"/bins/multiple", `{"cards":[{"card":"411111"},{"crad":"1"}]}`)
		post(t, "POST", direct+"/v1/a/refunds", `{"refund_id":"a"}`)
		post(t, "POST", direct+"/v1/a/refunds", `{"refund_id":"a"}`)
		post(t, "POST", direct+"/v1/a/refunds", `{"amount":"x"}`)
		post(t, "GET", direct+"/updater/inquiries/jobs/42/download", "")
		post(t, "GET", direct+"/elsewhere", "")
	}
	fill()
	for _, call := range []struct {
		method, path, body string
		want               int
	}{
		{"GET", "/sandbox/state", "", 200},
		{"GET", "/sandbox/requests", "", 200},
		{"GET", "/sandbox/requests?area=refunds&duplicates=true&q=a&accepted=true&refused=false", "", 200},
		{"GET", "/sandbox/requests/1", "", 200},
		{"GET", "/sandbox/requests/4", "", 200},
		{"GET", "/sandbox/requests/99", "", 404},
		{"GET", "/sandbox/requests.ndjson", "", 200},
		{"GET", "/sandbox/openapi.json", "", 200},
		{"POST", "/sandbox/faults", `{"fault":"rate_limited","area":"bins","next":3}`, 200},
		{"POST", "/sandbox/faults", `{"status":503,"code":"a","message":"b","header":{"X":"y","Date":null},"percent":5,"match":{"path":"/v1/*","header":{"a":"*"},"body":"c"},"delay":0.5}`, 200},
		{"POST", "/sandbox/faults", `{"next":1,"code":"a"}`, 400},
		{"DELETE", "/sandbox/faults/1", "", 200},
		{"DELETE", "/sandbox/faults/1", "", 404},
		{"DELETE", "/sandbox/faults", "", 200},
		{"PUT", "/sandbox/cards/4", `{"bin":"4"}`, 200},
		{"PUT", "/sandbox/cards", `{"bin":"4"}`, 200},
		{"PUT", "/sandbox/jobs/7?merchant=m&etag=%22a%22&ranges=false&last_modified=2031-07-01T00:00:00Z&size=100&format=csv", "", 200},
		{"PUT", "/sandbox/refund-response", `{"status":202,"content_type":"text/plain","body":"b"}`, 200},
		{"PUT", "/sandbox/profile", `{"version":1,"points":{"lookup.order":["kept"]}}`, 200},
		{"PUT", "/sandbox/profile", `{"version":1,"points":{"lookup.odrer":["kept"]}}`, 400},
		{"DELETE", "/sandbox/profile", "", 200},
		{"POST", "/sandbox/reset", "", 200},
	} {
		if status, contentType, text := post(t, call.method, url+call.path, call.body); status != call.want || contentType == violation {
			t.Errorf("%s %s: %d %s", call.method, call.path, status, text)
		}
	}
	if status, contentType, _ := post(t, "POST", url+"/sandbox/faults", `{"fualt":"slow"}`); status != http.StatusUnprocessableEntity || contentType != violation {
		t.Errorf("a misspelled member: %d", status)
	}
}
