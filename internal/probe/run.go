package probe

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/transport"
)

const (
	requestTimeout = 30 * time.Second
	shortRetry     = 10 * time.Second // a Retry-After that is waited for
	maxServerError = 3
)

// A Config is how a run sends.
type Config struct {
	Mode Mode
	Rate float64 // requests a second; 0: 1
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	TLS  *tls.Config
	Say  func(format string, args ...any) // progress
}

// A sender sends one plan.
type sender struct {
	plan    *Plan
	ledger  *Ledger
	config  Config
	client  *http.Client
	stop    context.Context // ends the watches
	watches sync.WaitGroup
	failed  int               // 5xx
	shown   map[string]string // names that were met
}

// Run sends what of the plan has not been sent yet, and returns why it stopped
// early, or "". An error is this side's: the ledger, or the context.
func Run(ctx context.Context, plan *Plan, ledger *Ledger, config Config) (stopped string, err error) {
	config.Rate, config.TLS = cmp.Or(config.Rate, 1), cmp.Or(config.TLS, &tls.Config{})
	if config.Dial == nil {
		config.Dial = (&net.Dialer{Timeout: 10 * time.Second}).DialContext
	}
	e := &sender{plan: plan, ledger: ledger, config: config, shown: map[string]string{}}
	e.client = &http.Client{
		Timeout:       requestTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: config.Dial, TLSClientConfig: config.TLS, DisableCompression: true,
			DisableKeepAlives: true, // net/http repeats a request on a kept connection by itself
		},
	}
	if config.Mode == ModePlan {
		return "", nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e.stop = ctx
	if err := ledger.claim(plan.service()); err != nil {
		return "", err
	}
	e.connect(ctx)
	for i := range plan.Entries {
		if entry := &plan.Entries[i]; entry.Mode <= config.Mode && stopped == "" && err == nil {
			stopped, err = e.send(ctx, entry)
		}
	}
	if err != nil {
		cancel()
	}
	e.config.Say("waiting until idle connections are closed, at most %.0f s", idleWatch.Seconds())
	e.watches.Wait()
	if err = cmp.Or(err, ctx.Err()); err != nil || stopped != "" {
		return stopped, err
	}
	return "", ledger.finish()
}

// send sends one entry, unless it was sent before or makes no sense any more.
func (e *sender) send(ctx context.Context, entry *Entry) (stopped string, err error) {
	if e.ledger.wasSent(entry.ID) {
		return "", nil
	}
	req, asked, err := e.request(entry)
	if req == nil || err != nil {
		return "", err
	}
	if err := transport.Sleep(ctx, time.Duration(float64(time.Second)/e.config.Rate)); err != nil {
		return "", err
	}
	if err := e.ledger.begin(entry.ID); err != nil {
		return "", err
	}
	e.config.Say("%s", entry.ID)
	fact, wait := e.exchange(ctx, entry, asked, req)
	if err := e.ledger.keep(fact); err != nil {
		return "", err
	}
	switch {
	case fact.Status == http.StatusTooManyRequests && (wait < 0 || wait > shortRetry):
		return "the service said 429 without a short Retry-After", nil
	case fact.Status == http.StatusTooManyRequests:
		return "", transport.Sleep(ctx, wait)
	case fact.Status >= 500:
		if e.failed++; e.failed == maxServerError {
			return "the service failed three times (5xx)", nil
		}
	}
	return "", nil
}

// request makes the request of an entry, or none if it would answer nothing.
func (e *sender) request(entry *Entry) (req *http.Request, asked []string, err error) {
	t, seen := &e.plan.Target, e.ledger.Seen()
	method, base, token, header, skip, body := http.MethodPost, t.BinURL, t.APIKey, http.Header{}, false, any(nil)
	switch entry.Area {
	case "bins":
		known := seen.known()
		if skip = len(known) < entry.needs; !skip {
			asked = entry.cards(known)
		}
		// One refusal of an unknown card says it, and may count as a failure.
		first := seen["lookup-unknown-"+unknownCards[0]]
		skip = skip || slices.Contains(entry.Points, "lookup.unknown") && first.said() && first.Status/100 != 2
		body = &bins.LookupRequest{Cards: bins.Cards(asked...), Enhanced: entry.enhanced}
		if entry.broken {
			token, asked = token+brokenSuffix, nil
		}
	case "updater":
		method, base, token, header = http.MethodGet, t.UpdaterURL, t.AccessToken, entry.header(seen)
		if skip = header == nil; !skip {
			header.Set("X-Merchant-Id", t.MerchantID)
			header.Set("Accept-Encoding", "identity")
		}
	case "refunds":
		refund := entry.refund(seen)
		base, token, skip, body = t.RefundURL, "", refund == nil, refund
	}
	if skip {
		return nil, nil, nil
	}
	var content []byte
	if body != nil {
		content, _ = json.Marshal(body) // of what the plan has, which can be encoded
		header.Set("Content-Type", "application/json")
	}
	if token != "" {
		header.Set("Authorization", "Bearer "+token)
	}
	if req, err = http.NewRequest(method, base+entry.path, bytes.NewReader(content)); err != nil {
		return nil, nil, errors.New("a base URL cannot be used")
	}
	req.Header, req.GetBody = header, nil
	return req, asked, nil
}

// exchange sends the request, and reduces what comes to a fact.
func (e *sender) exchange(ctx context.Context, entry *Entry, asked []string, req *http.Request) (*Fact, time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	resp, conn, err := e.do(req.WithContext(ctx), entry.idle)
	if err != nil {
		return &Fact{Entry: entry.ID, Asked: asked}, 0
	}
	defer resp.Body.Close()
	fact := e.observe(entry, asked, resp)
	if conn != nil && resp.Close {
		conn.Close()
	} else if conn != nil {
		e.watch(conn, "idle-after-response")
	}
	return fact, retryAfter(resp.Header.Get("Retry-After"))
}

// retryAfter reads seconds or a date. It is negative if there is neither.
func retryAfter(text string) time.Duration {
	if seconds, err := strconv.Atoi(text); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(text); err == nil {
		return max(0, time.Until(date))
	}
	return -1
}
