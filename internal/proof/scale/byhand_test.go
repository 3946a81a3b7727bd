package scale

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/refunds/refundstest"
)

// badDay fails seven requests in a hundred, in the ways that services and proxies do.
// It records a refund in two of these.
func badDay() func(refundstest.Request) refundstest.Fault {
	var mu sync.Mutex
	chance := rand.New(rand.NewPCG(1, 2))
	return func(refundstest.Request) refundstest.Fault {
		mu.Lock()
		defer mu.Unlock()
		switch p := chance.Float64(); {
		case p < .01:
			return refundstest.Fault{DropBefore: true}
		case p < .02:
			return refundstest.Fault{DropAfter: true}
		case p < .03:
			return refundstest.Fault{Status: 503}
		case p < .04:
			return refundstest.Fault{Status: 504, Process: true}
		case p < .05:
			return refundstest.Fault{Status: 429}
		case p < .07:
			return refundstest.Fault{Status: 422}
		}
		return refundstest.Fault{}
	}
}

// post sends a refund as most programs do: any error and any status but 2xx is a failure.
func post(do func(url string, body []byte) (*http.Response, error), url string, refund *refunds.Refund) error {
	body, err := json.Marshal(refund)
	if err != nil {
		return err
	}
	resp, err := do(url+"/v1/acct_1/refunds", body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}

func byHand(url string, body []byte) (*http.Response, error) {
	return http.Post(url, "application/json", bytes.NewReader(body))
}

func threeTries(url string, body []byte) (resp *http.Response, err error) {
	for range 3 {
		resp, err = byHand(url, body)
		if err == nil && resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests {
			return resp, nil
		}
	}
	return resp, err
}

func retrying(url string, body []byte) (*http.Response, error) {
	c := retryablehttp.NewClient()
	c.Logger, c.RetryWaitMin, c.RetryWaitMax = nil, time.Millisecond, time.Millisecond
	defer c.HTTPClient.CloseIdleConnections()
	return c.Post(url, "application/json", body)
}

// TestRefundsOnABadDay compares what became of refunds with what their sender was told,
// by hand and with the library.
func TestRefundsOnABadDay(t *testing.T) {
	const n = 3000
	type told int
	const (
		accepted told = iota
		failed
		findOut
	)
	run := func(submit func(fake *refundstest.Server) func(*refunds.Refund) told) (doubled, wrong, ask int) {
		fake := refundstest.NewServer(t)
		fake.ScriptFunc(badDay())
		send := submit(fake)
		words := map[string]told{}
		for i := range n {
			id := fmt.Sprint("rf_", i)
			words[id] = send(&refunds.Refund{RefundID: id, Amount: new(int64(1095)), Currency: "EUR"})
		}
		recorded := map[string]int{}
		for _, r := range fake.Recorded() {
			recorded[r.Refund.RefundID]++
		}
		for id, word := range words {
			if recorded[id] > 1 {
				doubled++
			}
			switch {
			case word == findOut:
				ask++
			case (word == accepted) != (recorded[id] > 0):
				wrong++
			}
		}
		return doubled, wrong, ask
	}
	hand := func(do func(string, []byte) (*http.Response, error)) func(*refundstest.Server) func(*refunds.Refund) told {
		return func(fake *refundstest.Server) func(*refunds.Refund) told {
			return func(r *refunds.Refund) told {
				if post(do, fake.URL(), r) != nil {
					return failed
				}
				return accepted
			}
		}
	}
	library := func(fake *refundstest.Server) func(*refunds.Refund) told {
		client, err := refunds.NewClient(fake.URL(), refunds.WithRetryWait(0, 0))
		if err != nil {
			t.Fatal(err)
		}
		return func(r *refunds.Refund) told {
			_, err := client.Submit(t.Context(), "acct_1", r)
			switch refunds.ActionOf(err) {
			case refunds.ActionDone:
				return accepted
			case refunds.ActionFindOut:
				return findOut
			}
			return failed
		}
	}
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "of %d refunds\trecorded twice\treported wrongly\ttold to find out\t\n", n)
	for _, way := range []struct {
		name   string
		submit func(*refundstest.Server) func(*refunds.Refund) told
	}{
		{"net/http, one try", hand(byHand)},
		{"net/http, three tries", hand(threeTries)},
		{"go-retryablehttp, default retries", hand(retrying)},
		{"this library", library},
	} {
		doubled, wrong, ask := run(way.submit)
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t\n", way.name, doubled, wrong, ask)
		if way.name == "this library" && (doubled > 0 || wrong > 0) {
			t.Errorf("%d recorded twice, %d reported wrongly", doubled, wrong)
		} else if way.name != "this library" && doubled+wrong == 0 {
			t.Errorf("%s: the bad day did no harm", way.name)
		}
	}
	table.Flush()
	t.Logf("\n%s", text.String())
}
