// Package bins looks up what is known of cards: brand, type, funding, issuer,
// country, product, authentication, interchange caps and feature flags, for 1 to
// 50 cards in a request (interface, endpoint 1).
//
//	client, err := bins.NewClient("https://bin.example.com", bins.StaticToken(apiKey))
//	…
//	resp, err := client.Lookup(ctx, &bins.LookupRequest{Cards: bins.Cards("45717360", "411111")})
//	…
//	for _, result := range resp.Cards {
//		card, err := result.Card()
//		if err != nil {
//			continue // this card is unknown; the others may be known
//		}
//		fmt.Println(bins.NewIdentifier(result.BIN), card.CardBrand, card.Country.Alpha2, card.Prepaid.Or(false))
//	}
//
// # Card identifiers
//
// The format of a card identifier is not documented, so that a BIN, a card
// number or a token travels as it is. An [Identifier] masks itself wherever it is
// printed.
//
// # Null is not false
//
// The service may leave any member null or out. Strings then read "", nested
// objects are empty, and booleans and integers are [Optional]: their reader says
// what "not stated" means for them.
//
// # Any number of cards
//
// [Client.LookupAll] takes a sequence of cards of any length and yields one
// result for each, in order and in bounded memory; it sends each card once, 50 in
// a request, several requests at a time. [Loader] is for request paths: lookups
// of many goroutines that come together travel together.
//
// Both remember answers in a [MemoryCache], and in any other [Cache] that they
// are given. Card numbers are never remembered as such. With Ranges they are
// answered by the range that an earlier answer named, which assumes that the
// service gives one answer for a range: it does not document that.
//
// # Errors
//
// Every failed call returns an [*Error]; errors.Is tells conditions apart, such
// as [ErrRateLimited]. An item that the service could not answer is no failed
// call: [Result.Card] returns its [*ItemError].
//
// # Retries
//
// A lookup only reads. It is repeated up to 3 times, after a random wait, when
// no connection could be made or it broke, and after 429, 502, 503 and 504; up
// to twice after a timeout, 408, 500 and any other 5xx but 501 and 505; once after
// 401 with another token, 421, 425, and an answer that is not HTTP or not the
// documented JSON. An answer that was cut off counts as a connection that broke.
// It is not repeated after any other status, a certificate that cannot be
// trusted, an unknown host name, or an HTML page. The wait never outlasts the deadline, and all repetitions of a
// client draw on one budget, so that an outage is not answered with a multiple
// of the load.
package bins
