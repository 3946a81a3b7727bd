package updater_test

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/carddata/carddata-go/updater"
	"github.com/carddata/carddata-go/updater/updatertest"
)

// modesCount is false where Go makes modes up.
var modesCount = runtime.GOOS != "windows" && runtime.GOOS != "js"

// TestIfChanged: nothing is fetched if the file at the path is the service's content, and
// everything otherwise.
func TestIfChanged(t *testing.T) {
	content := sample(100_000)
	other := bytes.ToUpper(content)
	old := time.Now().Add(-time.Hour)
	open := func(path string, mode os.FileMode) {
		if modesCount {
			os.Chmod(path, mode)
		}
	}
	byDate := updatertest.Job{Content: bytes.NewReader(content), ETag: new(""), LastModified: old}
	for _, test := range []struct {
		name      string
		job       updatertest.Job
		header    http.Header
		between   func(t *testing.T, fake *updatertest.Server, path string)
		merchant  string
		options   updater.FileOptions
		unchanged bool
	}{
		{name: "strong tag", unchanged: true},
		{name: "weak tag", job: updatertest.Job{ETag: new(`W/"v1"`)}, unchanged: true},
		{name: "date", job: byDate, unchanged: true},
		{name: "date, and no ranges", job: byDate, header: http.Header{"Accept-Ranges": {"none"}}, unchanged: true},
		{name: "date of this second", job: updatertest.Job{ETag: new(""), LastModified: time.Now().Add(time.Minute)}},
		{name: "no validator", job: updatertest.Job{ETag: new("")}},
		{name: "no ranges", job: updatertest.Job{NoRanges: true}, unchanged: true},
		{name: "changed", between: func(t *testing.T, fake *updatertest.Server, path string) {
			fake.SetJob("7", updatertest.Job{Content: bytes.NewReader(other), ETag: new(`"v2"`)})
		}},
		{name: "another merchant", merchant: "m-2"},
		{name: "the file is gone", between: func(t *testing.T, fake *updatertest.Server, path string) { os.Remove(path) }},
		{name: "the file was rewritten a moment later", between: func(t *testing.T, fake *updatertest.Server, path string) {
			info, err := os.Stat(path)
			if err != nil {
				t.Fatal(err)
			}
			os.WriteFile(path, bytes.ToLower(content), 0o600)
			os.Chtimes(path, old, info.ModTime().Add(time.Millisecond))
		}},
		{name: "the file is open to others", unchanged: !modesCount, between: func(t *testing.T, fake *updatertest.Server, path string) { open(path, 0o644) }},
		{name: "the file is open to the group", unchanged: !modesCount, between: func(t *testing.T, fake *updatertest.Server, path string) { open(path, 0o620) }},
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
		{name: "a call that failed came between", unchanged: true, between: func(t *testing.T, fake *updatertest.Server, path string) {
			if _, err := fake.Client().DownloadFile(t.Context(), "none", path, updater.FileOptions{IfChanged: true}); !errors.Is(err, updater.ErrNotFound) {
				t.Error(err)
			}
		}},
		{name: "an unchanged one came between", unchanged: true, between: func(t *testing.T, fake *updatertest.Server, path string) {
			if file, err := fake.Client().DownloadFile(t.Context(), "7", path, updater.FileOptions{IfChanged: true}); err != nil || !file.Unchanged {
				t.Error(show(file), err)
			}
		}},
		{name: "a download without a record came between", between: func(t *testing.T, fake *updatertest.Server, path string) {
			fake.SetJob("8", updatertest.Job{Content: bytes.NewReader(other)})
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
			fake.Script(slices.Repeat([]updatertest.Fault{{Header: test.header}}, 10)...)
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
	return partialOf(path) + ".json"
}

// TestCurrentForWhom: a file that was not verified is current only for a call with
// AcceptUnverified.
func TestCurrentForWhom(t *testing.T) {
	fake, path := fakeJob(t, updatertest.Job{Content: updatertest.CSV(1000)}, unframed), target(t)
	for i, test := range []struct{ accept, unchanged, verified bool }{{true, false, false}, {true, true, false}, {false, false, true}} {
		file, err := fake.Client().DownloadFile(t.Context(), "7", path, updater.FileOptions{IfChanged: true, AcceptUnverified: test.accept})
		if err != nil || file.Unchanged != test.unchanged || file.Verified != test.verified || file.SHA256 != hashOf(sample(1000)) {
			t.Errorf("call %d: %+v, %v", i+1, show(file), err)
		}
	}
}

func holdsOld(t *testing.T, path string) {
	t.Helper()
	if got, err := os.ReadFile(path); err != nil || string(got) != "old" {
		t.Errorf("the path holds %d bytes, %v", len(got), err)
	}
}
