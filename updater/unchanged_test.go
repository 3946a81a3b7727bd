package updater_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/carddata/carddata-go/updater"
	"github.com/carddata/carddata-go/updater/updatertest"
)

// TestIfChanged: what is there already is not fetched again, and whatever else is at
// the path is.
func TestIfChanged(t *testing.T) {
	content := sample(100_000)
	other := bytes.ToUpper(content)
	old := time.Now().Add(-time.Hour)
	byDate := updatertest.JobContent{Content: bytes.NewReader(content), ETag: new(""), LastModified: old}
	for _, test := range []struct {
		name      string
		job       updatertest.JobContent
		between   func(t *testing.T, fake *updatertest.Server, path string)
		merchant  string
		options   updater.FileOptions
		unchanged bool
	}{
		{name: "strong tag", unchanged: true},
		{name: "weak tag", job: updatertest.JobContent{ETag: new(`W/"v1"`)}, unchanged: true},
		{name: "date", job: byDate, unchanged: true},
		{name: "date of this second", job: updatertest.JobContent{ETag: new(""), LastModified: time.Now().Add(time.Minute)}},
		{name: "no validator", job: updatertest.JobContent{ETag: new("")}},
		{name: "no ranges", job: updatertest.JobContent{NoRanges: true}, unchanged: true},
		{name: "without a hash", options: updater.FileOptions{SkipHash: true}, unchanged: true},
		{name: "changed", between: func(t *testing.T, fake *updatertest.Server, path string) {
			fake.SetJobContent("7", updatertest.JobContent{Content: bytes.NewReader(other), ETag: new(`"v2"`)})
		}},
		{name: "another merchant", merchant: "m-2"},
		{name: "the file is gone", between: func(t *testing.T, fake *updatertest.Server, path string) { os.Remove(path) }},
		{name: "the file was touched", between: func(t *testing.T, fake *updatertest.Server, path string) { os.Chtimes(path, old, old) }},
		{name: "the file is open to others", between: func(t *testing.T, fake *updatertest.Server, path string) { os.Chmod(path, 0o644) }},
		{name: "the file is open to the group", between: func(t *testing.T, fake *updatertest.Server, path string) { os.Chmod(path, 0o620) }},
		{name: "the file has a second name", unchanged: true, between: func(t *testing.T, fake *updatertest.Server, path string) {
			os.Link(path, path+".backup")
			t.Cleanup(func() { os.Remove(path + ".backup") })
		}},
		{name: "the file is longer", between: func(t *testing.T, fake *updatertest.Server, path string) {
			info, _ := os.Stat(path)
			os.Truncate(path, int64(len(content)+1))
			os.Chtimes(path, info.ModTime(), info.ModTime())
		}},
		{name: "the file is a link", between: func(t *testing.T, fake *updatertest.Server, path string) {
			os.Rename(path, path+".moved")
			os.Symlink("result.csv.moved", path)
			t.Cleanup(func() { os.Remove(path + ".moved") })
		}},
		{name: "the record is gone", between: func(t *testing.T, fake *updatertest.Server, path string) { os.Remove(recordOf(path)) }},
		{name: "the record is of garbage", between: func(t *testing.T, fake *updatertest.Server, path string) {
			os.WriteFile(recordOf(path), []byte("{"), 0o600)
		}},
		{name: "a download without a record came between", between: func(t *testing.T, fake *updatertest.Server, path string) {
			fake.SetJobContent("8", updatertest.JobContent{Content: bytes.NewReader(other)})
			if _, err := fake.Client().DownloadFile(t.Context(), "8", path, updater.FileOptions{}); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			want := content
			if test.job.Content == nil {
				test.job.Content = bytes.NewReader(content)
			}
			fake := fakeJob(t, test.job)
			path := target(t)
			test.options.IfChanged = true
			first, err := fake.Client().DownloadFile(t.Context(), "7", path, test.options)
			if err != nil || first.Unchanged {
				t.Fatalf("the first call: %v, %v", first, err)
			}
			if test.between != nil {
				test.between(t, fake, path)
			}
			if test.name == "changed" {
				want = other
			}
			client := fake.Client()
			if test.merchant != "" {
				client, _ = client.ForMerchant(test.merchant)
			}
			before := len(fake.Requests())
			second, err := client.DownloadFile(t.Context(), "7", path, test.options)
			if err != nil || second.Unchanged != test.unchanged {
				t.Fatalf("%+v, %v", show(second), err)
			}
			if second.Unchanged {
				first.Unchanged, first.RequestID = true, second.RequestID
				if *second != *first {
					t.Errorf("%+v, want %+v", show(second), show(first))
				}
			}
			holds(t, path, want)
			requests := fake.Requests()[before:]
			if len(requests) != 1 || test.unchanged != (requests[0].Sent == 0) || test.unchanged != (requests[0].Status == http.StatusNotModified) {
				t.Errorf("%+v", requests)
			}
			third, err := client.DownloadFile(t.Context(), "7", path, updater.FileOptions{})
			if err != nil || third.Unchanged {
				t.Errorf("not asked for: %v, %v", third, err)
			}
			if info, err := os.Lstat(recordOf(path)); err == nil {
				t.Errorf("a record stays: %v", info)
			}
		})
	}
}

