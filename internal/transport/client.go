package transport

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// A Service is what a package fixes for all its clients.
type Service struct {
	Name        string // of the package
	Defaults    Settings
	Network     Network
	CallTimeout time.Duration // of a call whose context has no deadline; 0: none
}

// A Client is safe for concurrent use; nothing in it changes but the pause, the
// retry budget and the shared token renewal. Its closures keep the address and
// the caller's transport, which may hold a credential, out of the reach of fmt.
type Client struct {
	service   Service
	address   func(path string) string
	roundTrip func(*http.Request) (*http.Response, error)
	settings  *Settings
	gate      gate
	budget    *budget
	renew     renew
}

// New makes a client without touching the network.
func New(service Service, baseURL string, opts []Option) (*Client, error) {
	settings, err := service.Defaults.with(opts, false)
	if err != nil {
		return nil, err
	}
	base, err := parseBase(baseURL, settings.InsecureHTTP)
	if err != nil {
		return nil, err
	}
	if err := settings.checkAuthorization(); err != nil {
		return nil, err
	}
	c := &Client{service: service, settings: settings, budget: newBudget(), renew: newRenew()}
	c.address = func(path string) string { return base + path }
	switch hc := settings.HTTPClient; {
	case hc == nil:
		c.roundTrip = newTransport(service.Network).RoundTrip
	case hc.Transport == nil:
		c.roundTrip = http.DefaultTransport.RoundTrip
	default:
		c.roundTrip = hc.Transport.RoundTrip
	}
	if hc := settings.HTTPClient; hc != nil && hc.Timeout > 0 {
		settings.AttemptTimeout = shorter(settings.AttemptTimeout, hc.Timeout)
	}
	return c, nil
}

// shorter compares two timeouts of which zero is none.
func shorter(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

func (s *Settings) checkAuthorization() error {
	sent := slices.ContainsFunc(s.headers, func(h header) bool { return h.name == "Authorization" })
	if sent && s.Token != nil {
		return Invalid("both a token source and an Authorization header are given")
	}
	return nil
}

// A Call is one operation, as its service describes it.
type Call struct {
	Operation string            // for errors and logs: "lookup"
	Method    string            //
	Route     string            // the path's template, for logs
	Path      string            // the escaped path, below the base address
	Headers   func(http.Header) // sets the call's own headers
	Body      []byte            // nil: none; never changed after the call began
	Write     bool              // processed twice, it does harm
	Stream    bool              // hand the body of a 200 over unread
	Partial   bool              // the call asks for a range: a 206 is a 200 to it
	Offset    int64             // where the range begins, which the response cap counts
	Resume    int               // the call resumes a stream, for the nth time in a row: it begins with a wait

	// Patient calls may queue for the limiter beyond the CallTimeout. It bounds
	// their attempts, where nothing else does.
	Patient bool
	// Wire ends the request on the wire. The call's own context then ends what has
	// not begun: waits and further attempts. Nil: that ends both.
	Wire context.Context

	// Decode reads the body of a success, and keeps nothing of it. Its error makes
	// the answer malformed.
	Decode func(body []byte) error
}

// JSONHeaders sets the headers of a call that sends and reads JSON.
func JSONHeaders(h http.Header) {
	const json = "application/json"
	values := []string{json, json}
	h["Content-Type"], h["Accept"] = values[:1:1], values[1:]
}

// A Result is what became of a call. Failure is nil exactly when it succeeded;
// a write succeeds by its status, whatever happened to the answer's body.
type Result struct {
	Failure    *Failure
	Outcome    Outcome
	Evidence   Evidence
	StatusCode int
	Header     http.Header
	RequestID  string
	Attempts   int
	Body       []byte
	BodyErr    error
	Stream     io.ReadCloser
	Length     int64 // of Stream; -1: not announced
	Framed     bool  // the end of Stream can be told from a broken connection
	Repeats    bool  // the settings allow repetitions
}

// Do performs a call with its attempts, and ends by the context's deadline.
func (c *Client) Do(ctx context.Context, call *Call, opts []Option) Result {
	if ctx == nil {
		return refused(call, Invalid("the context is nil"))
	}
	settings, err := c.settings.with(opts, true)
	if err == nil && settings != c.settings {
		err = settings.checkAuthorization()
	}
	if err != nil {
		return refused(call, err)
	}
	_, bounded := ctx.Deadline()
	switch {
	case bounded || c.service.CallTimeout == 0:
	case !call.Patient:
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.service.CallTimeout)
		defer cancel()
	case settings.AttemptTimeout == 0:
		patient := *settings
		patient.AttemptTimeout = c.service.CallTimeout
		settings = &patient
	}
	r := &run{client: c, call: call, settings: settings}
	r.log = newCallLog(ctx, settings.Logger, c.service.Name, call)
	r.began = r.log.now()
	var body any
	if call.Body != nil {
		body = call.Body
	}
	req, err := retryablehttp.NewRequestWithContext(ctx, call.Method, c.address(call.Path), body)
	if err != nil {
		return refused(call, Invalid("the request cannot be built"))
	}
	if call.Resume > 0 {
		wait := settings.backoff(call.Resume-1, false)
		r.log.resume(wait)
		if err := Sleep(ctx, wait); err != nil {
			return refused(call, endedBy(ctx, err, nil))
		}
	}
	// The two serve one call: their policies need the call's state, which
	// go-retryablehttp does not hand them.
	r.http = http.Client{Transport: r, CheckRedirect: redirect}
	r.loop = retryablehttp.Client{
		HTTPClient:   &r.http,
		RetryMax:     settings.MaxRetries,
		CheckRetry:   r.next,
		Backoff:      func(time.Duration, time.Duration, int, *http.Response) time.Duration { return r.wait },
		ErrorHandler: retryablehttp.PassthroughErrorHandler,
	}
	// What the loop returns is already in the run, together with what it drops.
	_, _ = r.loop.Do(req)
	return r.result(ctx)
}

// refused is the result of a call that ended before its first attempt.
func refused(call *Call, err error) Result {
	return Result{
		Outcome: OutcomeNotSent,
		Failure: &Failure{Operation: call.Operation, Err: err},
	}
}

// conceal hides what the service repeats of the caller's own credentials and ids
// in a code or a request id, which are printed.
func (r *run) conceal(a *attempt, s string) string {
	if s == "" {
		return ""
	}
	repeats := func(own string) bool {
		own = strings.TrimPrefix(own, "Bearer ")
		return own != "" && (s == own || len(own) >= 8 && strings.Contains(s, own))
	}
	for _, values := range a.request {
		if slices.ContainsFunc(values, repeats) {
			return "****"
		}
	}
	if slices.ContainsFunc(strings.Split(r.call.Path, "/"), repeats) {
		return "****"
	}
	return s
}

// requestID takes the first of the headers in common use; the service documents
// none.
func requestID(h http.Header) string {
	for _, name := range [...]string{"X-Request-Id", "X-Correlation-Id", "Request-Id"} {
		if id := strings.TrimSpace(h.Get(name)); id != "" {
			return id
		}
	}
	return ""
}
