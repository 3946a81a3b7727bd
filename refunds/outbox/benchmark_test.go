//go:build unix

package outbox

import (
	"fmt"
	"iter"
	"path/filepath"
	"testing"

	"github.com/carddata/carddata-go/refunds"
)

// durable is a new database whose commits wait for the disk.
func durable(b *testing.B, name string) *system {
	if name == "sqlite" {
		return newSystemOn(b, filepath.Join(b.TempDir(), "outbox.db"))
	}
	s := newSystemOn(b, newDatabase(b))
	s.set(`ALTER SYSTEM SET fsync = on`)
	s.set(`SELECT pg_reload_conf()`)
	return s
}

func numbered(n int) iter.Seq[Item] {
	return func(yield func(Item) bool) {
		for i := range n {
			if !yield(Item{AccountID: "acct", Refund: refund(fmt.Sprint(i), 5)}) {
				return
			}
		}
	}
}

// BenchmarkSubmit: one refund after the other, at a service on this machine that responds at once. With an outbox
// each has three commits.
func BenchmarkSubmit(b *testing.B) {
	b.Run("alone", func(b *testing.B) {
		s := newSystemOn(b, filepath.Join(b.TempDir(), "outbox.db"))
		i := 0
		for b.Loop() {
			if _, err := s.w.Client.Submit(b.Context(), "acct", refund(fmt.Sprint(i), 5)); err != nil {
				b.Fatal(err)
			}
			i++
		}
	})
	for _, database := range []string{"sqlite", "postgres"} {
		b.Run(database, func(b *testing.B) {
			s, i := durable(b, database), 0
			for b.Loop() {
				e, err := s.box.Submit(b.Context(), s.w.Client, Item{AccountID: "acct", Refund: refund(fmt.Sprint(i), 5)})
				if err != nil || e.State != Accepted {
					b.Fatal(e.State, err)
				}
				i++
			}
		})
	}
}

// BenchmarkFile: the refunds of a file are booked by EnqueueAll and sent by Run, or sent by SubmitAll, with as many
// in flight.
func BenchmarkFile(b *testing.B) {
	const n, inFlight = 2_000, 16
	perSecond := func(b *testing.B) { b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "refunds/s") }
	for _, database := range []string{"sqlite", "postgres"} {
		b.Run("EnqueueAll/"+database, func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				s := durable(b, database)
				b.StartTimer()
				s.enqueueAll(numbered(n))
			}
			perSecond(b)
		})
		b.Run("Run/"+database, func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				s := durable(b, database)
				s.enqueueAll(numbered(n))
				b.StartTimer()
				if err := s.box.Run(b.Context(), Config{Client: s.w.Client, Concurrency: inFlight, Drain: true}); err != nil {
					b.Fatal(err)
				}
			}
			perSecond(b)
		})
	}
	b.Run("SubmitAll", func(b *testing.B) {
		s := newSystemOn(b, filepath.Join(b.TempDir(), "outbox.db"))
		for range b.N {
			items := func(yield func(refunds.Item) bool) {
				for i := range numbered(n) {
					if !yield(refunds.Item{AccountID: i.AccountID, Refund: i.Refund}) {
						return
					}
				}
			}
			for _, err := range s.w.Client.SubmitAll(b.Context(), items, refunds.BulkOptions{Concurrency: inFlight}) {
				if err != nil {
					b.Fatal(err)
				}
			}
		}
		perSecond(b)
	})
}
