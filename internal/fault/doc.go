// Package fault knows what a status, an error of the network and a body mean, and which texts are
// safe to print.
//
//   - verdict.go: the list of verdicts is the policy. Each says how often a call retries, what
//     became of a write, which condition errors.Is finds, and which other requests would fail
//     alike. A status has its verdict here.
//   - limiter.go: Retry-After, and by what a limiter signs a 429.
//   - neterror.go: the verdict on an attempt without a response.
//   - page.go, errorbody.go: the verdict on a body: a page of a proxy, an error object.
//   - content.go: the same for the beginning of a download.
//   - failure.go: a [Failure] is the error of a call, with its condition, outcome and scope.
//   - text.go: errors whose text is safe, and what may be printed of a code or an id.
//   - ended.go: the end of a context.
//
// It reads errors and headers, and opens no connection. It does not count retries and does not
// know what was sent: wire proves that.
//
// # What must stay true
//
//   - If the outcome is not known, say unknown. Zero values are the careful ones.
//   - Texts never contain data of the caller or the service. The exceptions are an error code and
//     a request id that look harmless and repeat nothing of the caller. All other data is in
//     closures, because fmt follows every field and pointer.
package fault
