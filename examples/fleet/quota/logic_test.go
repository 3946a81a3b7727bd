package quota_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/carddata/carddata-go/examples/fleet/quota"
)

// A script is a Redis that replies as a test says, and is slow.
type script struct {
	replies []any // of the calls, the last for all that follow
	errs    []error
	delay   time.Duration
	calls   []string
	known   string // the generation
}

func (s *script) next() (any, error) {
	i := min(len(s.calls)-1, len(s.replies)-1)
	time.Sleep(s.delay)
	if i < len(s.errs) {
		return s.replies[i], s.errs[i]
	}
	return s.replies[i], nil
}

func (s *script) EvalSha(_ context.Context, _ string, _ []string, args ...any) *redis.Cmd {
	s.calls = append(s.calls, "evalsha")
	return redis.NewCmdResult(s.next())
}

func (s *script) Eval(_ context.Context, text string, _ []string, args ...any) *redis.Cmd {
	s.calls = append(s.calls, "eval "+args[4].(string))
	if !strings.HasSuffix(text, "-- \"quota:a\\nb\"\n") {
		panic("the script is not the quota's own: " + text)
	}
	return redis.NewCmdResult(s.next())
}

func (s *script) HGet(context.Context, string, string) *redis.StringCmd {
	s.calls = append(s.calls, "hget")
	return redis.NewStringResult(s.known, nil)
}

func slot(wait time.Duration) any { return []any{int64(1), wait.Microseconds(), "g1"} }

func TestWait(t *testing.T) {
	for _, test := range []struct {
		name  string
		redis script
		calls string
		took  time.Duration
		late  bool
	}{
		{"at once", script{replies: []any{slot(0)}}, "evalsha", 0, false},
		{"queued", script{replies: []any{slot(time.Second)}}, "evalsha", time.Second, false},
		{"confirmed", script{replies: []any{slot(3 * time.Second)}, known: "g1"}, "evalsha hget", 3 * time.Second, false},
		{"lost", script{replies: []any{slot(3 * time.Second), slot(0), slot(500 * time.Millisecond)}, known: "g2"},
			"evalsha hget evalsha", 2500 * time.Millisecond, false},
		{"first", script{replies: []any{nil, slot(0)}, errs: []error{redisError("NOSCRIPT No matching script.")}}, "evalsha eval doubt", 0, false},
		{"slow", script{replies: []any{slot(0)}, delay: 99 * time.Millisecond}, "evalsha", 99 * time.Millisecond, false},
		{"too late", script{replies: []any{slot(0)}, delay: 101 * time.Millisecond}, "evalsha evalsha evalsha evalsha evalsha",
			505 * time.Millisecond, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, err := quota.New(&test.redis, "a\nb", 10, 1)
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				err = l.Wait(t.Context())
				calls := strings.Join(test.redis.calls, " ")
				_, late := errors.AsType[*quota.UnavailableError](err)
				if (err != nil) != test.late || late != test.late || calls != test.calls || time.Since(began) != test.took {
					t.Errorf("%v after %s and %s; want %s and %s", err, time.Since(began), calls, test.took, test.calls)
				}
			})
		})
	}
}

func TestUnusableReplies(t *testing.T) {
	for _, reply := range []any{nil, []any{}, []any{int64(1), "2", "g"}, []any{int64(1), int64(2)}, "OK", int64(1)} {
		l, err := quota.New(&script{replies: []any{reply}}, "a", 10, 1)
		if err != nil {
			t.Fatal(err)
		}
		err = l.Wait(t.Context())
		if _, ok := errors.AsType[*quota.UnavailableError](err); !ok {
			t.Errorf("%v: %v", reply, err)
		}
	}
}

type redisError string

func (e redisError) Error() string { return string(e) }
func (redisError) RedisError()     {}
