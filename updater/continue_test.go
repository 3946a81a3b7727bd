package updater_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/carddata/carddata-go/updater"
	"github.com/carddata/carddata-go/updater/updatertest"
)

// interrupt downloads a part of job 7 and leaves it beside path.
func interrupt(t *testing.T, fake *updatertest.Server, path string, bytes int) {
	t.Helper()
	fake.Script(updatertest.Fault{Truncate: bytes})
	before, _ := os.ReadFile(path)
	_, err := fake.Client(updater.WithMaxRetries(0)).DownloadFile(t.Context(), "7", path, updater.FileOptions{})
	if !errors.Is(err, updater.ErrBadResponse) {
		t.Fatalf("not interrupted: %v", err)
	}
	if after, _ := os.ReadFile(path); string(after) != string(before) {
		t.Error("the interrupted download touched the path")
	}
}

// TestContinue: the next call continues a part if the service confirms that it is of the
// same content, and starts over otherwise.
func TestContinue(t *testing.T) {
	const size, left = 1_000_000, 600_000
	content := sample(size)
	other := bytes.ToUpper(content[:size-5])
	type change = func(t *testing.T, fake *updatertest.Server, path string)
	becomes := func(content []byte, tag *string) change {
		return func(_ *testing.T, fake *updatertest.Server, _ string) {
			fake.SetJob("7", updatertest.Job{Content: bytes.NewReader(content), ETag: tag})
		}
	}
	sends := func(f updatertest.Fault) change {
		return func(_ *testing.T, fake *updatertest.Server, _ string) { fake.Script(f) }
	}
	note := func(edit func(noted string) string) change {
		return func(t *testing.T, _ *updatertest.Server, path string) {
			noted, err := os.ReadFile(partialOf(path) + ".json")
			if err != nil {
				t.Fatal(err)
			}
			os.WriteFile(partialOf(path)+".json", []byte(edit(string(noted))), 0o600)
		}
	}
	for _, test := range []struct {
		name      string
		update    bool // with IfChanged, of a file that has a record
		change    change
		job       string
		merchant  string
		want      []byte
		continued int64
		requests  int
	}{
		{name: "same", want: content, continued: left - 1, requests: 1},
		{name: "an update", update: true, want: content, continued: left - 1, requests: 1},
		{name: "other job", job: "8", want: other, requests: 1},
		{name: "other merchant", merchant: "m-2", want: content, requests: 1},
		{name: "new version", want: other, requests: 1, change: becomes(other, nil)},
		{name: "same tag, other length", want: other, requests: 2, change: becomes(other, new(`"v1"`))},
		{name: "much shorter", want: content[:500], requests: 2, change: becomes(content[:500], new(`"v1"`))},
		{name: "an early part", want: content, requests: 2, change: sends(partOf(content, 5, size))},
		{name: "a later part", want: content, requests: 2, change: sends(partOf(content, left+1, size))},
		{name: "no metadata", want: content, requests: 1, change: func(t *testing.T, fake *updatertest.Server, path string) {
			os.Remove(partialOf(path) + ".json")
		}},
		{name: "metadata of garbage", want: content, requests: 1, change: note(func(string) string { return "{" })},
		{name: "metadata of an old release", want: content, requests: 1, change: note(func(noted string) string {
			return strings.Replace(noted, `"format":5`, `"format":4`, 1)
		})},
		{name: "metadata of no content", want: content, requests: 1, change: note(func(noted string) string {
			return strings.Replace(noted, `"length":1000000`, `"length":0`, 1)
		})},
		{name: "longer than the content", want: content, requests: 1, change: func(t *testing.T, fake *updatertest.Server, path string) {
			os.Truncate(partialOf(path), size+1)
		}},
		{name: "whole", want: content, continued: size - 1, requests: 1, change: func(t *testing.T, fake *updatertest.Server, path string) {
			os.WriteFile(partialOf(path), content, 0o600)
		}},
		{name: "another job is not there", want: content, continued: left - 1, requests: 2, change: func(t *testing.T, fake *updatertest.Server, path string) {
			if _, err := fake.Client().DownloadFile(t.Context(), "none", path, updater.FileOptions{}); !errors.Is(err, updater.ErrNotFound) {
				t.Error(err)
			}
		}},
		{name: "cut again", want: content, continued: left + 99_998, requests: 2, change: func(t *testing.T, fake *updatertest.Server, path string) {
			interrupt(t, fake, path, 100_000)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			fake := fakeJob(t, updatertest.Job{Content: bytes.NewReader(content), ETag: new(`"v1"`)})
			fake.SetJob("8", updatertest.Job{Content: bytes.NewReader(other), ETag: new(`"v1"`)})
			path := target(t)
			if test.update {
				becomes(other, new(`"v0"`))(t, fake, path)
				if _, err := fake.Client().DownloadFile(t.Context(), "7", path, updater.FileOptions{IfChanged: true}); err != nil {
					t.Fatal(err)
				}
				becomes(content, new(`"v1"`))(t, fake, path)
			}
			interrupt(t, fake, path, left)
			if names := beside(t, path); !slices.Equal(names, []string{".result.csv.part", ".result.csv.part.json", "result.csv"}) {
				t.Fatalf("left: %q", names)
			}
			for _, name := range []string{partialOf(path), partialOf(path) + ".json"} {
				if info, err := os.Lstat(name); err != nil || info.Mode() != private {
					t.Errorf("%s: %v, %v", name, info.Mode(), err)
				}
			}
			before := len(fake.Requests())
			if test.change != nil {
				test.change(t, fake, path)
			}
			client := fake.Client()
			if test.merchant != "" {
				client, _ = client.ForMerchant(test.merchant)
			}
			job := "7"
			if test.job != "" {
				job = test.job
			}
			var progress []updater.FileProgress
			file, err := client.DownloadFile(t.Context(), job, path, updater.FileOptions{IfChanged: test.update, Progress: func(p updater.FileProgress) { progress = append(progress, p) }})
			if err != nil {
				t.Fatal(err)
			}
			holds(t, path, test.want)
			all := int64(len(test.want))
			first := updater.FileProgress{Bytes: min(test.continued+256<<10, all), Total: all}
			if len(progress) == 0 || progress[0] != first || progress[len(progress)-1].Bytes != all {
				t.Errorf("progress %+v, want %+v first", progress, first)
			}
			if file.SHA256 != hashOf(test.want) || file.Size != int64(len(test.want)) || file.ResumedBytes != test.continued || file.Resumes != 0 {
				t.Errorf("%+v", show(file))
			}
			if n := len(fake.Requests()) - before; n != test.requests {
				t.Errorf("%d requests: %q", n, ranges(fake))
			}
			if !test.update { // another record has its place
				lists(t, path, "result.csv")
			}
		})
	}
}

