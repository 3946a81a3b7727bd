package refunds_test

import (
	"bufio"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jarcoal/httpmock"

	"github.com/carddata/carddata-go/internal/testkit"
	"github.com/carddata/carddata-go/refunds"
)

// repeating is a service that accepts and refuses refunds in turn, and sends every
// acceptance twice. It returns its address and how many connections it had.
func repeating(t *testing.T) (base string, connections func() int) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	var mu sync.Mutex
	requests, accepted := 0, 0
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			accepted++
			mu.Unlock()
			go func() {
				defer c.Close()
				for in := bufio.NewReader(c); ; {
					request, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					io.Copy(io.Discard, request.Body)
					mu.Lock()
					requests++
					accept := requests%2 == 1
					mu.Unlock()
					if !accept {
						io.WriteString(c, "HTTP/1.1 422 No\r\nContent-Length: 2\r\n\r\n{}")
						continue
					}
					const yes = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
					io.WriteString(c, yes)
					io.WriteString(c, yes)
				}
			}()
		}
	}()
	return "http://" + l.Addr().String(), func() int {
		mu.Lock()
		defer mu.Unlock()
		return accepted
	}
}

// TestRepeatedResponseIsNobodysReceipt proves that a response which a service or
// proxy sends twice never is the receipt of the next refund: by default, each has
// a connection of its own.
func TestRepeatedResponseIsNobodysReceipt(t *testing.T) {
	// net/http tells the log of the process of what it finds on an idle connection.
	log.SetOutput(io.Discard)
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	for name, test := range map[string]struct {
		opts        []refunds.Option
		connections int
	}{"one each": {nil, 20}, "kept": {[]refunds.Option{refunds.WithConnectionReuse(time.Minute)}, 0}} {
		base, connections := repeating(t)
		client, err := refunds.NewClient(base, test.opts...)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 20 {
			_, err := client.Submit(t.Context(), "acct-1", record())
			if wanted := n%2 == 0; name == "one each" && (err == nil) != wanted {
				t.Errorf("refund %d: %v", n, err)
			}
		}
		if got := connections(); test.connections > 0 && got != test.connections || test.connections == 0 && got >= 20 {
			t.Errorf("%s: %d connections for 20 refunds", name, got)
		}
	}
}

// TestErrorObjectIsNoAcceptance: a 2xx whose body says nothing but what went wrong,
// as a proxy's may, leaves the outcome unknown, and its code is told.
func TestErrorObjectIsNoAcceptance(t *testing.T) {
	for _, status := range []int{200, 201, 202} {
		mock, receipt, err := submit(t, record(), testkit.Answer(status, `{"error":{"code":"upstream_failed","message":"no","details":{}}}`))
		o, failure := outcome(t, receipt, err)
		if !errors.Is(err, refunds.ErrOutcomeUnknown) || !errors.Is(err, refunds.ErrBadResponse) || failure.Code != "upstream_failed" || failure.StatusCode != status ||
			len(mock.Requests()) != 1 || failure.Retryable() {
			t.Errorf("%d: %v, %d requests, %v", status, err, len(mock.Requests()), o.Outcome)
		}
	}
	if _, receipt, err := submit(t, record(), testkit.Broken(200, `{"error":{"code":"upst`, io.ErrUnexpectedEOF)); receipt != nil || !errors.Is(err, refunds.ErrOutcomeUnknown) {
		t.Errorf("one that is cut off: %v, %v", receipt, err)
	}
	for _, responder := range []httpmock.Responder{
		testkit.Answer(200, `{"refund_id":"r","error":{"code":"x"}}`), testkit.Broken(200, `{"refund_id":"r","error":{"code`, io.ErrUnexpectedEOF),
	} {
		if _, receipt, err := submit(t, record(), responder); receipt == nil {
			t.Errorf("a receipt of unknown form with a member named error: %v", err)
		}
	}
}
