package bins

import (
	"context"
	"crypto/tls"
	"errors"
	"math"
	"net"
	"net/http"
	"time"

	"github.com/carddata/carddata-go/internal/bulk"
	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/limit"
	flow "github.com/carddata/carddata-go/internal/oldflow"
	"github.com/carddata/carddata-go/internal/transport"
)

// A health derives the state of the service from the results of a bulk lookup.
type health struct {
	window      *flow.Window
	pauses      transport.PauseLog
	jitter      func(below time.Duration) time.Duration
	giveUpAfter time.Duration // below 0: never
	works       bool          // the service has sent a result
	refused     int           // requests refused before the first result
	refusal     error         // the last of them
	sent        int           // requests sent
	answered    int           // requests answered
	control     string        // an identifier that the service has answered
	failure     *Error        // the last failure that other requests may meet, too

	// Results of first tries and controls only: they show how the service treats new batches.
	good, bad int
}

// meaningOf returns the meaning of a request's error. works says that the service has sent a
// result before.
func meaningOf(ctx context.Context, err error, works bool) bulk.Meaning {
	if err == nil {
		return bulk.Success
	}
	failed, _ := errors.AsType[*Error](err)
	scope := failed.failure().Scope()
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	dns, _ := errors.AsType[*net.DNSError](err)
	switch {
	case ctx.Err() != nil, limit.NoTurn(err), errors.Is(err, ErrInvalidArgument):
		return bulk.End
	case errors.Is(err, ErrCredential) && failed.Retryable(): // a source that has worked may work again
		return outageIf(works)
	case scope == fault.OfSetup && errors.Is(err, ErrNoResponse) && !untrusted && (dns == nil || !dns.IsNotFound):
		return outageIf(works) // the handshake worked before
	case scope == fault.OfSetup, scope == fault.OfAccount:
		return bulk.End
	case scope == fault.OfRequest && failed.StatusCode == 0: // it was not sent
		return bulk.Nothing
	case scope != fault.OfOutage, errors.Is(err, ErrBadResponse) && !works: // for example a page from a wrong address
		return bulk.Success
	}
	return bulk.Outage
}

func outageIf(worked bool) bulk.Meaning {
	if worked {
		return bulk.Outage
	}
	return bulk.End
}

// settle records the result of a request.
func (h *health) settle(f *flight, r *response, m bulk.Meaning) {
	first := f.batch.failures == 0
	switch m {
	case bulk.Success:
		h.answered++
		if first {
			h.good++
		}
		if r.err == nil {
			h.works, h.control = true, r.lookups[0].sent
		} else {
			h.refused, h.refusal = h.refused+1, r.err
		}
	case bulk.Outage:
		if first {
			h.bad++
		}
		h.failure, _ = errors.AsType[*Error](r.err)
		f.batch.blame(h, f.probe, r.attempts > 0)
	}
	bulk.Settle(h.window, f.request, m, f.clock.Took(), h.failure.failure())
}

// blame counts a failure that the batch itself may have caused. A probe, a refused token, or
// a limit never counts.
func (b *batch) blame(h *health, probe, sent bool) {
	if b.failures++; b.failures == 1 {
		b.good, b.bad, b.failedAt = h.good, h.bad, time.Now()
	}
	status := h.failure.StatusCode
	b.after = h.answered + 1
	if sent && !probe && status != http.StatusUnauthorized && status != http.StatusTooManyRequests && status != http.StatusServiceUnavailable {
		b.faults++
		// Choose at random. Behind a round-robin balancer, a fixed order could send the batch
		// to a broken server each time, and the controls to the others.
		b.notBefore = h.sent + 1 + int(h.jitter(6)) // as often each server of two or of three
	}
}

// isAtFault reports whether a batch fails because of its cards. It does if a service with the
// failure rate of the other requests would hardly fail this batch so often, or if it fails for
// giveUpAfter while others succeed.
func (h *health) isAtFault(b *batch) bool {
	const unlikely = 1e-12
	good, bad := float64(h.good-b.good), float64(h.bad-b.bad)
	if good > 0 && h.giveUpAfter >= 0 && time.Since(b.failedAt) > h.giveUpAfter {
		return true
	}
	return good > 0 && math.Pow((bad+1)/(good+bad+2), float64(b.faults)) < unlikely
}

// isRefused reports whether the service refuses whatever is sent.
func (h *health) isRefused() bool { return !h.works && h.refused >= maxRefused }

// suspended is the error of a lookup that gives up.
func (h *health) suspended() error {
	return bulkError(fault.NewError("the service kept failing, the lookup is suspended", ErrSuspended, h.failure))
}
