// Package updatertest fakes GET /updater/inquiries/jobs/{jobId}/download for tests of code
// that uses package updater. The fake runs in process, is deterministic, and speaks real
// HTTP in memory.
//
//	func TestNightlyDownload(t *testing.T) {
//		fake := updatertest.NewServer(t)
//		fake.SetJob("7", updatertest.Job{Content: updatertest.CSV(1 << 20)})
//		fake.Script(updatertest.Fault{Truncate: 1000}) // the connection breaks, and the download resumes
//		path := filepath.Join(t.TempDir(), "result.csv")
//		job := NewJob(fake.Client()) // your code
//		if err := job.Run(t.Context(), "7", path); err != nil {
//			t.Error(err)
//		}
//		if info, err := os.Stat(path); err != nil || info.Size() != 1<<20 {
//			t.Error(info, err)
//		}
//	}
//
// # Documented by the service
//
// Method, path, bearer credential and x-merchant-id of the request; the error
// object.
//
// # The fake's own choice
//
// These are not documented, so the real service may differ. With
// [Server.SetJob] and [Fault] a test makes the fake behave like yours.
//
//   - A job is the same for every merchant, unless [Job] says otherwise; the
//     x-merchant-id of each request is in [Server.Requests].
//   - Job 42 exists, and is a CSV file of invented columns.
//   - Status 200 for a result, with Content-Length and a strong ETag. Range and If-Range
//     are supported, with 206 and 416, and If-None-Match with 304.
//   - Status 401 without a credential or a merchant id, or with a token given to
//     [Server.RevokeToken]; 404 for an unknown job, with the code job_not_found; all
//     values in the error object.
//   - No request id: [Fault] can add one with Header.
//   - No response for a job that is not ready: script yours, as in the example of
//     updater.WithNotReady.
package updatertest
