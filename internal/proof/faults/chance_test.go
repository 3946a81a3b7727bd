package faults

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// An attemptName names an attempt of a request of the library: by the call that
// it belongs to, by what it asks for, and by how many attempts came before it.
type attemptName struct {
	request string
	n       int
	turn    int // among all attempts of the call, if they come one after the other
}

func (a attemptName) String() string { return fmt.Sprintf("%s, attempt %d", a.request, a.n) }

type attemptKey struct{}

func attemptOf(ctx context.Context) attemptName {
	a, _ := ctx.Value(attemptKey{}).(attemptName)
	return a
}

// chance draws.
type chance struct{ *rand.Rand }

// chance is what decides what is named, for a schedule.
func (s *schedule) chance(name string) chance {
	h := fnv.New64a()
	h.Write([]byte(name))
	return chance{rand.New(rand.NewPCG(s.seed, h.Sum64()))}
}

func (c chance) percent(p int) bool { return c.IntN(100) < p }

// within draws a time that hardly ever comes together with another.
func (c chance) within(d time.Duration) time.Duration { return time.Duration(c.Int64N(int64(d))) }

func pick[T any](c chance, of ...T) T { return of[c.IntN(len(of))] }

// jitter draws the random part of a wait of the library.
func (w *world) jitter(ctx context.Context, below time.Duration) time.Duration {
	who := callOf(ctx).String()
	w.mu.Lock()
	w.waits[who]++
	n := w.waits[who]
	w.mu.Unlock()
	return w.chance(fmt.Sprintf("wait %d of %s", n, who)).within(below)
}

// brief names something long in a few characters.
func brief(text string) string {
	h := fnv.New32a()
	h.Write([]byte(text))
	return fmt.Sprintf("%08x", h.Sum32())
}
