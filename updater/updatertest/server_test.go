package updatertest_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/updater"
	"github.com/carddata/carddata-go/updater/updatertest"
)

func TestBuiltInJob(t *testing.T) {
	fake := updatertest.NewServer(t)
	download, err := fake.Client().Download(t.Context(), "42")
	if err != nil {
		t.Fatal(err)
	}
	defer download.Close()
	content, err := io.ReadAll(download)
	if err != nil || int64(len(content)) != download.Length || download.ETag == "" || !strings.HasPrefix(download.ContentType, "text/csv") {
		t.Errorf("%d bytes, download %#v, %v", len(content), download, err)
	}
	if got := fake.Requests()[0].Header.Get("X-Merchant-Id"); got != "test-merchant" {
		t.Errorf("merchant = %q", got)
	}
}

func TestUnknownJob(t *testing.T) {
	fake := updatertest.NewServer(t)
	_, err := fake.Client().Download(t.Context(), "7")
	failure, ok := errors.AsType[*updater.Error](err)
	if !errors.Is(err, updater.ErrNotFound) || !ok || failure.Code != "job_not_found" {
		t.Errorf("error = %v", err)
	}
}

func TestStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := updatertest.NewServer(t)
		fake.SetJob("7", "text/plain", []byte("content"))
		fake.Script(updatertest.Fault{BodyDelay: time.Hour})
		download, err := fake.Client().Download(t.Context(), "7")
		if err != nil {
			t.Fatal(err)
		}
		defer download.Close()
		begin := time.Now()
		content, err := io.ReadAll(download)
		if string(content) != "content" || err != nil || download.Resumes != 1 || time.Since(begin) < 30*time.Second {
			t.Errorf("%q, error = %v after %v and %d resumes", content, err, time.Since(begin), download.Resumes)
		}
	})
}

func TestURL(t *testing.T) {
	fake := updatertest.NewServer(t)
	client, err := updater.NewClient(fake.URL(), "m", updater.StaticToken("k"))
	if err != nil {
		t.Fatal(err)
	}
	download, err := client.Download(t.Context(), "42")
	if err != nil {
		t.Fatal(err)
	}
	if err := download.Close(); err != nil || fake.Pending() != 0 {
		t.Errorf("close: %v", err)
	}
}

func TestJobContent(t *testing.T) {
	fake := updatertest.NewServer(t)
	const size = 3 << 20
	fake.SetJobContent("7", updatertest.JobContent{
		Content: updatertest.CSV(size), ContentType: "text/csv", Merchant: "test-merchant",
		ETag: new(`"v1"`), LastModified: time.Date(2031, 7, 1, 0, 0, 0, 0, time.UTC),
	})
	download, err := fake.Client().Download(t.Context(), "7")
	if err != nil {
		t.Fatal(err)
	}
	defer download.Close()
	content, err := io.ReadAll(download)
	want, _ := io.ReadAll(updatertest.CSV(size))
	if err != nil || !bytes.Equal(content, want) || download.ETag != `"v1"` ||
		download.LastModified != "Tue, 01 Jul 2031 00:00:00 GMT" || download.Length != size {
		t.Errorf("%d bytes of %#v, %v", len(content), download, err)
	}
	if sent := fake.Requests()[0].Sent; sent != size {
		t.Errorf("recorded %d bytes sent", sent)
	}
}

func TestUnreadableProfileFailsTheTest(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a profile with a misspelled point was taken")
		}
	}()
	updatertest.Start(updatertest.Like([]byte(`{"version": 1, "points": {"lookup.odrer": ["kept"]}}`)))
}
