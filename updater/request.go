package updater

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/transport"
)

const (
	operation = "download"
	route     = "/updater/inquiries/jobs/{jobId}/download"
)

// A request is for the result of one job, whole or from an offset. It may be sent several
// times, and counts for the whole call.
type request struct {
	client *Client
	opts   []Option
	path   string
	ids    func() []string // the caller's ids in path

	attempts  int
	resumes   int    // those for the rest of a broken stream
	requestID string // of the last response
	settings  *transport.Settings
	began     time.Time // of the call
}

func (c *Client) request(ctx context.Context, jobID string, opts []Option) (*request, error) {
	job, err := transport.Segment("job id", jobID)
	switch {
	case c == nil || c.core == nil:
		err = fault.Invalid("the client was not made by NewClient")
	case c.merchant() == "":
		err = fault.Invalid("the client has no merchant: make one for a merchant with ForMerchant")
	case ctx == nil:
		err = fault.Invalid("the context is nil")
	}
	q := &request{client: c, opts: opts, path: "/updater/inquiries/jobs/" + job + "/download", ids: func() []string { return []string{jobID} }, began: time.Now()}
	if err != nil {
		return nil, q.failure(err)
	}
	return q, nil
}

func (q *request) failure(err error) *Error {
	return &Error{Operation: operation, RequestID: q.requestID, Attempts: q.attempts, Err: err}
}

// resource identifies the result of one service, job and merchant by a hash, without their
// names.
func (q *request) resource() string {
	address, merchant := sha256.Sum256([]byte(q.client.core.Address(q.path))), sha256.Sum256([]byte(q.client.merchant()))
	return fmt.Sprintf("%x", sha256.Sum256(append(address[:], merchant[:]...)))
}

// A want says which content to request.
type want struct {
	offset  int64   // of the first byte
	version version // ask for the rest of this version; zero: for the whole
	unless  version // the caller has this version, and does not want it again
	retry   int     // number of consecutive tries; the wait grows with each
}

func (q *request) send(ctx context.Context, w want) transport.Result {
	ranged := w.version.Validator != ""
	condition, value := w.unless.condition()
	res := q.client.core.Do(ctx, &transport.Call{
		Operation: operation,
		Method:    http.MethodGet,
		Route:     route,
		Path:      q.path,
		Headers: func(h http.Header) {
			h.Set("x-merchant-id", q.client.merchant())
			h["Accept-Encoding"] = []string{"identity"}
			if ranged {
				h["Range"] = []string{"bytes=" + strconv.FormatInt(w.offset, 10) + "-"}
				h["If-Range"] = []string{w.version.Validator}
			}
			if value != "" {
				h[condition] = []string{value}
			}
		},
		Stream:      true,
		Partial:     ranged,
		Conditional: value != "",
		Offset:      w.offset,
		Resume:      w.retry,
		Identifiers: q.ids,
	}, q.opts)
	q.attempts += res.Attempts
	q.requestID, q.settings = res.RequestID, cmp.Or(res.Settings, q.settings)
	return res
}
