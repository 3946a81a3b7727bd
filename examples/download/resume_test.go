package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/carddata/carddata-go/examples/internal/program"
	"github.com/carddata/carddata-go/examples/internal/target"
	"github.com/carddata/carddata-go/internal/sandbox"
)

// A gate is a content of which no more than a part can be had until it opens.
// That is far more than what a connection holds, so that most of it has arrived
// when reached is closed.
type gate struct {
	*io.SectionReader
	reached, open chan struct{}
	once          sync.Once
}

const (
	gateSize = 64 << 20
	gateAt   = 32 << 20
)

func newGate() *gate {
	return &gate{
		SectionReader: sandbox.Synthetic(sandbox.CSV, gateSize),
		reached:       make(chan struct{}), open: make(chan struct{}),
	}
}

func (g *gate) ReadAt(p []byte, offset int64) (int, error) {
	if offset >= gateAt {
		g.once.Do(func() { close(g.reached) })
		<-g.open
	}
	return g.SectionReader.ReadAt(p, offset)
}

// TestKilledAndResumed ends a download in the middle, and runs the same command
// again.
func TestKilledAndResumed(t *testing.T) {
	for name, signal := range map[string]os.Signal{"interrupted": os.Interrupt, "killed": os.Kill} {
		t.Run(name, func(t *testing.T) {
			if runtime.GOOS == "windows" && signal == os.Interrupt {
				t.Skip("a process cannot be sent Ctrl-C on windows")
			}
			t.Parallel()
			engine, vars := serve(t)
			content := newGate()
			engine.SetJob("7", sandbox.Job{Content: content})
			path := filepath.Join(t.TempDir(), "result.csv")
			if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := program.Command(t, vars, binary, "-job", "7", "-o", path)
			wait := program.Start(t, cmd)
			<-content.reached
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			got := wait()
			if signal == os.Interrupt && (got.Code != 130 || !strings.Contains(got.Stderr, "\ninterrupted\nafter ") ||
				!strings.HasSuffix(got.Stderr, " MiB of 64 MiB; "+again+"\n")) {
				t.Errorf("%+v", got)
			}
			if got.Code == 0 || read(t, path) != "old" {
				t.Errorf("exit code %d; the old file was changed", got.Code)
			}
			close(content.open)

			got = program.Run(t, program.Command(t, vars, binary, "-job", "7", "-o", path))
			if got.Code != 0 || !strings.Contains(got.Stderr, " kept from an earlier run, ") {
				t.Errorf("%+v", got)
			}
			checkFile(t, path, sandbox.Synthetic(sandbox.CSV, gateSize))
			requests := engine.Requests(sandbox.Updater)
			from := strings.Trim(requests[len(requests)-1].Header.Get("Range"), "bytes=-")
			if n, err := strconv.Atoi(from); err != nil || n < gateAt/2 || len(requests) != 2 {
				t.Errorf("the second of %d requests begins at %q", len(requests), from)
			}
		})
	}
}

func TestInterruptBeforeAnyAnswer(t *testing.T) {
	path := filepath.Join(t.TempDir(), "result.csv")
	got := program.Interrupt(t, func(url string) *exec.Cmd {
		return program.Command(t, variables(url), binary, "-job", "42", "-o", path)
	})
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if got.Code != 130 || !strings.Contains(got.Stderr, "\ninterrupted\n") || !isMissing(path) || len(left) > 0 {
		t.Errorf("%+v; left behind: %v", got, left)
	}
}

func TestInterruptOfAStream(t *testing.T) {
	got := program.Interrupt(t, func(url string) *exec.Cmd {
		return program.Command(t, variables(url), binary, "-job", "42")
	})
	if got.Code != 130 || !strings.HasSuffix(got.Stderr, "\ninterrupted\n") {
		t.Errorf("%+v", got)
	}
}

// A partial file belongs to an address, and each run has a sandbox of its own.
func TestSandboxKeepsItsAddress(t *testing.T) {
	var addresses []string
	for range 2 {
		service, err := target.Open(io.Discard, program.Variables{}.Lookup, target.Settings{URL: "CARDDATA_UPDATER_URL"})
		if err != nil {
			t.Fatal(err)
		}
		defer service.Close()
		address, _, err := new(config).prepare(service)
		if err != nil {
			t.Fatal(err)
		}
		addresses = append(addresses, address)
	}
	if addresses[0] != addresses[1] {
		t.Errorf("addresses %q", addresses)
	}
}
