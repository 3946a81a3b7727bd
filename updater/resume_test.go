package updater_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/updater"
	"github.com/carddata/carddata-go/updater/updatertest"

	"github.com/jarcoal/httpmock"
)

// sample is content with no two parts alike.
func sample(size int) []byte {
	content, err := io.ReadAll(updatertest.CSV(int64(size)))
	if err != nil {
		panic(err)
	}
	return content
}

// fakeJob is a fake with content as job 7.
func fakeJob(t *testing.T, job updatertest.Job, faults ...updatertest.Fault) *updatertest.Server {
	t.Helper()
	fake := updatertest.NewServer(t)
	fake.SetJob("7", job)
	fake.Script(faults...)
	return fake
}

// ranges are the Range headers that arrived, with the If-Range of each.
func ranges(fake *updatertest.Server) (sent []string) {
	for _, r := range fake.Requests() {
		sent = append(sent, strings.TrimSpace(r.Header.Get("Range")+" "+r.Header.Get("If-Range")))
	}
	return sent
}

func TestResume(t *testing.T) {
	content := sample(100_000)
	tag := `"v1"`
	recent := time.Now().Add(-time.Hour).UTC()
	cut, aMinute := updatertest.Fault{Truncate: 30_000}, updatertest.Fault{Status: 503, RetryAfter: time.Minute}
	type fault = updatertest.Fault
	for _, test := range []struct {
		name   string
		job    updatertest.Job
		faults []updatertest.Fault
		ranges []string
	}{
		{"not broken", updatertest.Job{}, nil, []string{""}},
		{"again and again", updatertest.Job{}, []fault{cut, cut, cut}, []string{"", "bytes=30000- " + tag, "bytes=60000- " + tag, "bytes=90000- " + tag}},
		{"before the first byte", updatertest.Job{}, []fault{{Truncate: -1}}, []string{"", "bytes=0- " + tag}},
		{"four times without a byte, and one byte", updatertest.Job{}, []fault{cut, {Truncate: -1}, {Truncate: -1}, {Truncate: -1}, {Truncate: -1}, {Truncate: 1}, {Truncate: -1}, {Truncate: -1}},
			[]string{"", "bytes=30000- " + tag, "bytes=30000- " + tag, "bytes=30000- " + tag, "bytes=30000- " + tag, "bytes=30000- " + tag, "bytes=30001- " + tag, "bytes=30001- " + tag, "bytes=30001- " + tag}},
		{"stalled", updatertest.Job{}, []fault{{Truncate: 10, Delay: time.Hour}}, []string{"", "bytes=10- " + tag}},
		{"answered with an error", updatertest.Job{}, []fault{cut, {Status: 503}, {Drop: true, Process: true}, {Refuse: true}}, []string{"", "bytes=30000- " + tag, "bytes=30000- " + tag, "bytes=30000- " + tag}},
		{"a call that fails, with waits", updatertest.Job{}, []fault{cut, aMinute, aMinute, aMinute, aMinute}, []string{"", "bytes=30000- " + tag, "bytes=30000- " + tag, "bytes=30000- " + tag, "bytes=30000- " + tag, "bytes=30000- " + tag}},
		{"by date, under a weak tag", updatertest.Job{ETag: new(`W/"v1"`), LastModified: recent}, []fault{cut}, []string{"", "bytes=30000- " + recent.Format(http.TimeFormat)}},
		{"by tag, under a date too", updatertest.Job{LastModified: recent}, []fault{cut}, []string{"", "bytes=30000- " + tag}},
		{"in smaller parts than asked for", updatertest.Job{}, []fault{cut, partOf(content, 30_000, 40_000), partOf(content, 40_000, 40_001)}, []string{"", "bytes=30000- " + tag, "bytes=40000- " + tag, "bytes=40001- " + tag}},
	} {
		bubble(t, test.name, func(t *testing.T) {
			test.job.Content = bytes.NewReader(content)
			if test.job.ETag == nil {
				test.job.ETag = &tag
			}
			fake := fakeJob(t, test.job, test.faults...)
			// The bubble's clock begins in the year 2000, before the date of the content.
			time.Sleep(time.Until(recent.Add(time.Hour)))
			download := open(t, t.Context(), fake.Client())
			got, err := io.ReadAll(download)
			if err != nil || !bytes.Equal(got, content) || !download.Verified {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			sent := ranges(fake)
			if !slices.Equal(sent, test.ranges) {
				t.Errorf("asked for %q, want %q", sent, test.ranges)
			}
			if fake.Pending() > 0 || download.Attempts < len(sent) || download.Resumes > len(sent)-1 || (download.Resumes == 0) != (len(sent) == 1) {
				t.Errorf("%d attempts, %d resumes, %d requests", download.Attempts, download.Resumes, len(sent))
			}
		})
	}
}

// TestNoResume: a stream that is not resumed ends with an error that says why, and whether
// the same call can succeed later.
func TestNoResume(t *testing.T) {
	content := sample(1000)
	cut := updatertest.Fault{Truncate: 300}
	long := func(f updatertest.Fault) []updatertest.Fault { return slices.Repeat([]updatertest.Fault{f}, 1000) }
	type options = []updater.Option
	noRetries := options{updater.WithMaxRetries(0)}
	for _, test := range []struct {
		name      string
		faults    []updatertest.Fault
		opts      options
		deadline  time.Duration
		is        error
		says      string
		requests  int // -1: any number
		condition string
		retryable bool
	}{
		{"no validator", []updatertest.Fault{{Truncate: 300, Header: http.Header{"Etag": nil, "X-Request-Id": {"req-7"}}}}, nil, 0, io.ErrUnexpectedEOF, "nothing to resume it by (status 200 OK, request id req-7, 1 attempt)", 1, "changed", true},
		{"no retries", []updatertest.Fault{cut}, noRetries, 0, io.ErrUnexpectedEOF, "retries are turned off", 1, "bad_response", true},
		{"cut off for ever", long(updatertest.Fault{Truncate: -1}), nil, 0, io.ErrUnexpectedEOF, "no byte for 5m0s", -1, "bad_response", true},
		{"stalled", []updatertest.Fault{{Truncate: 10, Delay: time.Hour}}, noRetries, 0, updater.ErrTimeout, "retries are turned off", 1, "timeout", true},
		{"the deadline", []updatertest.Fault{{Truncate: 500, Delay: time.Hour}}, nil, time.Second, context.DeadlineExceeded, "", 1, "deadline_exceeded", true},
		{"changed", []updatertest.Fault{cut, {Header: http.Header{"Etag": {`"v2"`}}}}, nil, 0, updater.ErrChanged, "content has changed", 2, "changed", true},
		{"an outage", append([]updatertest.Fault{cut}, long(updatertest.Fault{Status: 503})...), nil, 0, updater.ErrServer, "status 503", -1, "server_error", true},
		{"gone", []updatertest.Fault{cut, {Status: 404}}, nil, 0, updater.ErrNotFound, "status 404", 2, "not_found", false},
		{"not ready", []updatertest.Fault{cut, {Status: 202}}, options{updater.WithWait(0, time.Hour)}, 0, updater.ErrNotReady, "not ready", 2, "not_ready", true},
		{"not supported", []updatertest.Fault{cut, {Status: 501}}, nil, 0, updater.ErrServer, "status 501", 2, "server_error", false},
		{"no such version", []updatertest.Fault{cut, {Status: 505}}, nil, 0, updater.ErrServer, "status 505", 2, "server_error", false},
		{"a longer wait than is obeyed", []updatertest.Fault{cut, {Status: 503, RetryAfter: time.Hour}}, nil, 0, updater.ErrServer, "retry after 1h", 2, "server_error", true},
		{"an unknown status", []updatertest.Fault{cut, {Status: 600}}, nil, 0, updater.ErrBadResponse, "unexpected status", 2, "bad_response", false},
		{"another part", []updatertest.Fault{cut, partOf(content, 500, 1000)}, nil, 0, updater.ErrBadResponse, "not the part", 2, "changed", true},
	} {
		bubble(t, test.name, func(t *testing.T) {
			fake := fakeJob(t, updatertest.Job{Content: bytes.NewReader(content)}, test.faults...)
			ctx := t.Context()
			if test.deadline > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, test.deadline)
				defer cancel()
			}
			download := open(t, ctx, fake.Client(test.opts...))
			got, err := io.ReadAll(download)
			failed, ok := err.(*updater.Error)
			if !ok || !errors.Is(err, test.is) || !strings.Contains(err.Error(), test.says) || !bytes.HasPrefix(content, got) || errors.Is(err, io.EOF) {
				t.Fatalf("%d bytes, %v, want %v", len(got), err, test.is)
			}
			if failed.Condition() != test.condition || failed.Retryable() != test.retryable {
				t.Errorf("%v: %s, retryable %v", err, failed.Condition(), failed.Retryable())
			}
			if n := len(fake.Requests()); test.requests >= 0 && n != test.requests || failed.Attempts != n || download.Attempts != n {
				t.Errorf("%d requests, of the error %+v, %d of the download", n, failed, download.Attempts)
			}
			if n, again := download.Read(make([]byte, 1)); n != 0 || again != err {
				t.Errorf("reading on: %d, %v", n, again)
			}
		})
	}
}

