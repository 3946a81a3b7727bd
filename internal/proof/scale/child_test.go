package scale

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/internal/proof/testkit"
)

const racing = testkit.Racing

// peakMiB is this process's own.
func peakMiB() int { return testkit.PeakMemory() >> 20 }

var full = flag.Bool("full", false, "run at full size")

// childVariable holds the job of a process that a test has started.
const childVariable = "CARDDATA_PROOF_JOB"

// A job runs in a process of its own, so that its memory can be told, and
// returns its report.
type job interface{ run() any }

func TestMain(m *testing.M) {
	name, encoded, ok := strings.Cut(os.Getenv(childVariable), " ")
	if !ok {
		flag.Parse()
		os.Exit(m.Run())
	}
	var report any
	for _, j := range []job{&bulkJob{}, &fileJob{}, &refundJob{}} {
		if name != fmt.Sprintf("%T", j) {
			continue
		}
		if err := json.Unmarshal([]byte(encoded), j); err != nil {
			panic(err)
		}
		report = j.run()
	}
	if err := json.NewEncoder(os.Stdout).Encode(report); err != nil {
		panic(err)
	}
}

// inChild runs a job in a process of its own, and decodes its report.
func inChild(t *testing.T, j job, report any) {
	t.Helper()
	encoded, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	// Where the collector has to share its cores, it lets the heap grow beyond what is
	// needed. Under a limit the peak tells what the job holds, and not how busy the machine is.
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%T %s", childVariable, j, encoded), "GOMEMLIMIT=32MiB")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, report); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
}
