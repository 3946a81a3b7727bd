package quota_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/carddata/carddata-go/examples/fleet/internal/redisserver"
	"github.com/carddata/carddata-go/examples/fleet/internal/redistest"
	"github.com/carddata/carddata-go/examples/fleet/quota"
	"github.com/carddata/carddata-go/examples/fleet/redisclient"
)

// TestLoss takes Redis its memory while slots are reserved for a second and a
// half ahead. The new ones must not come on top of those.
func TestLoss(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		begin func(t *testing.T, client redis.UniversalClient) // half a second before
		lose  func(t *testing.T, client redis.UniversalClient, s *redisserver.Server)
	}{
		{name: "restart", lose: func(t *testing.T, _ redis.UniversalClient, s *redisserver.Server) {
			s.Kill()
			time.Sleep(500 * time.Millisecond)
			if err := s.Restart(t.Context()); err != nil {
				t.Error(err)
			}
		}},
		{
			name: "restart with old data",
			begin: func(t *testing.T, client redis.UniversalClient) {
				if err := client.Save(t.Context()).Err(); err != nil {
					t.Error(err)
				}
			},
			lose: func(t *testing.T, client redis.UniversalClient, s *redisserver.Server) {
				s.Kill()
				if err := s.Restart(t.Context()); err != nil {
					t.Error(err)
				}
				if n := client.DBSize(t.Context()).Val(); n != 1 {
					t.Errorf("%d keys were kept", n)
				}
			},
		},
		{name: "flush", lose: func(t *testing.T, client redis.UniversalClient, _ *redisserver.Server) {
			if err := client.FlushAll(t.Context()).Err(); err != nil {
				t.Error(err)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			client := redistest.Connect(t, s)
			f := startFleet(t, s, 10, 2)
			time.Sleep(2 * time.Second)
			if test.begin != nil {
				test.begin(t, client)
			}
			time.Sleep(500 * time.Millisecond)
			test.lose(t, client, s)
			time.Sleep(2500 * time.Millisecond)
			ended := time.Now()
			waits := f.finish(t)
			if _, leaves := count(waits, ended.Add(-time.Second), ended); leaves == 0 {
				t.Error("no leave was given again")
			}
			checkErrors(t, waits)
		})
	}
}

// TestStop stops Redis for good.
func TestStop(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	f := startFleet(t, s, 200, 2)
	time.Sleep(1500 * time.Millisecond)
	s.Kill()
	stopped := time.Now()
	time.Sleep(time.Second)
	ended := time.Now()
	waits := f.finish(t)
	if _, leaves := count(waits, time.Time{}, stopped); leaves == 0 {
		t.Error("no leave was given before")
	}
	// Slots that were reserved before, of 16 that wait at most, may still be used.
	if all, leaves := count(waits, stopped.Add(400*time.Millisecond), ended); leaves > 0 || all == 0 {
		t.Errorf("%d of %d waits gave leave without Redis", leaves, all)
	}
	checkErrors(t, waits)
}

// TestStall has Redis say nothing for 5 seconds.
func TestStall(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, "--enable-debug-command", "local")
	f := startFleet(t, s, 200, 2)
	time.Sleep(1500 * time.Millisecond)
	options, err := redisclient.Options(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	options.ReadTimeout = time.Minute
	patient := redis.NewUniversalClient(options)
	defer patient.Close()
	stalled := time.Now()
	resumed := make(chan time.Time, 1)
	go func() {
		if err := patient.Do(t.Context(), "DEBUG", "SLEEP", 5).Err(); err != nil {
			t.Error(err)
		}
		resumed <- time.Now()
	}()
	time.Sleep(300 * time.Millisecond)
	l, err := quota.New(redistest.Connect(t, s), "fleet", 200, 2)
	if err != nil {
		t.Fatal(err)
	}
	canceled, cancel := context.WithCancel(t.Context())
	time.AfterFunc(100*time.Millisecond, cancel)
	short, cancelShort := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancelShort()
	for ctx, want := range map[context.Context]error{canceled: context.Canceled, short: context.DeadlineExceeded} {
		began := time.Now()
		if err := l.Wait(ctx); !errors.Is(err, want) || time.Since(began) > 600*time.Millisecond {
			t.Errorf("after %s: %v, want %v", time.Since(began), err, want)
		}
	}
	end := <-resumed
	if took := end.Sub(stalled); took < 5*time.Second {
		t.Fatalf("Redis stalled for %s", took)
	}
	time.Sleep(1500 * time.Millisecond)
	ended := time.Now()
	waits := f.finish(t)
	if all, leaves := count(waits, stalled.Add(400*time.Millisecond), end); leaves > 0 || all == 0 {
		t.Errorf("%d of %d waits gave leave during the stall", leaves, all)
	}
	if _, leaves := count(waits, ended.Add(-500*time.Millisecond), ended); leaves == 0 {
		t.Error("no leave was given again")
	}
	checkErrors(t, waits)
}

// checkErrors fails the test if a wait ended without leave and without saying so
// in one of the ways that New's users can tell apart.
func checkErrors(t *testing.T, waits []wait) {
	t.Helper()
	for _, w := range waits {
		_, unavailable := errors.AsType[*quota.UnavailableError](w.err)
		if w.err != nil && !unavailable && !errors.Is(w.err, context.DeadlineExceeded) && !errors.Is(w.err, context.Canceled) {
			t.Errorf("a wait ended with %T: %v", w.err, w.err)
		}
	}
}

// TestForgottenScript has Redis forget the script but no slot, which is no reason
// to give no leave for a second.
func TestForgottenScript(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := redistest.Connect(t, s)
	l, err := quota.New(client, "test", 100, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		began := time.Now()
		if err := l.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); (took > 800*time.Millisecond) != (i == 0) {
			t.Errorf("wait %d took %s", i, took)
		}
		if err := client.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
	}
}
