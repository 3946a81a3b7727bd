package quota

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Redis is what a Limiter needs of a go-redis client. Any of them has it.
type Redis interface {
	Eval(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd
	EvalSha(ctx context.Context, sha1 string, keys []string, args ...any) *redis.Cmd
	HGet(ctx context.Context, key, field string) *redis.StringCmd
}

//go:embed reserve.lua
var reserveScript string

// Slots are the state of a quota in Redis.
type slots struct {
	redis            Redis
	key              string
	script, hash     string
	interval, credit int64 // microseconds
}

// A slot is the leave to send one request at a time that is reserved for it.
type slot struct {
	wait       time.Duration
	generation string
}

func newSlots(client Redis, name string, interval int64, burst int) slots {
	key := "quota:" + name
	// A Redis that ended has forgotten its scripts, and even if it kept its data the
	// latest may be missing. A script that no other quota uses tells: where it is
	// unknown, slots may be, too.
	script := reserveScript + "-- " + strconv.Quote(key) + "\n"
	return slots{
		redis: client, key: key,
		script: script, hash: redis.NewScript(script).Hash(),
		interval: interval, credit: int64(burst-1) * interval,
	}
}

func (s *slots) reserve(ctx context.Context) (slot, error) {
	longest := int64(-1)
	if deadline, ok := ctx.Deadline(); ok {
		longest = max(0, time.Until(deadline).Microseconds())
	}
	reply, err := ask(ctx, func() ([]any, error) {
		args := []any{s.interval, s.credit, longest, grace.Microseconds(), ""}
		reply, err := s.redis.EvalSha(ctx, s.hash, []string{s.key}, args...).Slice()
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			args[len(args)-1] = "doubt"
			return s.redis.Eval(ctx, s.script, []string{s.key}, args...).Slice()
		}
		return reply, err
	})
	if err != nil {
		return slot{}, err
	}
	granted, wait, generation, err := read(reply)
	switch {
	case err != nil:
		return slot{}, &UnavailableError{err}
	case !granted:
		return slot{}, &DeadlineError{wait}
	}
	return slot{wait, generation}, nil
}

func read(reply []any) (granted bool, wait time.Duration, generation string, err error) {
	if len(reply) == 3 {
		given, isInt := reply[0].(int64)
		micros, isTime := reply[1].(int64)
		if generation, isText := reply[2].(string); isInt && isTime && isText {
			return given == 1, time.Duration(micros) * time.Microsecond, generation, nil
		}
	}
	return false, 0, "", fmt.Errorf("the script returned %d values of other types", len(reply))
}

// confirm tells whether Redis still knows a slot.
func (s *slots) confirm(ctx context.Context, old slot) (bool, error) {
	generation, err := ask(ctx, func() (string, error) {
		generation, err := s.redis.HGet(ctx, s.key, "generation").Result()
		if errors.Is(err, redis.Nil) {
			return "", nil
		}
		return generation, err
	})
	return generation == old.generation, err
}

// ask returns when ctx ends, whatever Redis does: go-redis would wait for the
// reply of a stalled one until a deadline or its own timeout, even if ctx is
// canceled before.
func ask[T any](ctx context.Context, question func() (T, error)) (T, error) {
	type result struct {
		reply T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		reply, err := question()
		done <- result{reply, err}
	}()
	var none T
	select {
	case <-ctx.Done():
		return none, ctx.Err()
	case r := <-done:
		// What is left of the time may be measured as over before ctx ends.
		if deadline, ok := ctx.Deadline(); ok && r.err != nil && time.Until(deadline) <= 0 {
			return none, context.DeadlineExceeded
		}
		switch {
		case r.err == nil:
			return r.reply, nil
		case ctx.Err() != nil:
			return none, ctx.Err()
		}
		return none, &UnavailableError{r.err}
	}
}
