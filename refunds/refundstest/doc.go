// Package refundstest fakes POST /v1/{account_id}/refunds for tests of code that uses
// package refunds. The fake runs in process, is deterministic, and speaks real HTTP in
// memory.
//
//	func TestRefundJob(t *testing.T) {
//		fake := refundstest.NewServer(t)
//		fake.Script(refundstest.Fault{Drop: true, Process: true}) // recorded, but without a response
//		job := NewJob(fake.Client())                              // your code
//		if err := job.Refund(t.Context(), "rf_1001"); !errors.Is(err, refunds.ErrOutcomeUnknown) {
//			t.Error(err)
//		}
//		if n := len(fake.Recorded()); n != 1 {
//			t.Errorf("recorded %d times", n)
//		}
//	}
//
// The faults that matter most are these, and [Server.Recorded] says what happened:
//
//	Refuse                         the refund is not sent
//	Status 400, 422                rejected
//	Status 429                     rejected, but sent again after a second
//	Drop, or Status 503            unknown to the client, not recorded
//	the same and Process           unknown to the client, recorded
//
// Many frameworks accept with an empty body or a text under the label of a page, which a client
// has to take for an acceptance:
//
//	html := http.Header{"Content-Type": {"text/html"}}
//	fake.Script(refundstest.Fault{Status: 201, Body: new(""), Header: html})
//	fake.Script(refundstest.Fault{Status: 200, Body: new("OK"), Header: html})
//
// # Documented by the service
//
// Method, path and content type of the request, and the fields of the record.
//
// # The fake's own choice
//
// These are not documented, so the real service may differ. With
// [Server.SetResponse] and [Fault] a test makes the fake behave like yours.
//
//   - Status 200 and the body {} for a record; 400 for a documented field of the wrong
//     type, 404 and 405 elsewhere, 415 for another content type; the body of errors.
//   - No credential and no field is required; a token given to [Server.RevokeToken]
//     gets 401.
//   - No request id, so [refunds.Receipt] has none: [Fault] can add one with Header.
//   - A refund_id that was seen before is recorded again: whether the service
//     removes duplicates is not documented.
package refundstest
