package updatertest_test

import (
	"strings"
	"testing"

	"github.com/carddata/carddata-go/updater/updatertest"
)

func TestBuiltInJob(t *testing.T) {
	fake := updatertest.NewServer(t)
	download, err := fake.Client().Download(t.Context(), "42")
	if err != nil {
		t.Fatal(err)
	}
	defer download.Close()
	if download.Length <= 0 || download.ETag == "" || !strings.HasPrefix(download.ContentType, "text/csv") {
		t.Errorf("%#v", download)
	}
	if got := fake.Requests()[0].Header.Get("X-Merchant-Id"); got != "test-merchant" {
		t.Errorf("merchant = %q", got)
	}
}