func recordOf(path string) string {
	return partialOf(path)[:len(partialOf(path))-len(".part")] + ".json"
}

// TestCurrentForWhom: a file without a known hash, or whose end was not marked, is
// current only for who asks for no hash, or accepts that. No hash is told to who asks
// for none.
func TestCurrentForWhom(t *testing.T) {
	accept := updater.FileOptions{IfChanged: true, AcceptUnverified: true}
	ask, skip := updater.FileOptions{IfChanged: true}, updater.FileOptions{IfChanged: true, SkipHash: true}
	for _, test := range []struct {
		fault               updatertest.Fault
		calls               []updater.FileOptions
		unchanged, verified []bool
	}{
		{updatertest.Fault{}, []updater.FileOptions{skip, ask, ask, skip}, []bool{false, false, true, true}, []bool{true, true, true, true}},
		{updatertest.Fault{Unframed: true}, []updater.FileOptions{accept, accept, ask}, []bool{false, true, false}, []bool{false, false, true}},
	} {
		fake, path := fakeJob(t, updatertest.JobContent{Content: updatertest.CSV(1000)}, test.fault), target(t)
		for i, o := range test.calls {
			file, err := fake.Client().DownloadFile(t.Context(), "7", path, o)
			if err != nil || file.Unchanged != test.unchanged[i] || file.Verified != test.verified[i] || (file.SHA256 == "") != o.SkipHash {
				t.Errorf("call %d: %+v, %v", i+1, show(file), err)
			}
		}
	}
}

// TestUnaskedNotModified: a 304 to who has asked for no condition is no content.
func TestUnaskedNotModified(t *testing.T) {
	fake := fakeJob(t, updatertest.JobContent{Content: updatertest.CSV(1000)}, updatertest.Fault{Status: 304}, updatertest.Fault{Status: 304}, updatertest.Fault{Truncate: 10}, updatertest.Fault{Status: 304})
	if d, err := fake.Client().Download(t.Context(), "7"); !errors.Is(err, updater.ErrBadResponse) {
		t.Errorf("%v, %v", d, err)
	}
	path := target(t)
	for range 2 {
		if file, err := fake.Client().DownloadFile(t.Context(), "7", path, updater.FileOptions{IfChanged: true}); !errors.Is(err, updater.ErrBadResponse) {
			t.Errorf("%v, %v", file, err)
		}
	}
	holdsOld(t, path)
}

func holdsOld(t *testing.T, path string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != "old" {
		t.Errorf("the path holds %d bytes, %v", len(got), err)
	}
}

// TestInterruptedUpdate: an interrupted download of a changed content is continued,
// and the record of the file that is still there does no harm.
func TestInterruptedUpdate(t *testing.T) {
	content := sample(100_000)
	other := bytes.ToUpper(content)
	fake := fakeJob(t, updatertest.JobContent{Content: bytes.NewReader(content)})
	path := target(t)
	o := updater.FileOptions{IfChanged: true}
	if _, err := fake.Client().DownloadFile(t.Context(), "7", path, o); err != nil {
		t.Fatal(err)
	}
	fake.SetJobContent("7", updatertest.JobContent{Content: bytes.NewReader(other)})
	interrupt(t, fake, path, 60_000, o)
	file, err := fake.Client().DownloadFile(t.Context(), "7", path, o)
	if err != nil || file.ResumedBytes != 59_999 || file.Unchanged {
		t.Errorf("%+v, %v", show(file), err)
	}
	holds(t, path, other)
	if file, err = fake.Client().DownloadFile(t.Context(), "7", path, o); err != nil || !file.Unchanged || file.SHA256 != hashOf(other) {
		t.Errorf("%+v, %v", show(file), err)
	}
}