// TestResumesForFiveMinutes: a download survives an outage for five minutes and no longer, and a
// service that sends little each time.
func TestResumesForFiveMinutes(t *testing.T) {
	const size = 300_000
	type fault = updatertest.Fault
	always := func(f fault) func(time.Duration, int) fault {
		return func(time.Duration, int) fault { return f }
	}
	cutAnd := func(f func(since time.Duration) fault) func(time.Duration, int) fault {
		return func(since time.Duration, n int) fault {
			if n == 0 {
				return fault{Truncate: 100_000}
			}
			return f(since)
		}
	}
	outage := func(lasting time.Duration, f fault) func(time.Duration, int) fault {
		return cutAnd(func(since time.Duration) fault {
			if since < lasting {
				return f
			}
			return fault{}
		})
	}
	minutes := func(n float64) time.Duration { return time.Duration(n * float64(time.Minute)) }
	var calls, requests atomic.Int64
	refuses := func(context.Context) error { // from the second time on
		if calls.Add(1) > 1 {
			return errors.New("no place")
		}
		return nil
	}
	var began time.Time
	failing := updater.TokenFunc(func(ctx context.Context) (string, error) {
		if since := time.Since(began); since > 0 && since < 4*time.Minute {
			return "", errors.New("no token now")
		}
		return "t", nil
	})
	for _, test := range []struct {
		name     string
		fault    func(since time.Duration, request int) fault
		opts     []updater.Option
		is       error // nil: the content arrives
		from, to time.Duration
	}{
		{"4 minutes of 503", outage(minutes(4), fault{Status: 503}), nil, nil, minutes(4), minutes(4.5)},
		{"4 minutes of silence", outage(minutes(4), fault{Truncate: -1, Delay: time.Hour}), nil, nil, minutes(4), minutes(4.7)},
		{"an hour of 503", outage(time.Hour, fault{Status: 503}), nil, updater.ErrServer, minutes(5), minutes(5.5)},
		{"an hour without a connection, at once again", outage(time.Hour, fault{Refuse: true}), []updater.Option{updater.WithRetryWait(0, 0)}, updater.ErrNoResponse, minutes(5), minutes(5)},
		{"no byte each time", always(fault{Truncate: -1}), nil, updater.ErrBadResponse, minutes(5), minutes(5.5)},
		{"a thousand bytes each time", always(fault{Truncate: 1000}), nil, nil, minutes(6), minutes(20)},
		{"five times no byte, at once again", func(_ time.Duration, n int) fault {
			if n < 5 {
				return fault{Truncate: -1}
			}
			return fault{}
		}, []updater.Option{updater.WithRetryWait(0, 0)}, nil, 0, 0},
		{"64 KiB each time", always(fault{Truncate: 64 << 10}), nil, nil, 0, minutes(1)},
		{"64 KiB in 2 minutes each time", always(fault{Truncate: 64 << 10, Delay: 2 * time.Minute}), []updater.Option{updater.WithAttemptTimeout(minutes(10))}, nil, minutes(8), minutes(8.5)},
		{"a token source that fails for 4 minutes", outage(time.Second, fault{Status: 503}), []updater.Option{updater.WithTokenSource(failing)}, nil, minutes(4), minutes(4.5)},
		{"a limiter that refuses", always(fault{Truncate: 100_000}), []updater.Option{updater.WithLimiter(limiterFunc(refuses))}, updater.ErrLocalLimit, 0, minutes(0.1)},
		{"an attempt that takes longer", func(_ time.Duration, n int) fault {
			if n == 0 {
				return fault{Truncate: 100_000}
			}
			return fault{Delay: 6 * time.Minute}
		}, []updater.Option{updater.WithAttemptTimeout(minutes(10))}, nil, minutes(6), minutes(6.1)},
	} {
		bubble(t, test.name, func(t *testing.T) {
			fake := fakeJob(t, updatertest.Job{Content: updatertest.CSV(size)})
			began = time.Now()
			requests.Store(0)
			calls.Store(0)
			network := scripted(fake, func(*http.Request) fault {
				n := int(requests.Add(1)) - 1
				if n > 5000 { // in fake time, a flood would never end
					return fault{}
				}
				return test.fault(time.Since(began), n)
			})
			path := target(t)
			file, err := fake.Client(append(test.opts, network)...).DownloadFile(t.Context(), "7", path, updater.FileOptions{})
			if !errors.Is(err, test.is) || err == nil && file.Size != size {
				t.Errorf("%v, %v", file, err)
			}
			if took := time.Since(began); took < test.from || took > test.to {
				t.Errorf("took %v, want %v to %v", took, test.from, test.to)
			}
			if failed, ok := err.(*updater.Error); ok && failed.StatusCode == 206 && !strings.Contains(err.Error(), "no byte for") {
				t.Errorf("no reason: %v", err)
			}
			if n, limit := requests.Load(), 5+int64(time.Since(began)/time.Second)*4; n > max(limit, 30) {
				t.Errorf("%d requests in %v", n, time.Since(began))
			}
		})
	}
}

