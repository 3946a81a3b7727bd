// Package binstest fakes POST /bins/multiple for tests of code that uses package bins. The
// fake runs in process, is deterministic, and speaks real HTTP in memory.
//
//	func TestCheckout(t *testing.T) {
//		fake := binstest.NewServer(t)
//		fake.Script(binstest.Fault{Status: 429, RetryAfter: time.Second}) // for the first request
//		shop := NewShop(fake.Client())                                     // your code
//		if brand, err := shop.Brand(t.Context(), "45717360"); brand != "VISA" || err != nil {
//			t.Error(brand, err)
//		}
//		if cards := fake.Cards(); !slices.Equal(cards, []string{"45717360", "45717360"}) {
//			t.Errorf("looked up %q, want the card and a retry", cards)
//		}
//	}
//
// # Documented by the service
//
// Method, path, bearer credential and content type of the request, the fields of the
// request and of the response, and 1 to 50 elements in cards.
//
// # The fake's own choice
//
// These are not documented, so the real service may differ. With
// [Server.SetResult] and [Fault] a test makes the fake behave like yours.
//
//   - Status 200 for success; 400 for a body that is not the documented request,
//     401 without a credential or with a token given to [Server.RevokeToken], 404
//     and 405 elsewhere, 415 for another content type; the body of errors.
//   - The known BINs 411111, 424242, 555555, 510510, 378282, 601111, 305693,
//     353011, 620000, 45717360, 52231903, 42424201 and 42424202, with invented
//     data; 45717360 has every documented field. An identifier matches the longest
//     known BIN that it begins with, and its item echoes that BIN.
//   - An unknown identifier gets an item with null data, the error "unknown bin", and at
//     most eight characters of the identifier as its bin.
//   - Items are in the order of the request, with one item for each repeated identifier.
//   - No request id: [Fault] can add one with Header.
//   - "enhanced": true sets alm and multi_account_access_indicator where they are null
//     otherwise.
package binstest
