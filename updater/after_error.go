package updater

import (
	"slices"
	"time"

	"github.com/carddata/carddata-go/internal/fault"
)

// Conditions of a download.
var (
	// ErrChanged: the service has another version of the content by now, or sent a part that
	// may belong to another one. Discard what was read, and download again, as DownloadFile has
	// already done, up to WithMaxRetries times.
	ErrChanged = fault.NewCondition("changed", "content changed", true)
	// ErrNotResumable: the stream broke, and the service sent no strong validator, or
	// declines or ignores ranges. Discard what was read, and download again, likewise.
	ErrNotResumable = fault.NewCondition("not_resumable", "not resumable", true)
	// ErrDigestMismatch: the content does not match the service's digest. Discard what was
	// read, and download again, likewise.
	ErrDigestMismatch = fault.NewCondition("digest_mismatch", "digest mismatch", true)
)

// A next is the step after an error of a download.
type next int

const (
	fail  next = iota // the call fails with the error
	goOn              // request the rest of this version, because the failed step may work again
	again             // request the whole content, because this version or its rest cannot be had
)

// maxWait is the longest Retry-After to wait out, as in a call.
const maxWait = time.Minute

// classify decides what follows an error. Its callers bound how often: resumer.giveUp for
// goOn, and fileDownload for again.
func classify(err error) next {
	failed, isFailure := err.(*Error)
	if !isFailure {
		failed = &Error{Err: err} // a read error or a file system error
	}
	condition := failed.Condition()
	switch {
	case failed.RetryAfter > maxWait:
		return fail // the caller must see it
	case condition == "changed", condition == "not_resumable", condition == "digest_mismatch":
		return again
	case isFailure && condition == "bad_response": // a page or the wrong part, which another request would get again
		return fail
	case failed.StatusCode == 0 && (condition == "local_limit" || condition == "rate_limited"):
		return fail // there is no time for another request
	// Host name, credential and certificates were right when the content began, so they may be
	// right again.
	case failed.failure().Scope() == fault.OfOutage, condition == "no_response":
		return goOn
	}
	return fail
}

// refusesSpecial reports whether the service may have refused a request only because it
// continues an earlier call's part or asks for changes, and would serve a plain one. A plain
// request would also meet a refused credential, a throttle, an outage or a job that is not
// ready, so these must not cost the part.
func refusesSpecial(err error) bool {
	failed, isFailure := err.(*Error)
	return isFailure && failed.RetryAfter == 0 && failed.Condition() != "not_ready" &&
		!slices.Contains([]int{0, 401, 407, 408, 429, 502, 503, 504}, failed.StatusCode)
}