// TestProgressEndsTheRow: only resumes without progress count to the sixth, which waits.
func TestProgressEndsTheRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := fakeJob(t, updatertest.Job{Content: updatertest.CSV(2 << 20)})
		fake.Script(slices.Repeat([]updatertest.Fault{{Truncate: 128 << 10}}, 16)...)
		download, began := open(t, t.Context(), fake.Client(updater.WithRetryWait(0, 0))), time.Now()
		n, err := io.Copy(io.Discard, download)
		if err != nil || n != 2<<20 || download.Resumes != 15 || time.Since(began) > 0 {
			t.Errorf("%d bytes, %v, %d resumes in %v", n, err, download.Resumes, time.Since(began))
		}
	})
}

// TestResumeIsACall: a resume uses the limiter and the token source, and waits as retries do.
func TestResumeIsACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := fakeJob(t, updatertest.Job{Content: updatertest.CSV(1000)},
			updatertest.Fault{Truncate: 10}, updatertest.Fault{Status: 401}, updatertest.Fault{Truncate: 10}, updatertest.Fault{Status: 302, Header: http.Header{"Location": {"/updater/inquiries/jobs/7/download"}}})
		var log bytes.Buffer
		tokens, asked := 0, 0
		client := fake.Client(
			updater.WithTokenSource(updater.TokenFunc(func(context.Context) (string, error) { tokens++; return fmt.Sprint("token-", tokens), nil })),
			updater.WithLimiter(limiterFunc(func(context.Context) error { asked++; return nil })),
			updater.WithRetryWait(time.Minute, time.Minute), updater.WithLogger(debugLog(&log)))
		download := open(t, t.Context(), client)
		began := time.Now()
		got, err := io.ReadAll(download)
		if err != nil || len(got) != 1000 {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		requests := fake.Requests()
		if len(requests) != 5 || asked != 5 || tokens < 5 || download.Attempts != 5 || download.Resumes != 2 {
			t.Errorf("%d requests, the limiter asked %d times, the source %d times, %d attempts, %d resumes", len(requests), asked, tokens, download.Attempts, download.Resumes)
		}
		if requests[4].Header.Get("Range") != "bytes=20-" {
			t.Errorf("redirected to %q", requests[4].Header.Get("Range"))
		}
		if time.Since(began) == 0 {
			t.Error("no wait before a resume")
		}
		if events := strings.Count(log.String(), "msg=reconnect"); events != 2 {
			t.Errorf("%d events of a reconnect in\n%s", events, log.String())
		}
	})
}

