package updater_test

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/updater"
)

// TestDownloadOnTheWire: a job id is one segment of the path, whatever it holds.
func TestDownloadOnTheWire(t *testing.T) {
	var sent *http.Request
	network := roundTripper(func(r *http.Request) (*http.Response, error) {
		sent = r
		return testkit.Answer(200, "content")(r)
	})
	client, err := updater.NewClient(testkit.Base, "merchant-1", updater.StaticToken("token-1"), updater.WithHTTPClient(&http.Client{Transport: network}))
	if err != nil {
		t.Fatal(err)
	}
	for id, segment := range map[string]string{"job-1": "job-1", "a/b": "a%2Fb", "a b?c#d": "a%20b%3Fc%23d", "a%2Fb": "a%252Fb"} {
		d, err := client.Download(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		d.Close()
		if sent.Method != "GET" || sent.URL.String() != "https://service.example/updater/inquiries/jobs/"+segment+"/download" || sent.Body != nil {
			t.Errorf("%q: sent %s %s with the body %v", id, sent.Method, sent.URL, sent.Body)
		}
	}
	header := sent.Header
	if names := slices.Sorted(maps.Keys(header)); !slices.Equal(names, []string{"Accept-Encoding", "Authorization", "User-Agent", "X-Merchant-Id"}) {
		t.Errorf("sent the headers %q", names)
	}
	if header.Get("Authorization") != "Bearer token-1" || header.Get("x-merchant-id") != "merchant-1" ||
		header.Get("Accept-Encoding") != "identity" || !strings.HasPrefix(header.Get("User-Agent"), "carddata-go/") {
		t.Errorf("sent the header %v", header)
	}
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

// TestForMerchant: a client without a merchant makes clients for others. Asked for more, it
// says what it lacks.
func TestForMerchant(t *testing.T) {
	mock := newMock(testkit.Answer(200, ""))
	none, err := updater.NewClient(testkit.Base, "", updater.StaticToken("token-1"), updater.WithHTTPClient(mock.Client()))
	if err != nil {
		t.Fatal(err)
	}
	_, stream := none.Download(t.Context(), "job-1")
	_, file := none.DownloadFile(t.Context(), "job-1", target(t), updater.FileOptions{})
	for _, err := range []error{stream, file} {
		if !errors.Is(err, updater.ErrInvalidArgument) || !strings.Contains(err.Error(), "the client has no merchant") {
			t.Error(err)
		}
	}
	first, errFirst := none.ForMerchant("merchant-1")
	second, errSecond := first.ForMerchant("merchant-2")
	if err := errors.Join(errFirst, errSecond); err != nil {
		t.Fatal(err)
	}
	for _, client := range []*updater.Client{second, first, second} {
		d, err := client.Download(t.Context(), "job-1")
		if err != nil {
			t.Fatal(err)
		}
		d.Close()
	}
	var sent []string
	for _, r := range mock.Requests() {
		sent = append(sent, r.Header.Get("x-merchant-id"))
	}
	if !slices.Equal(sent, []string{"merchant-2", "merchant-1", "merchant-2"}) {
		t.Errorf("sent x-merchant-id %q", sent)
	}
	testkit.NoLeak(t, second, "merchant-2", "token-1")
	testkit.NoLeak(t, *second, "merchant-2", "token-1")
}
