package main

import (
	"bytes"
	"context"
	"errors"
	"math"
	"net/http"
	"time"

	"github.com/carddata/carddata-go/internal/fault"
)

const (
	requestTimeout = 30 * time.Second
	shortWait      = 10 * time.Second // the longest Retry-After to wait for
	mostFailures   = 3                // responses with a 5xx before the run stops
)

// A sender sends a plan.
type sender struct {
	plan   *plan
	pause  time.Duration // before each request
	say    func(string)
	client *http.Client
	words  words
	first  []byte           // body of the response to the refund that is sent twice
	seen   map[string]*fact // by entry
}

func newSender(p *plan, rate float64, say func(string)) *sender {
	return &sender{
		plan: p, seen: map[string]*fact{}, pause: time.Duration(float64(time.Second) / rate), say: say, words: newWords(p),
		client: &http.Client{
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport: &http.Transport{
				DisableCompression: true,
				DisableKeepAlives:  true, // net/http would repeat a request on a kept connection
			},
		},
	}
}

// run sends the requests of the plan. An error says why it stopped early.
func (s *sender) run(ctx context.Context, read, write bool) error {
	failures := 0
	for _, e := range s.plan.entries {
		if e.write && !write || !e.write && !read {
			continue
		}
		status, wait, err := s.send(ctx, e)
		if err != nil {
			return err
		}
		if status/100 == 5 {
			failures++
		}
		switch {
		case failures == mostFailures:
			return errors.New("stopped: the service failed three times (5xx)")
		case status != http.StatusTooManyRequests:
		case wait > shortWait:
			return errors.New("stopped: the service said 429 without a Retry-After of at most 10 s")
		default:
			if err := sleep(ctx, wait); err != nil {
				return err
			}
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// send sends an entry, and returns its status and how long a 429 asks to wait.
func (s *sender) send(ctx context.Context, e entry) (status int, wait time.Duration, err error) {
	if err := sleep(ctx, s.pause); err != nil {
		return 0, 0, err
	}
	s.say(e.id)
	attempt, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(attempt, e.method, e.url, bytes.NewReader(e.body))
	if err != nil {
		return 0, 0, errors.New("a base URL cannot be used")
	}
	req.Header, req.GetBody = e.header, nil
	f := &fact{}
	s.seen[e.id] = f
	began := time.Now()
	resp, err := s.client.Do(req)
	if err == nil {
		f.Millis = max(1, time.Since(began).Milliseconds())
		body := s.observe(f, &e, resp)
		resp.Body.Close()
		switch e.id {
		case "refund-full":
			s.first = body
		case "refund-again":
			f.Repeats = s.first != nil && bytes.Equal(s.first, body)
		}
		var ok bool
		if wait, ok = fault.RetryAfter(resp.Header); !ok {
			wait = math.MaxInt64
		}
	} else if ctx.Err() != nil {
		return 0, 0, ctx.Err()
	}
	return f.Status, wait, nil
}
