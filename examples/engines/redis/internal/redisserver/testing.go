package redisserver

import (
	"errors"
	"os"
	"testing"
)

// ForTest starts a server that ends with the test. Without redis-server the test is
// skipped, or fails with CI_REQUIRE_SERVERS=1.
func ForTest(t *testing.T) *Server {
	t.Helper()
	s, err := Start(t.Context())
	if errors.Is(err, ErrNotInstalled) && os.Getenv("CI_REQUIRE_SERVERS") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}
