// Package refundstest fakes the refund ingestion for tests of code that uses
// package refunds: in process, deterministic, over real HTTP in memory.
//
//	func TestRefundJob(t *testing.T) {
//		fake := refundstest.NewServer(t)
//		fake.Script(refundstest.Fault{DropAfter: true}) // recorded, but never answered
//		job := NewJob(fake.Client())
//		…
//		if n := len(fake.Recorded()); n != 1 { t.Errorf("recorded %d times", n) }
//	}
//
// The faults that matter most are Refuse, after which a refund is certainly not
// sent, and DropAfter, DropBefore and Status 503 with or without Process, after
// which its outcome is unknown to the client, while [Server.Recorded] knows it.
//
// # Documented by the service
//
// Method, path and content type of the request, and the fields of the record.
//
// # The fake's own choice
//
// The service's documentation leaves these open, and the real one may differ:
//
//   - Status 200 and the body {} for any JSON object; 400 for anything else, 404
//     and 405 elsewhere, 415 for another content type; the body of errors.
//   - No credential is asked for, and no member is required.
//   - A refund_id that was seen before is recorded again: whether the service
//     removes duplicates is not documented.
package refundstest
