package scale

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/refunds"
)

// A refundJob is one bulk submission, run in a process of its own so that its
// memory can be told. Its service is in the process, without a network.
type refundJob struct {
	Inputs int
}

type refundReport struct {
	Progress refunds.BulkProgress
	Requests int
	Wrong    int // results that are not the one of their record
	PeakMiB  int
}

func (job *refundJob) run() any {
	var report refundReport
	var requests atomic.Int64
	client, err := refunds.NewClient("https://refund.example", refunds.WithHTTPClient(&http.Client{Transport: answering(func(r *http.Request) int {
		requests.Add(1)
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
		return http.StatusOK
	})}))
	if err != nil {
		panic(err)
	}
	records := func(yield func(*refunds.Refund) bool) {
		r := &refunds.Refund{Currency: "USD", Amount: new(int64)}
		r.AdditionalData.Description = strings.Repeat("x", 1000)
		for i := range job.Inputs {
			// Every tenth is a later status of the refund before it.
			r.RefundID = fmt.Sprint("rf_", i-i%10/9)
			*r.Amount = int64(i)
			if !yield(r) {
				return
			}
		}
	}
	seen := make([]bool, job.Inputs)
	o := refunds.BulkOptions{Progress: func(p refunds.BulkProgress) { report.Progress = p }}
	for s, err := range client.SubmitAll(context.Background(), refunds.Items("acct", records), o) {
		if err != nil || s.Err != nil || s.RefundID != fmt.Sprint("rf_", s.Index-s.Index%10/9) || seen[s.Index] {
			report.Wrong++
			continue
		}
		seen[s.Index] = true
	}
	report.Requests, report.PeakMiB = int(requests.Load()), peakMiB()
	return report
}

// answering answers with the status that it returns, and a body of 1 KiB.
type answering func(*http.Request) int

var receipt = bytes.Repeat([]byte("x"), 1<<10)

func (f answering) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: f(r), Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(receipt)), ContentLength: int64(len(receipt))}, nil
}

// TestRefundsInBoundedMemory: any number of records takes the same memory, and
// each is sent once and has its result.
func TestRefundsInBoundedMemory(t *testing.T) {
	testkit.Long(t)
	n := 30_000
	switch {
	case racing:
		n = 10_000
	case *full:
		n = 1_000_000
	}
	var report refundReport
	inChild(t, &refundJob{n}, &report)
	t.Logf("%d records: %d requests, peak %d MiB", n, report.Requests, report.PeakMiB)
	if p := report.Progress; report.Wrong > 0 || report.Requests != n || p.Taken != n || p.Done != n || p.Accepted != n || p.Requests != n {
		t.Errorf("%d records: %+v", n, report)
	}
	if report.PeakMiB >= 40 && !racing {
		t.Errorf("%d records took %d MiB", n, report.PeakMiB)
	}
}
