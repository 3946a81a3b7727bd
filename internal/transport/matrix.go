package transport

// A point is where an attempt ended: the rows of the retry matrix.
type point uint8

const (
	success point = iota

	// Ended by this side, before anything was sent.
	invalidArgument
	limiterRefused
	credentialFailed
	callerEnded // the caller's context; may also end a request on the wire

	// No answer.
	hostNotFound
	hostLookupFailed
	connectFailed
	certificateRefused
	proxyRefused
	proxyWantsLogin
	connectionBroken
	transportFailed // the caller's own, which reports no events
	attemptTimedOut
	headerTooLarge
	answerGarbled

	// An answer that is a refusal.
	requestRefused
	requestTooLarge
	unauthorized
	requestTimeout
	misdirected
	tooEarly
	rateLimited
	serverFailed
	serverUnavailable
	notSupported
	movedElsewhere
	movedRepeat

	// An answer that cannot be used.
	statusUnusable
	answerIsHTML
	answerEncoded
	answerTooLarge
	answerCutOff
	answerMalformed

	points
)

// Outcome is what became of a write. It is exposed as refunds.Outcome.
type Outcome int

const (
	OutcomeUnknown Outcome = iota
	OutcomeNotSent
	OutcomeRejected
	OutcomeAccepted
)

// String is exposed as the method of refunds.Outcome.
func (o Outcome) String() string {
	switch o {
	case OutcomeNotSent:
		return "not sent"
	case OutcomeRejected:
		return "rejected"
	case OutcomeAccepted:
		return "accepted"
	}
	return "unknown"
}

const many = 127 // as often as the settings allow

// A row says how often an attempt that ended at its point may be followed by
// another one, and what it means. For the points without an answer the outcome
// is decided by the evidence, and a write repeats only when that proves that
// nothing was sent.
type row struct {
	reads, writes uint8
	outcome       Outcome
	kind          error
	words         string
}

var matrix = [points]row{
	success: {0, 0, OutcomeAccepted, nil, "success"},

	invalidArgument:  {0, 0, OutcomeNotSent, ErrInvalidArgument, "the arguments are not usable"},
	limiterRefused:   {0, 0, OutcomeNotSent, ErrLocalLimit, "the local rate limiter gave no leave to send"},
	credentialFailed: {0, 0, OutcomeNotSent, ErrCredential, "no credential"},
	callerEnded:      {0, 0, OutcomeUnknown, nil, "the caller's context ended"},

	hostNotFound:       {0, 0, OutcomeUnknown, ErrNoAnswer, "no answer: the host name does not exist"},
	hostLookupFailed:   {many, many, OutcomeUnknown, ErrNoAnswer, "no answer: the host name could not be looked up"},
	connectFailed:      {many, many, OutcomeUnknown, ErrNoAnswer, "no answer: no connection could be made"},
	certificateRefused: {0, 0, OutcomeUnknown, ErrNoAnswer, "no answer: the TLS handshake was refused"},
	proxyRefused:       {1, 1, OutcomeUnknown, ErrNoAnswer, "no answer: the proxy could not connect"},
	proxyWantsLogin:    {0, 0, OutcomeUnknown, ErrNoAnswer, "no answer: the proxy wants a login"},
	connectionBroken:   {many, many, OutcomeUnknown, ErrNoAnswer, "no answer: the connection broke"},
	transportFailed:    {many, 0, OutcomeUnknown, ErrNoAnswer, "no answer: the HTTP transport failed"},
	attemptTimedOut:    {2, 2, OutcomeUnknown, ErrTimeout, "no answer within the attempt timeout"},
	headerTooLarge:     {0, 0, OutcomeUnknown, ErrBadResponse, "the answer's header is too large"},
	answerGarbled:      {1, 0, OutcomeUnknown, ErrBadResponse, "the answer is not HTTP"},

	requestRefused:    {0, 0, OutcomeRejected, nil, "refused"},
	requestTooLarge:   {0, 0, OutcomeRejected, ErrTooLarge, "refused as too large"},
	unauthorized:      {1, 1, OutcomeRejected, ErrUnauthorized, "refused"},
	requestTimeout:    {2, 0, OutcomeUnknown, ErrTimeout, "failed"},
	misdirected:       {1, 1, OutcomeRejected, ErrBadRequest, "refused"},
	tooEarly:          {1, 1, OutcomeRejected, ErrBadRequest, "refused"},
	rateLimited:       {many, many, OutcomeRejected, ErrRateLimited, "refused"},
	serverFailed:      {2, 0, OutcomeUnknown, ErrServer, "failed"},
	serverUnavailable: {many, 0, OutcomeUnknown, ErrServer, "failed"},
	notSupported:      {0, 0, OutcomeRejected, ErrServer, "refused"},
	movedElsewhere:    {0, 0, OutcomeUnknown, ErrRedirect, "a redirect, not followed"},
	movedRepeat:       {0, 0, OutcomeRejected, ErrRedirect, "a redirect, not followed"},

	statusUnusable:  {0, 0, OutcomeUnknown, ErrBadResponse, "the status is no result"},
	answerIsHTML:    {0, 0, OutcomeUnknown, ErrBadResponse, "the answer is an HTML page"},
	answerEncoded:   {0, 0, OutcomeAccepted, ErrBadResponse, "the answer has a content encoding that was not asked for"},
	answerTooLarge:  {0, 0, OutcomeAccepted, ErrResponseTooLarge, "the answer exceeds the response cap"},
	answerCutOff:    {many, 0, OutcomeAccepted, ErrBadResponse, "the answer was cut off"},
	answerMalformed: {1, 0, OutcomeAccepted, ErrBadResponse, "the answer is not the documented JSON"},
}

// statusPoint places an answer by its status alone.
func statusPoint(status int) point {
	switch status {
	case 301, 302, 303:
		return movedElsewhere
	case 307, 308:
		return movedRepeat
	case 401:
		return unauthorized
	case 408:
		return requestTimeout
	case 413, 414, 431:
		return requestTooLarge
	case 421:
		return misdirected
	case 425:
		return tooEarly
	case 429:
		return rateLimited
	case 501, 505:
		return notSupported
	case 502, 503, 504:
		return serverUnavailable
	}
	switch status / 100 {
	case 2:
		return success
	case 4:
		return requestRefused
	case 5:
		return serverFailed
	}
	return statusUnusable
}
