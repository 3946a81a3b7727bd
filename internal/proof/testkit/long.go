package testkit

import (
	"os"
	"testing"
)

// Long skips a test that takes long, or needs what a machine may not have, unless CI_ALL is set, as .ci/run does.
func Long(t *testing.T) {
	t.Helper()
	if os.Getenv("CI_ALL") == "" {
		t.Skip("takes long: set CI_ALL=1")
	}
}
