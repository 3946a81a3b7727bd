// Package binstest fakes the BIN lookup for tests of code that uses package
// bins: in process, deterministic, over real HTTP in memory.
//
//	func TestCheckout(t *testing.T) {
//		fake := binstest.NewServer(t)
//		fake.Script(binstest.Fault{Status: 429, RetryAfter: time.Second})
//		shop := NewShop(fake.Client())
//		…
//		if fake.Pending() != 0 { t.Error("no attempt after the 429") }
//	}
//
// # Documented by the service
//
// Method, path, bearer credential and content type of the request; 1 to 50
// elements in cards; the fields of the request and of the answer.
//
// # The fake's own choice
//
// The service's documentation leaves these open, and the real one may differ:
//
//   - Status 200 for success; 400 for a body that is not the documented request,
//     401 without a credential, 404 and 405 elsewhere, 415 for another content
//     type; the body of errors.
//   - The known BINs 411111, 424242, 555555, 510510, 378282, 601111, 305693,
//     353011, 620000, 45717360, 52231903, 42424201 and 42424202, with invented
//     data; 45717360 has every documented field. An identifier matches the longest
//     known BIN that it begins with, and its item echoes that BIN.
//   - An unknown identifier gets an item with null data and the error "unknown
//     bin", which echoes at most eight characters.
//   - Items come in the order of the request, repeated ones repeatedly.
//   - "enhanced": true fills two fields that are null otherwise.
package binstest
