// Package redistest runs a real Redis for tests.
package redistest

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/carddata/carddata-go/examples/fleet/internal/redisserver"
	"github.com/carddata/carddata-go/examples/fleet/redisclient"
)

// Start starts a Redis of the test's own. Where none is installed the test is
// skipped, or fails if CI_REQUIRE_SERVERS is 1.
func Start(t testing.TB, settings ...string) *redisserver.Server {
	t.Helper()
	redisclient.Silence()
	s, err := redisserver.Start(t.Context(), settings...)
	if errors.Is(err, redisserver.ErrNotInstalled) && os.Getenv("CI_REQUIRE_SERVERS") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// StartSentinel starts a Sentinel of the test's own, which may write to its
// configuration.
func StartSentinel(t testing.TB, conf, port string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "redis-server", conf, "--sentinel", "--port", port, "--bind", "127.0.0.1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
}

// Connect returns a client of s.
func Connect(t testing.TB, s *redisserver.Server) redis.UniversalClient {
	t.Helper()
	client, err := redisclient.New(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// Unused returns a client of a Redis that does not exist.
func Unused(t testing.TB) redis.UniversalClient {
	t.Helper()
	client, err := redisclient.New("unix:///nonexistent")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}