// TestResumeAfterARedirect: a broken download from another host is resumed at the service,
// which redirects again. Its name was good for the beginning, so a lookup that fails now is
// tried again.
func TestResumeAfterARedirect(t *testing.T) {
	redirect := testkit.Answer(302, "", "Location", "https://eu.storage.example/result")
	responses := []httpmock.Responder{redirect, func(r *http.Request) (*http.Response, error) {
		resp, err := testkit.Broken(200, "01234", io.ErrUnexpectedEOF)(r)
		resp.ContentLength = 10
		resp.Header.Set("ETag", `"v1"`)
		return resp, err
	}, func(*http.Request) (*http.Response, error) { return nil, &net.DNSError{IsNotFound: true} },
		redirect, testkit.Answer(206, "56789", "ETag", `"v1"`, "Content-Range", "bytes 5-9/10")}
	var sent []string
	network := roundTripper(func(r *http.Request) (*http.Response, error) {
		sent = append(sent, strings.TrimSpace(r.URL.Host+" "+r.Header.Get("Range")))
		return responses[len(sent)-1](r)
	})
	client, err := updater.NewClient(testkit.Base, "merchant-1", updater.StaticToken("token-1"), updater.WithRetryWait(0, 0),
		updater.WithHTTPClient(&http.Client{Transport: network}), updater.WithRedirectHosts("*.storage.example"))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(open(t, t.Context(), client))
	if string(content) != "0123456789" || err != nil {
		t.Errorf("%q, %v", content, err)
	}
	if !slices.Equal(sent, []string{"service.example", "eu.storage.example", "service.example bytes=5-", "service.example bytes=5-", "eu.storage.example bytes=5-"}) {
		t.Errorf("sent to %q", sent)
	}
}