// TestNothingToContinueBy: a part that no call could continue does not stay, not even whole content
// that cannot take its path.
func TestNothingToContinueBy(t *testing.T) {
	path := target(t)
	fake := fakeJob(t, updatertest.Job{Content: updatertest.CSV(1000), ETag: new("")})
	blocked := func(*io.SectionReader, http.Header) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }
	if _, err := fake.Client().DownloadFile(t.Context(), "7", path, updater.FileOptions{Check: blocked}); err == nil || !strings.Contains(err.Error(), "cannot take its path") {
		t.Error(err)
	}
	lists(t, path, "result.csv")
}

// TestRestart: a download starts over only where that may help, and keeps a part that the
// next call can continue.
func TestRestart(t *testing.T) {
	cut, gone := updatertest.Fault{Truncate: 500}, updatertest.Fault{Status: 404}
	changed := updatertest.Fault{Header: http.Header{"Etag": {`"v2"`}}}
	for _, test := range []struct {
		name   string
		faults []updatertest.Fault
		before int   // bytes that an earlier call left
		next   int64 // bytes that the next call keeps
	}{
		{"not resumable, then gone", []updatertest.Fault{{Truncate: 500, Header: http.Header{"Etag": nil}}, gone}, 0, 0},
		{"changed, then gone", []updatertest.Fault{cut, changed, gone}, 0, 0},
		{"changed, then cut off", []updatertest.Fault{cut, changed, cut, gone}, 0, 499},
		{"what was to be continued is gone, then the job", []updatertest.Fault{partOf(sample(1000), 701, 1000), gone}, 700, 699},
		{"one byte is left, then gone", []updatertest.Fault{gone}, 1, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			fake, path := fakeJob(t, updatertest.Job{Content: updatertest.CSV(1000)}), target(t)
			if test.before > 0 {
				interrupt(t, fake, path, test.before)
			}
			fake.Script(test.faults...)
			before := len(fake.Requests())
			_, err := fake.Client(updater.WithRetryWait(0, 0)).DownloadFile(t.Context(), "7", path, updater.FileOptions{})
			if failed, ok := err.(*updater.Error); !errors.Is(err, updater.ErrNotFound) || !ok || failed.Attempts != len(test.faults) || len(fake.Requests())-before != len(test.faults) {
				t.Errorf("%v after %d requests", err, len(fake.Requests())-before)
			}
			if names := beside(t, path); (len(names) == 1) != (test.next == 0) {
				t.Errorf("left: %q", names)
			}
			if file, err := fake.Client().DownloadFile(t.Context(), "7", path, updater.FileOptions{}); err != nil || file.ResumedBytes != test.next {
				t.Errorf("%+v, %v", show(file), err)
			}
		})
	}
}

