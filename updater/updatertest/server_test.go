package updatertest_test

import (
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
		if _, err := io.ReadAll(download); !errors.Is(err, updater.ErrTimeout) || time.Since(begin) != 30*time.Second {
			t.Errorf("error = %v after %v", err, time.Since(begin))
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