// TestResumesAreCounted: a download, a file and its progress count the requests for the rest of a
// broken stream. The request id is that of the last response.
func TestResumesAreCounted(t *testing.T) {
	responses := []updatertest.Fault{{Truncate: 300}, {Truncate: 300}, {}}
	for i := range responses {
		responses[i].Header = http.Header{"X-Request-Id": {fmt.Sprint("r-", i+1)}}
	}
	fake := fakeJob(t, updatertest.Job{Content: updatertest.CSV(1000)}, slices.Concat(responses, responses)...)
	client := fake.Client(updater.WithRetryWait(0, 0))
	d := open(t, t.Context(), client)
	if d.RequestID != "r-1" || d.Attempts != 1 || d.Resumes != 0 {
		t.Errorf("first %q, %d attempts, %d resumes", d.RequestID, d.Attempts, d.Resumes)
	}
	if _, err := io.Copy(io.Discard, d); err != nil || d.RequestID != "r-3" || d.Attempts != 3 || d.Resumes != 2 {
		t.Errorf("then %q, %d attempts, %d resumes, %v", d.RequestID, d.Attempts, d.Resumes, err)
	}
	var last updater.FileProgress
	file, err := client.DownloadFile(t.Context(), "7", target(t), updater.FileOptions{Progress: func(p updater.FileProgress) { last = p }})
	if err != nil || file.RequestID != "r-3" || file.Attempts != 3 || file.Resumes != 2 || file.ResumedBytes != 0 || last.Resumes != 2 {
		t.Errorf("%+v after %+v, %v", show(file), last, err)
	}
}

// content is a body that knows whether it is closed.
type content struct {
	io.Reader
	closed bool
}

func (c *content) Close() error { c.closed = true; return nil }

// TestRefusedRestIsClosed: a response that does not go on with the content is closed at once, and
// not when the caller closes the download.
func TestRefusedRestIsClosed(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		header []string
	}{
		"another version": {200, []string{"ETag", `"v2"`}},
		"another part":    {206, []string{"ETag", `"v1"`, "Content-Range", "bytes 6-9/10"}},
	} {
		refused := &content{Reader: strings.NewReader("6789")}
		_, d, err := download(t, func(r *http.Request) (*http.Response, error) {
			resp, err := testkit.Broken(200, "01234", io.ErrUnexpectedEOF)(r)
			resp.ContentLength = 10
			resp.Header.Set("ETag", `"v1"`)
			return resp, err
		}, func(r *http.Request) (*http.Response, error) {
			resp, err := testkit.Answer(test.status, "", test.header...)(r)
			resp.Body = refused
			return resp, err
		})
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(d)
		if string(got) != "01234" || !errors.Is(err, updater.ErrChanged) || !refused.closed {
			t.Errorf("%s: %q, %v, and the response is closed: %t", name, got, err, refused.closed)
		}
		d.Close()
	}
}
