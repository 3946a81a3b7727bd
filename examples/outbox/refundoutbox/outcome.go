package refundoutbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/carddata/carddata-go/refunds"
)

// A response is what is kept of what the service said to an attempt.
type response struct {
	status    int
	reason    string // for a person; nothing of the record
	message   string // in the service's words; never printed
	requestID string
}

// An outcome is what became of an attempt.
type outcome struct {
	event Event
	response
	wait    time.Duration // that the service asked for
	trouble string        // the condition, if it concerns all refunds and not this one
}

// judge turns what Submit returned into an outcome. It takes the library's word,
// and reads no error texts.
func judge(receipt *refunds.Receipt, err error) outcome {
	if err == nil {
		return outcome{event: eventAccepted, response: response{status: receipt.StatusCode, requestID: storable(receipt.RequestID)}}
	}
	o := outcome{event: eventUnsent, trouble: "other"}
	if e, ok := errors.AsType[*refunds.Error](err); ok {
		o.trouble, o.wait = e.Condition(), e.RetryAfter
		o.status, o.requestID, o.message = e.StatusCode, e.RequestID, storable(e.Message())
		if e.StatusCode != 0 {
			o.reason = fmt.Sprint(e.StatusCode, " ", cmp.Or(e.Code, http.StatusText(e.StatusCode)))
		}
	}
	if o.reason == "" {
		o.reason = strings.ReplaceAll(o.trouble, "_", " ")
	}
	switch {
	case o.trouble == "invalid_argument": // the library refuses the record, and always will
		o.event, o.trouble = eventRefused, ""
	case errors.Is(err, refunds.ErrNotSent):
	case errors.Is(err, refunds.ErrConflict): // the service may have it, from another row or program
		o.event, o.trouble = eventConflict, ""
	case !errors.Is(err, refunds.ErrRejected):
		o.event = eventDoubted
	case !ofTheService[o.trouble]:
		o.event, o.trouble = eventRefused, ""
	}
	return o
}

// ofTheService are the conditions of refusals behind which all other refunds would
// be refused too: about the credential, the rights, the address or the load.
var ofTheService = map[string]bool{
	"unauthorized": true, "forbidden": true, "not_found": true, "redirect": true, "server_error": true, "rate_limited": true,
}

// digits are what could be a card number.
var digits = regexp.MustCompile(`[0-9](?:[ -]?[0-9]){11,}`)

// storable makes what the service wrote fit for a column: no database takes more of
// it than text, and an outcome that cannot be written down is one that is lost. It
// keeps no digits that could be a card number.
func storable(text string) string {
	const most = 1000
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
	if runes := []rune(text); len(runes) > most {
		text = string(runes[:most])
	}
	return digits.ReplaceAllString(text, "…")
}

const (
	pauseAfter = 5 // failures in a row
	pauseFirst = time.Second
	pauseMost  = time.Minute
)

// A pause keeps a worker from turning a whole backlog into unknown refunds, when
// the service fails for a while: after some failures in a row that are not about a
// record, or when the service asks for it, nothing is sent for some time. Until a
// refund gets through again, one is sent at a time, and each failure doubles the
// pause.
type pause struct {
	log      *slog.Logger
	mu       sync.Mutex
	failures int
	until    time.Time
	trying   bool // a refund is on its way, after a failure
}

// enter returns how long to wait. Whoever need not wait has to leave.
func (p *pause) enter(now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d := p.until.Sub(now); d > 0 {
		return d
	}
	if p.trying {
		return time.Second
	}
	p.trying = p.failures >= pauseAfter
	return 0
}

// leave takes what became of a refund; nil: it was not sent. It returns until when a
// pause lasts that begins with it, if one does.
func (p *pause) leave(o *outcome) (until time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.trying = false
	switch {
	case o == nil:
		return until
	case o.trouble == "":
		if p.failures >= pauseAfter {
			p.log.Warn("going on")
		}
		p.failures = 0
		return until
	}
	p.failures++
	wait := min(o.wait, pauseMost)
	if o.trouble == "rate_limited" {
		wait = max(wait, pauseFirst)
	}
	if n := p.failures - pauseAfter; n >= 0 {
		wait = max(wait, min(pauseMost, pauseFirst<<min(n, 10)))
	}
	if wait == 0 || !time.Now().Add(wait).After(p.until) {
		return until
	}
	p.until = time.Now().Add(wait)
	if p.failures == pauseAfter {
		p.log.Warn("pausing: one refund is sent at a time, until one gets through", "condition", o.trouble, "reason", o.reason)
	}
	return p.until
}

// leave tells the pause what became of a refund. A pause is one of River's queue, for
// all workers and for whoever looks at River UI.
func (w *worker) leave(ctx context.Context, o *outcome) {
	until := w.pause.leave(o)
	if until.IsZero() {
		return
	}
	// Work waits without the database, too: what goes wrong here costs no more than
	// that others do not see the pause.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, err := w.db.Exec(ctx, `INSERT INTO outbox_pause (id, until, reason) VALUES (1, $1, $2)
		ON CONFLICT (id) DO UPDATE SET until = excluded.until, reason = excluded.reason`, timeText(until), o.reason)
	if err == nil {
		err = w.queue.QueuePause(ctx, Queue, nil)
	}
	if err != nil {
		w.Log.Warn("the pause does not show in the queue", "error", err)
	}
}

// resume ends a pause of this or another worker's whose time has come. One that a
// person began in River UI is left alone.
func (w *worker) resume(ctx context.Context) {
	over, err := one[string](ctx, w.db, `SELECT until FROM outbox_pause WHERE until <= $1`, timeText(time.Now()))
	if err == nil && over != "" {
		if err = w.queue.QueueResume(ctx, Queue, nil); err == nil {
			_, err = w.db.Exec(ctx, `DELETE FROM outbox_pause WHERE until = $1`, over)
		}
	}
	if err != nil && ctx.Err() == nil {
		w.Log.Warn("the queue is not resumed", "error", err)
	}
}
