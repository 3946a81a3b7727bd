package limit

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Only an account waits that was asked to three times without a success between. Each word is a response to an account,
// with a minute's Retry-After or (in capitals) a success.
func TestWhoWaits(t *testing.T) {
	for responses, want := range map[string]string{
		"a":             "",
		"a a":           "",
		"a a A a":       "",
		"a a a":         "a",
		"B a a a":       "a",
		"B a a B a":     "a",
		"a a b b":       "",
		"B a b a b A b": "b",
		"a b a b a b":   "ab",
		"B C a B a C a": "a",
	} {
		synctest.Test(t, func(t *testing.T) {
			var throttle Throttle
			for response := range strings.FieldsSeq(responses) {
				account := strings.ToLower(response)
				throttle.Resumes(account)
				if response == account {
					throttle.Asks(account, time.Minute)
				} else {
					throttle.Works(account)
				}
			}
			var got strings.Builder
			for _, account := range []string{"a", "b", "c"} {
				if throttle.Remaining(account) > 0 {
					got.WriteString(account)
				}
			}
			if got.String() != want {
				t.Errorf("after %q wait %q, want %q", responses, got.String(), want)
			}
		})
	}
}

// A pause is extended and never shortened, and the next response that asks for one begins it again at once, until
// something succeeds. It is news when it begins, and when it becomes longer by a second.
func TestPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var throttle Throttle
		asks := func(seconds int, news bool, left time.Duration) {
			t.Helper()
			if got := throttle.Asks("a", time.Duration(seconds)*time.Second); got != news || throttle.Remaining("a") != left {
				t.Errorf("%d seconds: news %v, %v left", seconds, got, throttle.Remaining("a"))
			}
		}
		asks(30, false, 0)
		asks(30, false, 0)
		asks(30, true, 30*time.Second)
		asks(1, false, 30*time.Second)
		asks(60, true, time.Minute)
		time.Sleep(2 * time.Minute)
		if !throttle.Resumes("a") || throttle.Resumes("a") {
			t.Error("the end of a pause is news, once")
		}
		asks(30, true, 30*time.Second)
		time.Sleep(time.Minute)
		throttle.Resumes("a")
		throttle.Works("a")
		asks(30, false, 0)
	})
}

// A Retry-After of a single response is rare, and one of an account that others are accepted beside is its own.
func TestWhatARetryAfterSays(t *testing.T) {
	var throttle Throttle
	for i := range 100 {
		throttle.Works("a")
		if i%20 == 0 {
			throttle.Asks("a", 0)
		}
	}
	if !throttle.IsRare() || throttle.IsOwn("a") {
		t.Errorf("five of a hundred: rare %v, own %v", throttle.IsRare(), throttle.IsOwn("a"))
	}
	throttle.Asks("b", 0)
	throttle.Works("a")
	for range 3 {
		throttle.Asks("b", 0)
	}
	if throttle.IsRare() || !throttle.IsOwn("b") || throttle.IsOwn("a") {
		t.Errorf("nine, four of them to b: rare %v, own to b %v, own to a %v", throttle.IsRare(), throttle.IsOwn("b"), throttle.IsOwn("a"))
	}
}