// TestCheck: what the caller's check refuses takes no path, and does not stay.
func TestCheck(t *testing.T) {
	content := sample(100_000)
	refusal := errors.New("canary")
	for name, faults := range map[string][]updatertest.Fault{"at once": {{}}, "resumed": {{Truncate: 50_000}, {}}} {
		fake := fakeJob(t, updatertest.JobContent{Content: bytes.NewReader(content), ContentType: "text/csv"}, faults...)
		path := target(t)
		calls := 0
		check := func(got *io.SectionReader, h http.Header) error {
			calls++
			read, err := io.ReadAll(got)
			if err != nil || !bytes.Equal(read, content) || h.Get("Content-Type") != "text/csv" {
				t.Errorf("%s: checked %d bytes, %v, %v", name, len(read), err, h)
			}
			holdsOld(t, path)
			return refusal
		}
		client := fake.Client(updater.WithRetryWait(0, 0))
		_, err := client.DownloadFile(t.Context(), "7", path, updater.FileOptions{Check: check})
		if failed, ok := err.(*updater.Error); !ok || failed.Cause() != refusal {
			t.Errorf("%s: caused by %v", name, failed.Cause())
		}
		if !errors.Is(err, updater.ErrRefused) || !errors.Is(err, refusal) || calls != 1 || bytes.Contains([]byte(err.Error()), []byte("canary")) {
			t.Errorf("%s: %v after %d calls", name, err, calls)
		}
		holdsOld(t, path)
		if names := beside(t, path); !slices.Equal(names, []string{"result.csv"}) {
			t.Errorf("%s: in the directory: %q", name, names)
		}
		refusal = nil
		if _, err := client.DownloadFile(t.Context(), "7", path, updater.FileOptions{Check: check}); err != nil {
			t.Error(err)
		}
		holds(t, path, content)
		refusal = errors.New("canary")
	}
}

// TestFailedPlacing: a content that is complete and cannot take its path stays, and
// the next call asks for its last byte alone.
func TestFailedPlacing(t *testing.T) {
	content := sample(100_000)
	fake := fakeJob(t, updatertest.JobContent{Content: bytes.NewReader(content)})
	path := target(t)
	o := updater.FileOptions{Check: func(*io.SectionReader, http.Header) error {
		return errors.Join(os.Remove(path), os.Mkdir(path, 0o700))
	}}
	if _, err := fake.Client().DownloadFile(t.Context(), "7", path, o); err == nil || errors.Is(err, updater.ErrRefused) {
		t.Fatal(err)
	}
	lists(t, path, ".result.csv.part", ".result.csv.part.json", "result.csv")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	before := len(fake.Requests())
	file, err := fake.Client().DownloadFile(t.Context(), "7", path, updater.FileOptions{})
	if err != nil || file.ResumedBytes != 99_999 || sent(fake.Requests()[before:]) != 1 {
		t.Errorf("%+v, %v", show(file), err)
	}
	holds(t, path, content)
}

// sent is how many bytes of content the service sent.
func sent(requests []updatertest.Request) (sum int64) {
	for _, r := range requests {
		sum += r.Sent
	}
	return sum
}

// TestBeginsAnew: where nothing can be resumed, a file is begun anew as often as a
// call is retried, and what no call could continue does not stay.
func TestBeginsAnew(t *testing.T) {
	content := sample(100_000)
	cut := updatertest.Fault{Truncate: 50_000}
	for name, job := range map[string]updatertest.JobContent{
		"no validator": {ETag: new("")},
		"no ranges":    {NoRanges: true},
		"weak tag":     {ETag: new(`W/"v1"`)},
	} {
		for _, test := range []struct {
			cuts, retries int
			arrives       bool
		}{{1, 3, true}, {3, 3, true}, {4, 3, false}, {1, 0, false}, {1, 1, true}} {
			job.Content = bytes.NewReader(content)
			fake := fakeJob(t, job)
			cuts := 0
			fake.ScriptFunc(func(r updatertest.Request) updatertest.Fault {
				if r.Header.Get("Range") != "" {
					return updatertest.Fault{}
				}
				if cuts++; cuts <= test.cuts {
					return cut
				}
				return updatertest.Fault{}
			})
			path := target(t)
			file, err := fake.Client(updater.WithRetryWait(0, 0), updater.WithMaxRetries(test.retries)).DownloadFile(t.Context(), "7", path, updater.FileOptions{})
			if test.arrives != (err == nil) || err == nil && file.SHA256 != hashOf(content) {
				t.Errorf("%s, %+v: %v, %v", name, test, file, err)
			}
			if err != nil && test.retries > 0 && !errors.Is(err, updater.ErrNotResumable) {
				t.Errorf("%s, %+v: %v", name, test, err)
			}
			if names := beside(t, path); err == nil && !slices.Equal(names, []string{"result.csv"}) ||
				err != nil && (name != "no ranges" || test.retries > 0) && !slices.Equal(names, []string{"result.csv"}) {
				t.Errorf("%s, %+v: in the directory: %q", name, test, names)
			}
		}
	}
}
