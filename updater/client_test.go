package updater_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/internal/testkit"
	"github.com/carddata/carddata-go/updater"
)

func TestDownloadOnTheWire(t *testing.T) {
	mock, d, err := download(t, testkit.Answer(200, "content"))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	got := mock.Requests()
	if len(got) != 1 || got[0].Method != "GET" || got[0].URL != "https://service.example/updater/inquiries/jobs/job-1/download" || got[0].Body != "" {
		t.Fatalf("sent %+v", got)
	}
	header := got[0].Header
	if names := slices.Sorted(maps.Keys(header)); !slices.Equal(names, []string{"Accept-Encoding", "Authorization", "User-Agent", "X-Merchant-Id"}) {
		t.Errorf("sent the headers %q", names)
	}
	if header.Get("Authorization") != "Bearer token-1" || header.Get("x-merchant-id") != "merchant-1" ||
		header.Get("Accept-Encoding") != "identity" || !strings.HasPrefix(header.Get("User-Agent"), "carddata-go/") {
		t.Errorf("sent the header %v", header)
	}
}

func TestForMerchant(t *testing.T) {
	mock := newMock(testkit.Answer(200, ""))
	first := newClient(t, mock)
	second, err := first.ForMerchant("merchant-2")
	if err != nil {
		t.Fatal(err)
	}
	for i, test := range []struct {
		client   *updater.Client
		merchant string
	}{{second, "merchant-2"}, {first, "merchant-1"}, {second, "merchant-2"}} {
		d, err := test.client.Download(t.Context(), "job-1")
		if err != nil {
			t.Fatal(err)
		}
		d.Close()
		header := mock.Requests()[i].Header
		if got := header["X-Merchant-Id"]; !slices.Equal(got, []string{test.merchant}) || header.Get("Authorization") != "Bearer token-1" {
			t.Errorf("sent x-merchant-id %q for %s", got, test.merchant)
		}
	}
	testkit.NoLeak(t, second, "merchant-2", "token-1")
	testkit.NoLeak(t, *second, "merchant-2", "token-1")
}

func TestMerchantID(t *testing.T) {
	client := newClient(t, newMock())
	for id, usable := range map[string]bool{
		"m": true, "M-1_2.3:4/5": true, "~!": true, strings.Repeat("m", 128): true,
		"": false, strings.Repeat("canary", 22): false, "canary 1": false, "canary,2": false, "canary\r\nX: 1": false, "canary\x00": false,
		"canary\x7f": false, "canaryé": false, "\tcanary": false,
	} {
		_, made := updater.NewClient(testkit.Base, id, updater.StaticToken("token-1"))
		_, changed := client.ForMerchant(id)
		for where, err := range map[string]error{"new client": made, "for merchant": changed} {
			usable := usable || id == "" && where == "new client"
			if usable && err != nil || !usable && (!errors.Is(err, updater.ErrInvalidArgument) || !strings.HasPrefix(err.Error(), "updater: "+where+": ")) {
				t.Errorf("%s of merchant %.20q: %v", where, id, err)
			}
			if err != nil {
				testkit.NoLeak(t, err, "canary")
			}
		}
	}
}

// TestClientWithoutMerchant: a client without a merchant makes others, and is told
// what it lacks when it is asked for more.
func TestClientWithoutMerchant(t *testing.T) {
	mock := newMock(testkit.Answer(200, ""))
	client, err := updater.NewClient(testkit.Base, "", updater.StaticToken("token-1"), updater.WithHTTPClient(mock.Client()))
	if err != nil {
		t.Fatal(err)
	}
	_, stream := client.Download(t.Context(), "job-1")
	_, file := client.DownloadFile(t.Context(), "job-1", target(t), updater.FileOptions{})
	_, ready := client.DownloadWhenReady(t.Context(), "job-1", updater.WaitOptions{NotReady: func(*updater.Error) bool { return true }})
	for _, err := range []error{stream, file, ready} {
		if !errors.Is(err, updater.ErrInvalidArgument) || !strings.Contains(err.Error(), "the client has no merchant") || len(mock.Requests()) > 0 {
			t.Errorf("%v after %d requests", err, len(mock.Requests()))
		}
	}
	its, err := client.ForMerchant("merchant-2")
	if err != nil {
		t.Fatal(err)
	}
	d, err := its.Download(t.Context(), "job-1")
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
	if got := mock.Requests()[0].Header["X-Merchant-Id"]; !slices.Equal(got, []string{"merchant-2"}) {
		t.Errorf("sent x-merchant-id %q", got)
	}
}

// What else a zero value comes to is proved by internal/conformance/matrix.
func TestNoClient(t *testing.T) {
	for _, client := range []*updater.Client{nil, {}} {
		d, err := client.Download(t.Context(), "job-1")
		if e := failure(t, d, err); !errors.Is(e, updater.ErrInvalidArgument) {
			t.Error(e)
		}
	}
}

// TestHeader: what the service says beside the content can be read, and is printed by
// nothing.
func TestHeader(t *testing.T) {
	_, d, err := download(t, testkit.Answer(200, "4111111111111111", "ETag", "canary-tag", "X-Quota-Left", "canary"))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if got := d.Header().Get("X-Quota-Left"); got != "canary" {
		t.Errorf("the header says %q", got)
	}
	testkit.NoLeak(t, d, "canary", "4111111111111111")
	testkit.NoLeak(t, *d, "canary", "4111111111111111")
	if got := testkit.Printed(d)["%v"]; got != "download of -1 bytes" {
		t.Errorf("prints %q", got)
	}
	if header := new(updater.Download).Header(); header != nil {
		t.Errorf("the zero value has the header %v", header)
	}
}
