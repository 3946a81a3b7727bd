// Package updater downloads the results of account updater jobs (interface,
// endpoint 3), as streams of any size.
//
//	client, err := updater.NewClient("https://updater.example.com", merchantID, updater.StaticToken(accessToken))
//	…
//	download, err := client.Download(ctx, jobID)
//	…
//	defer download.Close()
//	_, err = io.Copy(file, download) // in constant memory; an error if the content was cut off
//
// Creating jobs and asking for their state are not part of the documented
// interface, nor is the content of a result: the library decodes none.
//
// # Many merchants
//
// NewClient takes any of them, and [Client.ForMerchant] makes a client for another
// that shares everything else. Neither a merchant id nor a job id is safe as the
// name of a file: both may hold a slash.
//
// # Errors
//
// Every failure is an [*Error]; errors.Is tells conditions apart, such as
// [ErrNotFound]. The values of its Code are not documented.
//
// # Retries
//
// Opening a download is repeated up to 3 times, after a random wait, when no
// connection could be made or it broke, and after 429, 502, 503 and 504; up to
// twice after a timeout, 408, 500 and any other 5xx but 501 and 505; once after
// 401 with another token, 421, 425, and an answer that is not HTTP. Redirects are followed within the origin only; the credential and the
// merchant id never travel anywhere else.
package updater
