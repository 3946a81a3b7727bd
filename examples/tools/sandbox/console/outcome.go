package console

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"syscall"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/updater"
)

// A verdict is what this library makes of a response.
type verdict struct {
	// Outcome of a refund is accepted, rejected or unknown. Otherwise it is ok or failed.
	Outcome string `json:"outcome"`
	// Condition is the library's name for what went wrong.
	Condition string `json:"condition,omitempty"`
	// Action is what to do with a refund, as refunds.ActionOf says.
	Action string `json:"action,omitempty"`
	// Retried reports whether the library sends the request again by itself.
	Retried bool `json:"retried"`
}

// judge gives the same response to a client of the library to find out.
func judge(area sandbox.Area, a *response, state string) *verdict {
	if area == "" || state == open {
		return nil
	}
	again := replay{status: a.status, header: a.Header(), sent: a.body, whole: a.body}
	switch {
	case state != complete:
		again.whole = append(bytes.Clone(a.body), '-') // one byte is missing
	case area == sandbox.Bins && a.status == http.StatusOK && a.sent > maxResponse:
		again.sent = []byte(`{"cards":[{"bin":"411111"}]}`) // only its beginning was kept
		again.whole = again.sent
	}
	if a.status == http.StatusPartialContent && a.request.Header.Get("Range") != "" {
		again.status = http.StatusOK // the replay asks for no range
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	err := call(ctx, area, &http.Client{Transport: &again})
	v := &verdict{Outcome: "ok", Retried: again.requests > 1}
	if err != nil {
		v.Outcome = "failed"
	}
	if area == sandbox.Refunds {
		v.Outcome, v.Action = refunds.OutcomeAccepted.String(), refunds.ActionOf(err).String()
		if failed, ok := errors.AsType[*refunds.Error](err); ok {
			v.Outcome = failed.Outcome.String()
		}
	}
	var failure interface {
		error
		Condition() string
	}
	if errors.As(err, &failure) {
		v.Condition = failure.Condition()
	}
	return v
}

// A replay is a transport that gives the same response each time. A request for a range
// gets the rest of the body.
type replay struct {
	status      int
	header      http.Header
	sent, whole []byte // the body that was sent, and the one that was announced
	requests    int
}

func (p *replay) RoundTrip(r *http.Request) (*http.Response, error) {
	p.requests++
	if r.Body != nil {
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	if p.status == 0 {
		return nil, syscall.ECONNRESET
	}
	resp := &http.Response{
		StatusCode: p.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{},
	}
	for _, name := range []string{"Content-Type", "Etag", "Ratelimit", "Ratelimit-Remaining", "X-Ratelimit-Remaining", "X-Rate-Limit-Remaining"} {
		resp.Header[name] = p.header[name]
	}
	if p.header.Get("Retry-After") != "" {
		resp.Header.Set("Retry-After", "0") // it signs a 429, and nobody waits here
	}
	from, sent := 0, p.sent
	if n, _ := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from); n == 1 && from < len(p.whole) {
		sent = p.whole[from:]
		resp.StatusCode = http.StatusPartialContent
		resp.Header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(p.whole)-1, len(p.whole)))
	}
	resp.ContentLength = int64(len(p.whole) - from)
	var end error = io.EOF
	if len(sent) < len(p.whole)-from {
		end = io.ErrUnexpectedEOF
	}
	resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(sent), failedReader{end}))
	return resp, nil
}

// call makes a call of the library for a request of area.
func call(ctx context.Context, area sandbox.Area, client *http.Client) error {
	const base, name = sandbox.BaseURL, "sandbox"
	switch area {
	case sandbox.Bins:
		c, err := bins.NewClient(base, bins.StaticToken(name), bins.WithHTTPClient(client), bins.WithMaxRetries(1), bins.WithRetryWait(0, 0))
		if err != nil {
			return err
		}
		_, err = c.Lookup(ctx, &bins.LookupRequest{Cards: bins.Cards("411111")})
		return err
	case sandbox.Refunds:
		c, err := refunds.NewClient(base, refunds.WithHTTPClient(client), refunds.WithMaxRetries(1), refunds.WithRetryWait(0, 0))
		if err != nil {
			return err
		}
		_, err = c.Submit(ctx, name, &refunds.Refund{RefundID: name})
		return err
	}
	c, err := updater.NewClient(base, name, updater.StaticToken(name), updater.WithHTTPClient(client), updater.WithMaxRetries(1), updater.WithRetryWait(0, 0))
	if err != nil {
		return err
	}
	download, err := c.Download(ctx, name)
	if err != nil {
		return err
	}
	defer download.Close()
	_, err = io.Copy(io.Discard, download)
	return err
}
