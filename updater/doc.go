// Package updater downloads the results of account updater jobs, of any size, to files or as
// streams:
//
//	package main
//
//	import (
//		"context"
//		"fmt"
//		"log"
//		"os"
//		"time"
//
//		"github.com/carddata/carddata-go/updater"
//	)
//
//	func main() {
//		client, err := updater.NewClient("https://updater.example.com", "merchant-7",
//			updater.StaticToken(os.Getenv("CARDDATA_ACCESS_TOKEN")))
//		if err != nil {
//			log.Fatal(err)
//		}
//		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
//		defer cancel()
//		file, err := client.DownloadFile(ctx, "job-42", "result.csv", updater.FileOptions{})
//		if err != nil {
//			log.Fatal(err) // result.csv is as it was; the next call continues
//		}
//		fmt.Println(file.Size, "bytes, SHA-256", file.SHA256)
//	}
//
// # Decisions
//
//   - File or stream: [Client.DownloadFile] puts the whole result at a path, or leaves the path alone. It
//     continues after a broken connection and after a killed process. [Client.Download] returns a stream.
//     Both need little memory for any size.
//   - A job that is not ready: a 202 and a 204 are [ErrNotReady]. [WithNotReady] names other responses.
//     [WithWait] waits.
//   - A result that you have already: [FileOptions.IfChanged] fetches it only if it has changed.
//   - Many merchants: [Client.ForMerchant] makes a client for each. Downloads to different paths can run at
//     once; eight are a good number, but fewer of one merchant: while the service asks it to wait, its
//     downloads wait. After a minute, run those again, a few times, whose error is Retryable, or matches
//     [ErrBadResponse], such as the page of a proxy.
//   - File names: an id may contain a slash, be "..", or be too long. Use the SHA-256 of merchant, a zero
//     byte and job, in hexadecimal.
//   - Time: only the deadline of the context bounds a call.
//
// # Interface
//
//	GET {updater_url}/updater/inquiries/jobs/{jobId}/download
//	Authorization: Bearer <ACCESS_TOKEN>
//	x-merchant-id: <MERCHANT_ID>
//
// A failure has the body {"error":{"code":string,"message":string,"details":object}}. Not documented: how jobs
// are created, their states and ids, the format of a result, the values of error.code, status codes, rate
// limits, and how to get an access token.
//
// # Mixed content
//
// Each part must repeat the ETag or the Last-Modified that it was asked by, and agree in length. Otherwise the
// content is fetched again from its start. So parts of two versions are joined only if the service gives both
// the same validator. If the service sends a digest, such as Repr-Digest, compare it in [FileOptions.Check].
//
// # Further
//
// Package [github.com/carddata/carddata-go] has what the three packages share: errors, retries, Retry-After,
// deadlines and defaults. Here, a job that is not ready and an error object with status 200 are not retried.
// All merchants of ForMerchant share the retry budget.
//
// Start from an Example: Client.DownloadFile, FileOptions (IfChanged), FileOptions (Check), WithNotReady,
// Client.ForMerchant.
package updater
