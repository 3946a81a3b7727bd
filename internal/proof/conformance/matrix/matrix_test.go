package matrix

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/proof/conformance/operations"
	"github.com/carddata/carddata-go/internal/proof/testkit/options"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/updater"
)

// A site is where a call goes wrong: the service at base, or the way there.
type site struct {
	base     string
	http     *http.Client     // nil: the library's own
	token    bins.TokenSource // nil: one that never changes
	opts     []options.Option
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
func (s site) options() []options.Option {
	opts := []options.Option{options.WithRetryWait(0, 0)}
	if s.http != nil {
		opts = append(opts, options.WithHTTPClient(s.http))
	}
	return append(opts, s.opts...)
}

// result is what the test needs of any of the three answers.
type result struct {
	err      error
	bodyErr  error
	attempts int // of the error
}

func (s site) lookup(t *testing.T, ctx context.Context) result   { return s.call(t, ctx, 0) }
func (s site) submit(t *testing.T, ctx context.Context) result   { return s.call(t, ctx, 1) }
func (s site) download(t *testing.T, ctx context.Context) result { return s.call(t, ctx, 2) }

// call makes the call of one operation, by its place in the list.
func (s site) call(t *testing.T, ctx context.Context, operation int) result {
	args, opts := operations.Plain(), []options.Option{}
	if s.token != nil {
		args.Key, args.Token = s.token, s.token
		opts = append(opts, options.WithTokenSource(s.token))
	}
	if s.unusable {
		args.Cards, args.Account, args.Job = nil, "..", ""
	}
	list, err := operations.New(s.base, args, s.options()...)
	if err != nil {
		t.Fatal(err)
	}
	v, err := list[operation].Call(ctx, opts...)
	got := result{err: err}
	if err == nil {
		switch v := v.(type) {
		case *bins.LookupResponse:
			if len(v.Cards) != 1 || v.Cards[0].BIN != "457173" {
				t.Errorf("decoded %v", v)
			}
		case *refunds.Receipt:
			got.bodyErr = v.BodyErr
		}
		return got
	}
	if known, ok := errors.AsType[*refunds.Error](err); ok {
		checkAction(t, known)
		got.attempts = known.Attempts
	} else if operation == 1 {
		t.Fatalf("the error is of no refund: %v", err)
	} else if e, ok := errors.AsType[*bins.Error](err); ok {
		got.attempts = e.Attempts
	} else if e, ok := errors.AsType[*updater.Error](err); ok {
		got.attempts = e.Attempts
	}
	return got
}

// checkAction: what to do follows from the outcome, the condition, and whether it may pass.
func checkAction(t *testing.T, failed *refunds.Error) {
	action := refunds.ActionOf(failed)
	if doubt := failed.Outcome == refunds.OutcomeUnknown || failed.Condition() == "conflict"; doubt != (action == refunds.ActionFindOut) ||
		failed.Retryable() != (action == refunds.ActionResubmit) || action == refunds.ActionDone {
		t.Errorf("%v: %v, %s, Retryable %t", action, failed.Outcome, failed.Condition(), failed.Retryable())
	}
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
					synctest.Test(t, func(t *testing.T) {
						prove(t)
						time.Sleep(2 * time.Second) // until the service has seen the end
					})
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
