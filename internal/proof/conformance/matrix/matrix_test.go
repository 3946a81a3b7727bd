package matrix

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/updater"
)

// A site is where a call goes wrong: the service at base, or the way there.
type site struct {
	base     string
	http     *http.Client     // nil: the library's own
	token    bins.TokenSource // nil: one that never changes
	opts     []bins.Option
	ctx      context.Context // nil: one with a minute left
	unusable bool            // call with arguments that cannot be sent
	seen     func() int      // requests that arrived, or connections where none can
}

// A world builds the site of one failure point, anew for each cell.
type world func(t *testing.T) site

// A cell is what an operation must make of a failure point.
type cell struct {
	seen    int
	outcome error // of a refund that was not accepted
	fails   bool
	is      []error // what the error matches, or the Receipt's BodyErr
}

// The columns' cells. The number is of requests seen, or of connections.
func ok(seen int) cell                      { return cell{seen: seen} }
func fail(seen int, is ...error) cell       { return cell{seen: seen, fails: true, is: is} }
func accepted(seen int, body ...error) cell { return cell{seen: seen, is: body} }
func notSent(seen int, is ...error) cell    { return cell{seen, refunds.ErrNotSent, true, is} }
func rejected(seen int, is ...error) cell   { return cell{seen, refunds.ErrRejected, true, is} }
func unknown(seen int, is ...error) cell    { return cell{seen, refunds.ErrOutcomeUnknown, true, is} }

// A row of the retry matrix.
type matrixRow struct {
	point                     string
	world                     world
	lookup, submit, downloads cell
}

const (
	cardsJSON = `{"cards":[{"bin":"457173","data":{"card":{"card_brand":"VISA"}},"error":null}]}`
	merchant  = "m-1"
)

// options are those of every call here: repetitions do not wait, so that the
// number of requests is all that there is to see.
func (s site) options() []bins.Option {
	opts := []bins.Option{bins.WithRetryWait(0, 0)}
	if s.http != nil {
		opts = append(opts, bins.WithHTTPClient(s.http))
	}
	return append(opts, s.opts...)
}

func (s site) source() bins.TokenSource {
	if s.token == nil {
		return bins.StaticToken("key")
	}
	return s.token
}

// result is what the test needs of any of the three answers.
type result struct {
	err      error
	bodyErr  error
	attempts int // of the error
}

func (s site) lookup(t *testing.T, ctx context.Context) result {
	client, err := bins.NewClient(s.base, s.source(), s.options()...)
	if err != nil {
		t.Fatal(err)
	}
	req := &bins.LookupRequest{Cards: bins.Cards("457173")}
	if s.unusable {
		req.Cards = nil
	}
	resp, err := client.Lookup(ctx, req)
	if err == nil && (len(resp.Cards) != 1 || resp.Cards[0].BIN != "457173") {
		t.Errorf("decoded %v", resp)
	}
	if e, ok := errors.AsType[*bins.Error](err); ok {
		return result{err: err, attempts: e.Attempts}
	}
	return result{err: err}
}

func (s site) submit(t *testing.T, ctx context.Context) result {
	opts := s.options()
	if s.token != nil {
		opts = append(opts, refunds.WithTokenSource(s.token))
	}
	client, err := refunds.NewClient(s.base, opts...)
	if err != nil {
		t.Fatal(err)
	}
	account := "acc-1"
	if s.unusable {
		account = ".."
	}
	receipt, err := client.Submit(ctx, account, &refunds.Refund{RefundID: "rf-1", Amount: new(int64(100))})
	if err == nil {
		return result{bodyErr: receipt.BodyErr}
	}
	known, ok := errors.AsType[*refunds.OutcomeError](err)
	if !ok {
		t.Fatalf("the error is no OutcomeError: %v", err)
	}
	if known.RefundID != "rf-1" {
		t.Errorf("the error is of refund %q", known.RefundID)
	}
	// What to do follows from the outcome, the condition, and whether it may pass.
	failed, _ := errors.AsType[*refunds.Error](err)
	action := refunds.ActionOf(err)
	if doubt := known.Outcome == refunds.OutcomeUnknown || failed.Condition() == "conflict"; doubt != (action == refunds.ActionFindOut) ||
		failed.Retryable() != (action == refunds.ActionResubmit) || action == refunds.ActionDone {
		t.Errorf("%v: %v, %s, Retryable %t", action, known.Outcome, failed.Condition(), failed.Retryable())
	}
	return result{err: err, attempts: known.Attempts}
}

func (s site) download(t *testing.T, ctx context.Context) result {
	client, err := updater.NewClient(s.base, merchant, s.source(), s.options()...)
	if err != nil {
		t.Fatal(err)
	}
	job := "job-1"
	if s.unusable {
		job = ""
	}
	download, err := client.Download(ctx, job)
	if err == nil {
		_, err = io.ReadAll(download)
		if closing := download.Close(); closing != nil {
			t.Errorf("close: %v", closing)
		}
	}
	if e, ok := errors.AsType[*updater.Error](err); ok {
		return result{err: err, attempts: e.Attempts}
	}
	return result{err: err}
}

var columns = []struct {
	name string
	call func(site, *testing.T, context.Context) result
	of   func(matrixRow) cell
}{
	{"lookup", site.lookup, func(r matrixRow) cell { return r.lookup }},
	{"submit", site.submit, func(r matrixRow) cell { return r.submit }},
	{"download", site.download, func(r matrixRow) cell { return r.downloads }},
}

// runMatrix proves every cell of the rows, each on a site of its own.
func runMatrix(t *testing.T, rows []matrixRow, bubble bool) {
	for _, row := range rows {
		for _, column := range columns {
			t.Run(row.point+"/"+column.name, func(t *testing.T) {
				prove := func(t *testing.T) { proveCell(t, row.world(t), column.call, column.of(row)) }
				if bubble {
					synctest.Test(t, prove)
				} else {
					t.Parallel()
					prove(t)
				}
			})
		}
	}
}

func proveCell(t *testing.T, s site, call func(site, *testing.T, context.Context) result, want cell) {
	ctx := s.ctx
	if ctx == nil {
		minutes, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		ctx = minutes
	}
	got := call(s, t, ctx)
	if s.seen != nil {
		if n := s.seen(); n != want.seen {
			t.Errorf("%d requests or connections seen, want %d", n, want.seen)
		}
	}
	if !want.fails {
		if got.err != nil {
			t.Fatalf("failed: %v", got.err)
		}
		for _, target := range want.is {
			if !errors.Is(got.bodyErr, target) {
				t.Errorf("BodyErr %v does not match %q", got.bodyErr, target)
			}
		}
		if len(want.is) == 0 && got.bodyErr != nil {
			t.Errorf("BodyErr %v", got.bodyErr)
		}
		return
	}
	if got.err == nil {
		t.Fatal("no error")
	}
	for _, target := range want.is {
		if match, ok := target.(as); ok {
			if !match(got.err) {
				t.Errorf("%v has no error of the type in it", got.err)
			}
			continue
		}
		if !errors.Is(got.err, target) {
			t.Errorf("%v does not match %q", got.err, target)
		}
	}
	if want.outcome != nil {
		for _, outcome := range []error{refunds.ErrNotSent, refunds.ErrRejected, refunds.ErrOutcomeUnknown} {
			if errors.Is(got.err, outcome) != (outcome == want.outcome) {
				t.Errorf("errors.Is(%q) = %t: %v", outcome, outcome != want.outcome, got.err)
			}
		}
	}
	if got.attempts != want.seen {
		t.Errorf("the error counts %d attempts, want %d", got.attempts, want.seen)
	}
}
