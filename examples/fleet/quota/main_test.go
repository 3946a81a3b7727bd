package quota_test

import (
	"flag"
	"os"
	"testing"
)

// The tests wait for Redis most of the time, so that more of them than there are
// processors can run at once.
func TestMain(m *testing.M) {
	flag.Parse()
	flag.Set("test.parallel", "16")
	os.Exit(m.Run())
}
