// Package bins looks up card metadata: brand, type, funding source, issuer, country,
// product, authentication requirement, interchange caps and feature flags.
//
//	client, err := bins.NewClient("https://bin.example.com", bins.StaticToken(apiKey))
//	…
//	resp, err := client.Lookup(ctx, &bins.LookupRequest{
//		Cards: bins.Cards("45717360", "411111"),
//	})
//	…
//	for _, result := range resp.Cards {
//		card, err := result.Card()
//		if err != nil {
//			continue // this card is unknown; the others may be known
//		}
//		fmt.Println(bins.NewIdentifier(result.BIN), card.CardBrand, card.Prepaid.Or(false))
//	}
//
// # Service description
//
// The service description is the document in which the service describes itself. You can
// work without it: what it says is repeated here, and what it leaves open is called "not
// documented".
//
// The package covers one endpoint:
//
//	POST {bin_url}/bins/multiple
//	Authorization: Bearer <API_KEY>
//	Content-Type: application/json
//
//	{"cards":[{"card":"45717360"}],"enhanced":true}
//
// A request carries 1 to 50 cards; enhanced may be left out. The response is
//
//	{"cards":[{"bin":string,"data":{"card":object},"error":string}]}
//
// where cards may be null, and the fields of data.card are those of [Card]. Not
// documented are the format of a card identifier, the default and the effect of
// enhanced, the order and the number of the items, when an item has an error, the values
// of the string fields, the contents of networkfees, status codes, error bodies, rate
// limits, and what the service does with fewer than 1 or more than 50 cards.
//
// # Card identifiers
//
// A card identifier is a BIN, a card number or a token. Its format is not documented,
// so any valid UTF-8 is sent unchanged. An [Identifier] masks itself when printed.
//
// # Null is not false
//
// The service may send null for any field, or leave it out. A string is then "", a
// nested object is empty, and a boolean or an integer is an [Optional] without a value:
// your code decides what "not stated" means.
//
// # Any number of cards
//
// [Client.LookupAll] takes a sequence of cards of any length and yields one result for
// each, in order and in bounded memory. It sends 50 cards in a request, with several
// requests in flight, and pauses while the service fails:
//
//	for r, err := range client.LookupAll(ctx, cards, bins.BulkOptions{}) {
//		if r.Index < 0 {
//			return err // the lookup has ended early
//		}
//		if err != nil {
//			continue // no result for r.Input; the other cards may have theirs
//		}
//		card, err := r.Result.Card()
//		…
//	}
//
// [Loader] is for request paths. It batches single lookups from many goroutines: calls
// made within a short window share one request:
//
//	loader, err := bins.NewLoader(client, bins.LoaderOptions{}) // one for the process
//	…
//	result, err := loader.Load(ctx, "45717360") // wherever a card is needed
//
// Both keep results in a [MemoryCache]: one of their own, or one that you share between
// them. A [Cache] keeps results outside the process as well. Neither cache stores
// anything under a full card number: to reuse results of card numbers, set PrefixLength
// or Ranges. With Ranges, one cached result serves every card in its BIN range. That
// assumes that all cards of a range have the same result, which is not documented.
//
// # Errors
//
// Every failed call returns an [*Error]. errors.Is tells these conditions apart, and the
// comment of each says what to do:
//
//   - on your side: [ErrInvalidArgument], [ErrCredential], [ErrLocalLimit]
//   - no response: [ErrNoResponse], [ErrTimeout]
//   - a status: [ErrBadRequest], [ErrUnauthorized], [ErrForbidden], [ErrNotFound],
//     [ErrConflict], [ErrTooLarge], [ErrRateLimited], [ErrServer], [ErrRedirect]
//   - an unusable response: [ErrBadResponse], [ErrResponseTooLarge]
//   - one card of many: [ErrMissing], [ErrSuspended]
//
// [Error.Condition] names the condition, for metrics, and [Error.Retryable] says whether
// the same call can succeed later.
//
// An item without a card does not fail the call: [Result.Card] returns an [*ItemError]
// for it. The text of an ItemError does not quote the service, so it can be logged. The
// service's words are in [Result.Error].
//
// # Defaults
//
//   - Retries: 3 ([WithMaxRetries])
//   - Retry wait: random, at most 200 ms·2ⁿ after n retries, or 1 s·2ⁿ after a 429
//     without Retry-After, and never more than 5 s ([WithRetryWait])
//   - Retry-After: every call of the client waits for it, up to 60 s. A call that is asked
//     to wait longer, or beyond its deadline, fails and reports the wait
//   - Retry budget: a client starts with 500 points, the most it can have. A retry costs 5
//     points, 10 after an attempt timeout, none after a 401 with a new token. If it helps,
//     it costs nothing. A call without a retry that ends with a success, a 202 or a 4xx
//     earns 1; time earns nothing. Without enough points nothing is retried, and the error
//     says so
//   - Attempt timeout: 10 s ([WithAttemptTimeout])
//   - Call timeout: 30 s, if the context has no deadline
//   - Response: at most 8 MiB ([WithMaxResponseBytes])
//   - Redirects: none are followed
//   - Idle connections: kept for 30 s
//   - Connections: connect 5 s, TLS handshake 5 s, HTTP/1.1, TLS 1.2 and later, the
//     environment's proxy, headers of 64 KiB at most ([WithTransport], [WithTLSConfig],
//     [WithProxy])
//   - Rate limit: none ([WithRateLimit], [WithAdaptiveRate], [WithLimiter])
//   - Logs: none ([WithLogger])
//
// Further options: [WithHeader] and [WithUserAgent] add to each request,
// [WithTokenSource] replaces the credential ([CachedToken] and [TokenFunc] make a
// source of a function), [WithInsecureHTTP] allows http beyond loopback, and
// [WithHTTPClient] takes a fake.
//
// # Retries
//
// A lookup only reads, so it can be retried safely. Retries wait a random time and
// never outlast the deadline:
//
//   - up to 3 times if no connection could be made or it broke, also in the middle of
//     a response, and after 429, 502, 503 and 504
//   - up to twice after a timeout, 408, 500, and any other 5xx but 501 and 505
//   - once after 401 with another token, 421, 425, a response that is not HTTP or not
//     the documented JSON, and if a proxy could not connect
//   - never after any other status, an unknown host name, a failed TLS handshake, such as
//     with an untrusted certificate, a proxy that forbids the connection, an HTML page, or
//     an error object with status 200
//
// All calls of a client share one retry budget, so retries do not multiply the load
// during an outage.
package bins
