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
// # Which call
//
//   - [Client.Lookup]: up to 50 cards in one request
//   - [Client.LookupAll]: any number of cards, in bounded memory, through outages
//   - [Loader.Load]: one card at a time from many goroutines, as in a checkout
//
// LookupAll and Loader keep results in a [MemoryCache], and in a [Cache] outside the process if
// you give them one. No cache stores anything under a full card number: if you look up card
// numbers, set PrefixLength. With [CacheOptions.StaleFor], known cards are served through an
// outage.
//
// Start from an Example: Client.Lookup, Client.LookupAll, LookupAll (Resume) for a job that goes on
// where it ended, BulkResult for the rows of a file, BulkOptions (PrefixLength), Loader, CacheOptions
// (StaleFor).
//
// # Service description
//
// All that the service documents is repeated here. What it leaves open is called "not
// documented". The package covers one endpoint:
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
// where cards may be null, and the fields of data.card are those of [Card]. Not documented are
// the format of a card identifier, the default and the effect of enhanced, the order and the
// number of the items, when an item has an error, the values of the string fields, the
// contents of networkfees, status codes, error bodies, rate limits, and what happens with
// another number of cards.
//
// # Errors
//
// Every failed call of a client returns an [*Error]. Test for the conditions with errors.Is; the comment
// of each says what to do. [Error.Condition] names it for metrics, and [Error.Retryable]
// says whether the same call can succeed later. An item without a card does not fail the call:
// [Result.Card] returns an [*ItemError].
//
// # Defaults
//
//   - Retries: 3 ([WithMaxRetries], [WithRetryWait])
//   - Attempt timeout: 10 s ([WithAttemptTimeout])
//   - Call timeout: 30 s for Lookup and Load, if the context has no deadline; none for LookupAll
//   - Connections: connect 5 s, TLS handshake 5 s, idle 30 s, HTTP/1.1, TLS 1.2 and later,
//     the environment's proxy, headers of 64 KiB at most, no redirects
//   - Everything else: see the options
//
// # Deadlines and your own code
//
// Every call ends by its deadline. Code of yours that gets a context, such as a token source, a
// limiter or a wrapper, ends with it, as everywhere in Go. A call also waits for a logger, and
// LookupAll for its loop, input and Progress. A panic of your code reaches the goroutine that called
// Lookup or Load, or that runs the loop of LookupAll.
//
// # Retries
//
// A lookup only reads, so it is retried freely, but never beyond the deadline. LookupAll sends cards
// again however often: see there. Lookup and Load retry
//
//   - up to 3 times if no connection could be made or it broke, also in the middle of
//     a response, and after 429, 502, 503 and 504
//   - up to twice after a timeout, 408, 500, any other 5xx but 501 and 505, and a 4xx that IANA does
//     not register, such as 499
//   - once after 401 with another token, 421, 425, a response that is not HTTP or not
//     the documented JSON, and if a proxy could not connect
//   - never after any other status, an unknown host name, a failed TLS handshake, a proxy
//     that forbids the connection, or an HTML page
//
// If the service sends a Retry-After with 429, 502, 503 or 504, every call of the client waits for
// it, about a minute at most. With another status, only a retry of the same call does. A call fails
// and reports the wait if it got one of more than 60 s. It also fails if it would have to wait for
// another one's beyond its deadline, and reports what is left of the minute.
//
// All calls of a client share a retry budget, so that retries do not multiply the load of an
// outage. It is a hundred retries at first. A retry that succeeds is free, and five calls that
// need none earn one. An error says if the budget is spent.
package bins
