// Package probe asks a service what its contract leaves open, with as few and as
// harmless requests as the questions allow.
//
// A run goes through four steps, each in a file of its own:
//
//	plan.go     every request, before anything is sent
//	ledger.go   the file that keeps what was sent and seen: nothing is sent twice
//	run.go      sends the plan, at its pace, and stops when the service objects
//	observe.go  reduces each response to facts without values
//
// and then lookups.go, downloads.go, refunds.go and connections.go draw a [Point]
// from the facts for each open question. What the facts do not decide is "not
// answerable". The program in examples/probe says it to people, and to the fakes of
// this module.
package probe
