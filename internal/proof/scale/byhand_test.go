package scale

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"text/tabwriter"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/refunds/refundstest"
)

// badDay fails seven requests in a hundred, in the ways that services and proxies do.
// It records a refund in two of these.
func badDay(requests int) (faults []refundstest.Fault) {
	chance := rand.New(rand.NewPCG(1, 2))
	for range requests {
		var fault refundstest.Fault
		switch p := chance.Float64(); {
		case p < .01:
			fault.Drop = true
		case p < .02:
			fault.Drop, fault.Process = true, true
		case p < .03:
			fault.Status = 503
		case p < .04:
			fault.Status, fault.Process = 504, true
		case p < .05:
			fault.Status = 429
		case p < .07:
			fault.Status = 422
		}
		faults = append(faults, fault)
	}
	return faults
}

// post sends a refund as most programs do: any error and any status but 2xx is a failure.
func post(do func(client *http.Client, body []byte) (*http.Response, error), client *http.Client, refund *refunds.Refund) error {
	body, err := json.Marshal(refund)
	if err != nil {
		return err
	}
	resp, err := do(client, body)
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

const refundURL = "https://refunds.example/v1/acct_1/refunds"

func byHand(client *http.Client, body []byte) (*http.Response, error) {
	return client.Post(refundURL, "application/json", bytes.NewReader(body))
}

func threeTries(client *http.Client, body []byte) (resp *http.Response, err error) {
	for range 3 {
		if err == nil && resp != nil {
			resp.Body.Close()
		}
		resp, err = byHand(client, body)
		if err == nil && resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests {
			break
		}
	}
	return resp, err
}

func retrying(client *http.Client, body []byte) (*http.Response, error) {
	c := retryablehttp.NewClient()
	c.Logger, c.HTTPClient = nil, client
	return c.Post(refundURL, "application/json", body)
}

// TestRefundsOnABadDay compares what became of refunds with what their sender was told,
// by hand and with the library.
func TestRefundsOnABadDay(t *testing.T) {
	testkit.Long(t)
	const n = 3000
	type told int
	const (
		accepted told = iota
		failed
		findOut
	)
	run := func(t *testing.T, submit func(fake *refundstest.Server) func(*refunds.Refund) told) (doubled, wrong, ask int) {
		fake := refundstest.NewServer(t)
		fake.Script(badDay(2 * n)...)
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
	hand := func(do func(*http.Client, []byte) (*http.Response, error)) func(*refundstest.Server) func(*refunds.Refund) told {
		return func(fake *refundstest.Server) func(*refunds.Refund) told {
			client := fake.HTTPClient()
			return func(r *refunds.Refund) told {
				if post(do, client, r) != nil {
					return failed
				}
				return accepted
			}
		}
	}
	library := func(fake *refundstest.Server) func(*refunds.Refund) told {
		client := fake.Client()
		return func(r *refunds.Refund) told {
			_, err := client.Submit(context.Background(), "acct_1", r)
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
		var doubled, wrong, ask int
		synctest.Test(t, func(t *testing.T) { doubled, wrong, ask = run(t, way.submit) })
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