// TestRefusedContinuing: if the service may have refused the range, the whole content is
// requested. A response that a plain request would get, too, does not cost the part.
func TestRefusedContinuing(t *testing.T) {
	const left = 60_000
	content := sample(100_000)
	other := bytes.ToUpper(content)
	for _, test := range []struct {
		name   string
		fault  updatertest.Fault
		ranged int  // requests with a range
		plain  bool // then one without a range
	}{
		{"400", updatertest.Fault{Status: 400}, 1, true},
		{"401", updatertest.Fault{Status: 401}, 1, false},
		{"403", updatertest.Fault{Status: 403}, 1, true},
		{"416", updatertest.Fault{Status: 416}, 1, true},
		{"416 with a wait", updatertest.Fault{Status: 416, RetryAfter: time.Second}, 1, true},
		{"407", updatertest.Fault{Status: 407}, 1, false},
		{"408", updatertest.Fault{Status: 408}, 3, false},
		{"429", updatertest.Fault{Status: 429}, 4, false},
		{"500", updatertest.Fault{Status: 500}, 3, true},
		{"502", updatertest.Fault{Status: 502}, 4, false},
		{"503", updatertest.Fault{Status: 503}, 4, false},
		{"504", updatertest.Fault{Status: 504}, 4, false},
		{"202", updatertest.Fault{Status: 202}, 1, false},
		{"error object", updatertest.Fault{Status: 200, Body: new(`{"error":{"code":"no_ranges"}}`)}, 1, true},
		{"page", updatertest.Fault{Status: 200, Body: new("<html>")}, 1, true},
		{"403 with a wait", updatertest.Fault{Status: 403, RetryAfter: time.Second}, 1, false},
		{"no response", updatertest.Fault{Drop: true}, 4, false},
	} {
		bubble(t, test.name, func(t *testing.T) {
			fake, path := fakeJob(t, updatertest.Job{Content: bytes.NewReader(content)}), target(t)
			interrupt(t, fake, path, left)
			network := scripted(fake, func(r *http.Request) updatertest.Fault {
				if r.Header.Get("Range") != "" {
					return test.fault
				}
				return updatertest.Fault{Body: new(string(other))} // under the same ETag
			})
			file, err := fake.Client(network).DownloadFile(t.Context(), "7", path, updater.FileOptions{})
			plain := 0
			if test.plain {
				plain = 1
			}
			if n := len(fake.Requests()) - 1; n != test.ranged+plain || (err == nil) != test.plain {
				t.Errorf("%d requests, %v", n, err)
			}
			if test.plain {
				if err == nil && file.ResumedBytes != 0 {
					t.Errorf("%+v", show(file))
				}
				holds(t, path, other)
			} else {
				holdsOld(t, path)
				if file, err := fake.Client().DownloadFile(t.Context(), "7", path, updater.FileOptions{}); err != nil || file.ResumedBytes != left-1 {
					t.Errorf("%+v, %v", show(file), err)
				}
				holds(t, path, content)
			}
			lists(t, path, "result.csv")
		})
	}
}

// TestRefusedCondition: if the service refuses If-None-Match or If-Modified-Since, the content
// is requested without it.
func TestRefusedCondition(t *testing.T) {
	for _, job := range []updatertest.Job{{}, {ETag: new(""), LastModified: time.Now().Add(-time.Hour)}} {
		job.Content = updatertest.CSV(1000)
		fake, path, o := fakeJob(t, job), target(t), updater.FileOptions{IfChanged: true}
		network := scripted(fake, func(r *http.Request) updatertest.Fault {
			if r.Header.Get("If-None-Match")+r.Header.Get("If-Modified-Since") != "" {
				return updatertest.Fault{Status: 412}
			}
			return updatertest.Fault{}
		})
		for call, attempts := range []int{1, 2} {
			if file, err := fake.Client(network).DownloadFile(t.Context(), "7", path, o); err != nil || file.Unchanged || file.Attempts != attempts {
				t.Errorf("call %d: %+v, %v", call+1, show(file), err)
			}
		}
		holds(t, path, sample(1000))
	}
}

// TestStartsOver: where nothing can be resumed, a file starts over as often as a call is
// retried, and no part stays.
func TestStartsOver(t *testing.T) {
	for name, job := range map[string]updatertest.Job{"no validator": {ETag: new("")}, "no ranges": {NoRanges: true}, "weak ETag": {ETag: new(`W/"v1"`)}} {
		for _, breaks := range []int{3, 4} {
			left := breaks
			job.Content = updatertest.CSV(1000)
			fake, path := fakeJob(t, job), target(t)
			network := scripted(fake, func(r *http.Request) updatertest.Fault {
				if r.Header.Get("Range") != "" || left == 0 {
					return updatertest.Fault{}
				}
				left--
				return updatertest.Fault{Truncate: 500}
			})
			file, err := fake.Client(network, updater.WithRetryWait(0, 0), updater.WithMaxRetries(3)).DownloadFile(t.Context(), "7", path, updater.FileOptions{})
			if arrives := breaks == 3; arrives && (err != nil || file.Size != 1000) || !arrives && !errors.Is(err, updater.ErrChanged) {
				t.Errorf("%s, broken %d times: %v, %v", name, breaks, file, err)
			}
			lists(t, path, "result.csv")
		}
	}
}
