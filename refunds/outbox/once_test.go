//go:build unix

package outbox

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/refunds"
)

var submissions = flag.Int("submissions", 1000, "of TestOnce, three for each refund")

// submitter names the database, the service and the number of refunds in the environment of a process
// with ten callers, and a worker beside them, which ends with SIGTERM.
const submitter = "OUTBOX_SUBMITTER"

func submitUntilTerminated() {
	words := strings.Fields(os.Getenv(submitter))
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	client, err := refunds.NewClient(words[1])
	if err == nil {
		var box *Outbox
		if box, _, err = openDatabase(words[0]); err == nil {
			n, _ := strconv.Atoi(words[2])
			err = submitAndWork(ctx, box, client, n)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "the submitter failed:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func submitAndWork(ctx context.Context, box *Outbox, client *refunds.Client, n int) error {
	worked := make(chan error, 1)
	go func() { worked <- box.Run(ctx, Config{Client: client, Concurrency: 2}) }()
	order := rand.Perm(n)
	var next atomic.Int64
	var callers sync.WaitGroup
	for range 10 {
		callers.Go(func() {
			for ctx.Err() == nil {
				id := fmt.Sprint("rf_", order[int(next.Add(1))%n])
				switch e := submitOnce(box, client, id); e.State {
				case Accepted, Rejected, Unknown:
					os.Stdout.WriteString(fmt.Sprintln(id, e.Row, e.State))
				}
			}
		})
	}
	callers.Wait()
	if err := <-worked; !errors.Is(err, context.Canceled) && err != nil { // canceled before it began
		return err
	}
	return box.Close(context.Background())
}

// submitOnce calls Submit as somebody does who may not know when the refund was made, and may leave
// early.
func submitOnce(box *Outbox, client *refunds.Client, id string) Entry {
	r := refund(id, 5)
	if rand.IntN(2) == 0 {
		r = repeated(id, 5)
	}
	patience := 3 * time.Second
	if rand.IntN(4) == 0 {
		patience = rand.N(30 * time.Millisecond)
	}
	ctx, leave := context.WithTimeout(context.Background(), patience)
	defer leave()
	e, err := box.Submit(ctx, client, Item{AccountID: "acct", Refund: r})
	if err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return e
}

// Ends are what the callers were told.
type ends struct {
	mu   sync.Mutex
	of   map[string][]string // row and state, by the ids
	told int
}

// heard tells whether so many ends were told in all, and of each refund.
func (e *ends) heard(all, each, refunds int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range refunds {
		if len(e.of[fmt.Sprint("rf_", i)]) < each {
			return false
		}
	}
	return e.told >= all
}

// start starts a process of callers. wait waits until it is dead.
func (s *system) start(database string, refunds int, ends *ends) (p *os.Process, wait func() error) {
	s.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprint(submitter, "=", database, " ", s.fake.URL(), " ", refunds))
	cmd.Stderr = s.t.Output()
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	read := make(chan bool)
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			id, end, _ := strings.Cut(lines.Text(), " ")
			ends.mu.Lock()
			ends.of[id] = append(ends.of[id], end)
			ends.told++
			ends.mu.Unlock()
		}
	}()
	s.t.Cleanup(func() { cmd.Process.Kill() })
	return cmd.Process, func() error {
		<-read
		return cmd.Wait()
	}
}

// TestOnce: callers in two processes submit each refund again and again, half of them with another
// Created, and leave early; workers are beside them; one of the processes is killed six times. Each
// refund is recorded at most once, none is lost, and all callers of a refund get the same.
func TestOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: run without -short")
	}
	eachDatabase(t, func(t *testing.T, database string) {
		s := newSystemOn(t, database)
		s.fake.ScriptFunc(func(sandbox.Request) sandbox.Fault {
			switch rand.IntN(30) {
			case 0:
				return sandbox.Fault{Drop: true, Process: true}
			case 1:
				return sandbox.Fault{Status: 422}
			case 2:
				return sandbox.Fault{Status: 429, RetryAfter: time.Second}
			case 3:
				return sandbox.Fault{Status: 401}
			case 4:
				return sandbox.Fault{Status: 500, Process: true}
			}
			return sandbox.Fault{Delay: rand.N(20 * time.Millisecond)}
		})
		const kills = 6
		n := max(1, *submissions/3)
		ends := &ends{of: make(map[string][]string)}
		for round := range kills + 1 {
			victim, buried := s.start(database, n, ends)
			other, ended := s.start(database, n, ends)
			each := 0
			if round == kills {
				each = 3
			}
			for !ends.heard(3*n*(round+1)/(kills+1), each, n) {
				time.Sleep(time.Millisecond)
			}
			if round < kills {
				time.Sleep(rand.N(100 * time.Millisecond))
				victim.Kill()
			} else {
				victim.Signal(syscall.SIGTERM)
			}
			other.Signal(syscall.SIGTERM)
			buried()
			if err := ended(); err != nil {
				t.Fatal(err)
			}
			s.afterDeath()
		}
		s.fake.ScriptFunc(nil)
		s.w.Log = slog.New(slog.DiscardHandler)
		s.drain()
		s.audit(n)
		for id, told := range ends.of {
			found, err := s.box.Get(t.Context(), "acct", id)
			if err != nil || len(found) != 1 {
				t.Fatal(id, found, err)
			}
			again, err := s.box.Submit(t.Context(), s.w.Client, Item{AccountID: "acct", Refund: repeated(id, 5)})
			if err != nil || again.State != found[0].State || again.Row != found[0].Row {
				t.Errorf("%+v, and another caller is told %+v, %v", found[0], again, err)
			}
			for _, got := range told {
				// What is unknown can still become known.
				if got != fmt.Sprint(again.Row, " ", again.State) && got != fmt.Sprint(again.Row, " ", Unknown) {
					t.Errorf("%+v, and a caller was told %s", again, got)
				}
			}
		}
		t.Logf("%d refunds, %d ends told, %d requests", n, ends.told, s.requests())
	})
}
