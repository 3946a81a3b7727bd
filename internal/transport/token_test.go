package transport

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/internal/auth"
	"github.com/carddata/carddata-go/internal/fault"
)

// An unusable token is refused with the name of the mistake, and never quoted.
func TestUnusableToken(t *testing.T) {
	for token, mistake := range map[string]string{
		"": "empty", " ": "visible ASCII", " canary": "visible ASCII", "canary ": "visible ASCII", "can ary": "visible ASCII", "can\tary": "visible ASCII",
		"canary\nX: y": "visible ASCII", "canary\x00": "visible ASCII", "canary\x7f": "visible ASCII", "cánary": "visible ASCII", "canary\xff": "visible ASCII",
		"canary" + strings.Repeat("a", 8<<10): "visible ASCII",
		"canary\r":                            "ends in a line break", "canary\n": "ends in a line break", "canary\r\n": "ends in a line break",
		"Bearer canary": `begins with "Bearer "`, "bearer canary": `begins with "Bearer "`, " Bearer canary": `begins with "Bearer "`, "BEARER\tcanary": `begins with "Bearer "`,
		"Bearer": `begins with "Bearer "`, "Bearer ": `begins with "Bearer "`, "bearer\n": `begins with "Bearer "`, "Bearer\u00a0canary": `begins with "Bearer "`,
	} {
		_, err := New(testService(), "https://service.test", []Option{WithTokenSource(auth.Static(token))})
		if text := fmt.Sprintf("%+v", err); !errors.Is(err, fault.ErrInvalidArgument) || strings.Contains(text, "canary") || !strings.Contains(text, mistake) {
			t.Errorf("%q: %s", token, text)
		}
		network := serve(status(200))
		c := newClient(t, network, WithTokenSource(auth.Func(func(context.Context) (string, error) { return token, nil })))
		r := c.get(t.Context())
		check(t, r.err(), fault.ErrCredential)
		cached := auth.Cached(func(context.Context) (string, time.Time, error) { return token, time.Time{}, nil })
		check(t, newClient(t, network, WithTokenSource(cached)).get(t.Context()).err(), fault.ErrCredential)
		if text := fault.Describe("test", r.Failure); strings.Contains(text, "canary") || !strings.Contains(text, "token source") || !strings.Contains(text, mistake) {
			t.Errorf("%q from a source: %s", token, text)
		}
		if network.requests() != 0 || r.Outcome != fault.OutcomeNotSent {
			t.Errorf("%q was sent: %v", token, r.Outcome)
		}
	}
	for _, token := range []string{"bearer_1", strings.Repeat("a", 8<<10)} {
		if _, err := auth.NewSource(auth.Static(token)); err != nil {
			t.Error(err)
		}
	}
}

// After a 401 the source is told, asked once more, and a different token is sent at once.
func TestRenewal(t *testing.T) {
	broken := errors.New("no vault")
	for _, test := range []struct {
		name            string
		response        func(n int64) (string, error)
		asked, requests int64
		condition       string // "": it succeeds
		is              []error
	}{
		{"a new token", func(n int64) (string, error) { return fmt.Sprint("t", n), nil }, 2, 2, "", nil},
		{"the same token", func(int64) (string, error) { return "t1", nil }, 2, 1, "unauthorized", nil},
		{"another that is refused too", func(n int64) (string, error) { return fmt.Sprint("t", 2*n-1), nil }, 2, 2, "unauthorized", nil},
		{"a source that fails", func(n int64) (string, error) {
			if n > 1 {
				return "", broken
			}
			return "t1", nil
		}, 2, 1, "no_credential", []error{broken, fault.ErrUnauthorized}},
		{"an unusable token", func(n int64) (string, error) { return []string{"t1", "a b"}[n-1], nil }, 2, 1, "no_credential", []error{fault.ErrUnauthorized}},
	} {
		synctest.Test(t, func(t *testing.T) {
			network := serve(func(r *http.Request) (*http.Response, error) {
				if r.Header.Get("Authorization") != "Bearer t2" {
					return reply(401, ""), nil
				}
				return reply(200, ""), nil
			})
			asked, told := int64(0), ""
			source := &refusable{func() (string, error) { asked++; return test.response(asked) }, func(token string) { told += token }}
			r := newClient(t, network, WithTokenSource(source)).Do(t.Context(), write(), nil)
			if (r.Failure == nil) != (test.condition == "") {
				t.Errorf("%s: %v", test.name, r.err())
			} else if f := r.Failure; f != nil && (f.Condition() != test.condition || r.Outcome != fault.OutcomeRejected || f.StatusCode != 401) {
				t.Errorf("%s: %v, %+v", test.name, r.Outcome, f)
			}
			check(t, r.err(), test.is...)
			if asked != test.asked || int64(network.requests()) != test.requests || told != "t1" || time.Since(network.began) != 0 {
				t.Errorf("%s: asked %d times, told of %q, %d requests", test.name, asked, told, network.requests())
			}
		})
	}
}

type refusable struct {
	token   func() (string, error)
	refused func(string)
}

func (s *refusable) Token(context.Context) (string, error) { return s.token() }
func (s *refusable) Refused(token string)                  { s.refused(token) }

// Each attempt asks the source for a token, because the token of the attempt before may have
// expired in the wait.
func TestEachAttemptGetsAToken(t *testing.T) {
	asked := 0
	network := serve(status(503), status(503), status(200))
	r := newClient(t, network, WithRetryWait(0, 0), WithTokenSource(auth.Func(func(context.Context) (string, error) { asked++; return fmt.Sprint("t", asked), nil }))).get(t.Context())
	if got := network.headers[2].Get("Authorization"); r.Failure != nil || got != "Bearer t3" {
		t.Errorf("the third attempt sent %q: %v", got, r.err())
	}
}
