// Package updater downloads the results of account updater jobs (interface,
// endpoint 3), of any size, to files or as streams.
//
//	client, err := updater.NewClient("https://updater.example.com", merchantID, updater.StaticToken(accessToken))
//	…
//	file, err := client.DownloadFile(ctx, jobID, "result.csv", updater.FileOptions{})
//
// [Client.DownloadFile] puts a result at a path, whole or not at all, and continues
// where an earlier call was interrupted. [Client.Download] is the stream beneath it,
// for what needs no file. Both hold little memory whatever the size, and resume
// streams that break.
//
// Creating jobs and asking for their state are not part of the documented
// interface, nor is the content of a result: the library decodes none.
// [Client.DownloadWhenReady] waits for a job by what you know of its answers.
//
// # Many merchants
//
// NewClient takes any of them, and [Client.ForMerchant] makes a client for another
// that shares everything else. Neither a merchant id nor a job id is safe as the
// name of a file: both may hold a slash, be ".." or too long. The SHA-256 of the id in
// hexadecimal is, everywhere; "result-"+url.PathEscape(id) is for short ids, where
// capitals count and a colon is an ordinary character, as on Linux.
//
// # Errors
//
// Every failure is an [*Error]; errors.Is tells conditions apart, such as
// [ErrNotFound]. The values of its Code are not documented.
//
// # Retries
//
// A request is repeated up to 3 times, after a random wait, when no connection
// could be made or it broke, and after 429, 502, 503 and 504; up to twice after a
// timeout, 408, 500 and any other 5xx but 501 and 505; once after 401 with another
// token, 421, 425, and an answer that is not HTTP. Redirects are followed within
// the origin only; the credential and the merchant id never travel anywhere else.
//
// A stream that breaks or stalls is resumed by such a request for the rest, with
// Range and If-Range, if the service gave a validator to ask by: see
// [Download.Read].
package updater
