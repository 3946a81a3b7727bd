// Package updater downloads the results of account updater jobs, of any size, to files or
// as streams.
//
//	client, err := updater.NewClient("https://updater.example.com", merchantID,
//		updater.StaticToken(accessToken))
//	…
//	file, err := client.DownloadFile(ctx, jobID, "result.csv", updater.FileOptions{})
//
// [Client.DownloadFile] puts the whole result at a path or leaves the path alone, and
// continues where an earlier call was interrupted. [Client.Download] returns a stream. Both
// resume broken connections, and need little memory for any size.
//
// Start from an Example: Client.DownloadFile, FileOptions (IfChanged) for a job that runs again,
// FileOptions (Check), WithNotReady, Client.ForMerchant.
//
// The package covers one endpoint of the service:
//
//	GET {updater_url}/updater/inquiries/jobs/{jobId}/download
//	Authorization: Bearer <ACCESS_TOKEN>
//	x-merchant-id: <MERCHANT_ID>
//
// A failure has the body {"error":{"code":string,"message":string,"details":object}}. The
// service does not document how jobs are created, their states and ids, the content type and
// format of a result, the values of error.code, status codes, rate limits, or how to get an
// access token. So results are not decoded, error codes are passed through, and
// [WithNotReady] says how the service responds for a job that is not ready.
//
// # Many merchants
//
// [Client.ForMerchant] returns a client for another merchant that shares everything else:
//
//	for _, job := range jobs {
//		of, err := client.ForMerchant(job.merchant)
//		…
//		// A second run for the same job fetches only what has changed.
//		file, err := of.DownloadFile(ctx, job.id, path(job), updater.FileOptions{IfChanged: true})
//		…
//	}
//
// A download that begins while the service is down can fail. So run the jobs whose error is
// Retryable again, after a minute or so.
//
// Do not use an id as a file name: it may contain a slash, be "..", or be too long. Use the SHA-256
// of merchant, a zero byte and job, in hexadecimal. Downloads to different paths may run at once,
// such as eight.
//
// # Errors
//
// Every failed call of a client returns an [*Error]. Test for its conditions with errors.Is; the comment
// of each says what to do. [Error.Condition] names the condition for metrics, and
// [Error.Retryable] says whether the same call can succeed later.
//
// # Defaults
//
//   - Retries: 3 for each request ([WithMaxRetries])
//   - Resumes: until no byte has come for 5 minutes (see [Download.Read])
//   - Retry wait: random, at most 200 ms·2ⁿ after n retries, or 1 s·2ⁿ after a 429
//     without Retry-After, and never more than 5 s ([WithRetryWait])
//   - Attempt timeout: 30 s to the header, and for each wait for content
//     ([WithAttemptTimeout])
//   - Call timeout: none. Without a deadline, a token source or a limiter can delay it
//     for ever
//   - Response: no limit
//   - Redirects: at most 5, within the origin ([WithRedirectHosts])
//   - Connections: one for each request, connect 5 s, TLS handshake 5 s, HTTP/1.1, TLS 1.2
//     and later, the environment's proxy, headers of 64 KiB at most
//   - Rate limit, logs: none ([WithRateLimit], [WithLimiter], [WithLogger])
//
// # Deadlines and your own code
//
// Every call ends by its deadline. Code of yours that gets a context, such as a token source, a
// limiter or a wrapper, ends with it, as everywhere in Go. A call also waits for a logger and the
// functions of [FileOptions] and [WithNotReady].
//
// # Retries
//
// A download only reads, so each request is retried as a lookup is. The comment of package
// [github.com/carddata/carddata-go/bins] says how often after which failure, when all calls of a
// client wait for a Retry-After, and what the retry budget is. All merchants of [Client.ForMerchant]
// share that budget. Never retried are an error object with status 200, and a job that is not ready,
// but DownloadFile may ask once more for the whole: see [Client.DownloadFile]. Only the call for a job
// that is not ready waits for its Retry-After, as [WithWait] says.
//
// # Mixed content
//
// Parts of two versions are never joined if the service's validator tells them apart. Each part
// must repeat the ETag or the Last-Modified that it was asked by, and agree in length. Otherwise
// the content is fetched again from its start, unless a sha-256 digest of the first response
// (Repr-Digest, RFC 9530) proves the whole.
//
// If the service gives two versions the same validator, only that digest finds a mixture.
package updater
