package updatertest_test

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

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
