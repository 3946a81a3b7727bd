// Package updater downloads the results of account updater jobs, of any size, to
// files or as streams.
//
//	client, err := updater.NewClient("https://updater.example.com", merchantID,
//		updater.StaticToken(accessToken))
//	…
//	file, err := client.DownloadFile(ctx, jobID, "result.csv", updater.FileOptions{})
//
// [Client.DownloadFile] puts the whole result at a path or leaves the path alone, and
// continues where an earlier call was interrupted. [Client.Download] returns the result
// as a stream. Both resume streams that break, and use little memory for any size.
//
// # Service description
//
// The service description is the document in which the service describes itself. You can
// work without it: what it says is repeated here, and what it leaves open is called "not
// documented".
//
// The package covers one endpoint:
//
//	GET {updater_url}/updater/inquiries/jobs/{jobId}/download
//	Authorization: Bearer <ACCESS_TOKEN>
//	x-merchant-id: <MERCHANT_ID>
//
// A failure has the body {"error":{"code":string,"message":string,"details":object}}.
// Not documented are the format of a job id, the content type and the format of a
// result, the values of error.code, the status codes, the states of a job, rate limits,
// and how jobs are created and the access token is obtained. So the package does not
// decode results and passes error codes through unchanged, and your code says what the
// response for a job that is not ready looks like: see [Client.DownloadWhenReady] and
// [FileOptions.Wait].
//
// # Many merchants
//
// A client downloads on behalf of one merchant. [Client.ForMerchant] returns a client
// for another merchant that shares everything else. Pass an empty merchant id to
// NewClient if you only want to call ForMerchant:
//
//	for merchant, jobID := range jobs {
//		of, err := client.ForMerchant(merchant)
//		…
//		// Run again for the same job, this fetches only what has changed. Another job
//		// at that path is fetched whole.
//		file, err := of.DownloadFile(ctx, jobID, path(merchant), updater.FileOptions{IfChanged: true})
//		…
//	}
//
// Do not use a job or merchant id as a file name: it may contain a slash, be "..", or
// be too long. Use its hex SHA-256, or "result-"+url.PathEscape(id) for short ids on
// case-sensitive file systems, as on Linux.
//
// # Errors
//
// Every failed call returns an [*Error]. errors.Is tells its conditions apart, and the
// comment of each says what to do:
//
//   - on your side: [ErrInvalidArgument], [ErrCredential], [ErrLocalLimit]
//   - no response: [ErrNoResponse], [ErrTimeout]
//   - a status: [ErrBadRequest], [ErrUnauthorized], [ErrForbidden], [ErrNotFound],
//     [ErrConflict], [ErrTooLarge], [ErrRateLimited], [ErrServer], [ErrRedirect]
//   - an unusable response: [ErrBadResponse], [ErrResponseTooLarge]
//
// and those of a download:
//
//   - [ErrChanged], [ErrNotResumable], [ErrDigestMismatch]: download it again
//   - [ErrUnverified]: nothing marks the end of the content, see
//     [FileOptions.AcceptUnverified]
//   - [ErrRefused]: [FileOptions.Check] refused the content, [Error.Cause] is its error
//   - [ErrBusy]: another download to the path is under way, wait for it
//   - [ErrNotReady]: the job was not ready in time, ask later
//   - an error of the file system, such as syscall.ENOSPC: mend the disk and call again,
//     which continues if it can
//
// [Error.Condition] names the condition, for metrics, and [Error.Retryable] says whether
// the same call can succeed later.
//
// # Defaults
//
//   - Retries: 3 for each request ([WithMaxRetries])
//   - Resumes: until no progress is made for 5 minutes ([WithResumeTimeout])
//   - Retry wait: random, at most 200 ms·2ⁿ after n retries, or 1 s·2ⁿ after a 429
//     without Retry-After, and never more than 5 s ([WithRetryWait])
//   - Retry-After: every call of the client waits for it, up to 60 s. A call that is asked
//     to wait longer, or beyond its deadline, fails and reports the wait
//   - Retry budget: a client starts with 500 points, the most it can have. A retry costs 5
//     points, 10 after an attempt timeout, none after a 401 with a new token. If it helps,
//     it costs nothing. A call without a retry that ends with a success, a 202 or a 4xx
//     earns 1; time earns nothing. Without enough points nothing is retried, and the error
//     says so
//   - Attempt timeout: 30 s to the header, and for each wait for content
//     ([WithAttemptTimeout])
//   - Call timeout: none. Without a deadline, a first request waits for a token source or
//     a limiter without end
//   - Response: not limited, it is streamed ([WithMaxResponseBytes])
//   - Redirects: at most 5, within the origin ([WithRedirectHosts])
//   - Idle connections: none, each request has its own
//   - Connections: connect 5 s, TLS handshake 5 s, HTTP/1.1, TLS 1.2 and later, the
//     environment's proxy, headers of 64 KiB at most ([WithTransport], [WithTLSConfig],
//     [WithProxy])
//   - Rate limit: none ([WithRateLimit], [WithAdaptiveRate], [WithLimiter])
//   - Logs: none ([WithLogger])
//
// Further options: [WithHeader] and [WithUserAgent] add to each request,
// [WithTokenSource] replaces the credential ([CachedToken] and [TokenFunc] make a
// source of a function), [WithEncodedContent] and [WithHTMLContent] accept what is
// refused otherwise, [WithInsecureHTTP] allows http beyond loopback, and
// [WithHTTPClient] takes a fake.
//
// # Retries
//
// A download only reads, so it can be retried safely. Each request waits a random time
// before a retry:
//
//   - up to 3 times if no connection could be made or it broke, and after 429, 502, 503
//     and 504
//   - up to twice after a timeout, 408, 500, and any other 5xx but 501 and 505
//   - once after 401 with another token, 421, 425, a response that is not HTTP, and if a
//     proxy could not connect
//   - never after any other status, an unknown host name, a failed TLS handshake, such as
//     with an untrusted certificate, a proxy that forbids the connection, an HTML page, or
//     the documented error object with status 200
//
// Redirects are followed within the origin, and to the hosts of [WithRedirectHosts].
// The credential and the merchant id are sent to the origin only.
//
// A stream that breaks or stalls is resumed if the service sent a validator: a request
// with Range and If-Range fetches the rest. Resumes end when [WithResumeTimeout] has
// passed without progress: see [Download.Read].
//
// # Mixed content
//
// Parts of two versions are never joined if the service's validator distinguishes them.
// Each part must repeat the ETag, as RFC 9110 (15.3.7) demands, and agree in length. A
// part need not repeat a Last-Modified: with only a Last-Modified, this relies on the
// service honoring If-Range.
//
// If two contents of one length have the same validator, for instance one made from size
// and time in seconds, their parts can be mixed. Only a digest detects that. A sha-256
// or sha-512 digest (RFC 9530) is checked if the service sends one, in Repr-Digest, or in
// the Content-Digest of a 200 that was not resumed.
package updater
