package main

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/carddata/carddata-go/examples/internal/program"
	"github.com/carddata/carddata-go/examples/outbox/refundoutbox"
	"github.com/carddata/carddata-go/internal/sandbox"
)

// TestOpenTogether: programs that open a new file at the same time take turns.
func TestOpenTogether(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new.db")
	var waits []func() program.Result
	for range 6 {
		waits = append(waits, program.Start(t, program.Command(t, nil, binary, "migrate", "-db", file)))
	}
	for _, wait := range waits {
		if got := wait(); got.Code != 0 {
			t.Errorf("%+v", got)
		}
	}
}

// TestLockedFile: while another program locks the file, a worker waits, and then goes
// on as if nothing had been.
func TestLockedFile(t *testing.T) {
	s := newSystem(t)
	s.engine.Script(sandbox.Refunds, sandbox.Fault{HeaderDelay: time.Second})
	s.enqueue(one, `{"refund_id":"rf_2"}`)
	_, wait := s.start("-drain", "-concurrency", "1")
	program.WaitFor(t, func() bool { return s.requests() == 1 })
	err := s.db.Transact(t.Context(), func(tx refundoutbox.Tx) error {
		time.Sleep(3 * time.Second) // longer than the response takes
		if n := s.requests(); n != 1 {
			return fmt.Errorf("%d requests", n)
		}
		return nil
	})
	if got := wait(); err != nil || got.Code != 0 || s.states() != "accepted accepted" || s.requests() != 2 || s.decisions() != "" {
		t.Errorf("%v; %s, %d requests, decisions %s: %+v", err, s.states(), s.requests(), s.decisions(), got)
	}
}
