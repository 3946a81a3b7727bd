package updater_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/carddata/carddata-go/updater"
)

// TestRedirectToStorage: a result that an object storage holds is fetched from there,
// and resumed through the service, without credential and merchant id.
func TestRedirectToStorage(t *testing.T) {
	content := sample(1_000_000)
	var storageSaw []http.Header
	storage := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		storageSaw = append(storageSaw, r.Header)
		w.Header().Set("ETag", `"v1"`)
		if len(storageSaw) == 1 {
			w.Header().Set("Content-Length", "1000000")
			w.Write(content[:600_000])
			panic(http.ErrAbortHandler)
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	}))
	defer storage.Close()
	asked := 0
	service := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.Header.Get("Authorization") != "Bearer canary" || r.Header.Get("x-merchant-id") != "merchant-1" || r.Header.Get("X-Key") != "canary" {
			t.Errorf("the service sees %v", r.Header)
		}
		http.Redirect(w, r, "https://eu.storage.example/result?signature=canary", http.StatusFound)
	}))
	defer service.Close()
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		to := service
		if address == "eu.storage.example:443" {
			to = storage
		}
		return new(net.Dialer).DialContext(ctx, network, to.Listener.Addr().String())
	}
	network := &http.Transport{DialContext: dial, DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	newClient := func(opts ...updater.Option) *updater.Client {
		opts = append(opts, updater.WithHTTPClient(&http.Client{Transport: network}), updater.WithHeader("X-Key", "canary"), updater.WithRetryWait(0, 0))
		client, err := updater.NewClient("https://updater.example", "merchant-1", updater.StaticToken("canary"), opts...)
		if err != nil {
			t.Fatal(err)
		}
		return client
	}
	path := target(t)
	for _, hosts := range [][]string{nil, {"storage.example"}, {"*.other.example"}} {
		_, err := newClient(updater.WithRedirectHosts(hosts...)).DownloadFile(t.Context(), "7", path, updater.FileOptions{})
		if !errors.Is(err, updater.ErrRedirect) || len(storageSaw) > 0 {
			t.Errorf("%q: %v after %d requests", hosts, err, len(storageSaw))
		}
	}
	asked = 0
	file, err := newClient(updater.WithRedirectHosts("*.storage.example")).DownloadFile(t.Context(), "7", path, updater.FileOptions{})
	if err != nil || file.Resumes != 1 || asked != 2 || len(storageSaw) != 2 {
		t.Errorf("%+v, %v, the service was asked %d times, the storage %d times", show(file), err, asked, len(storageSaw))
	}
	holds(t, path, content)
	for _, h := range storageSaw {
		for _, name := range []string{"Authorization", "X-Merchant-Id", "X-Key", "Cookie", "Referer"} {
			if h.Get(name) != "" {
				t.Errorf("the storage sees %s", name)
			}
		}
	}
	if len(storageSaw) == 2 && (storageSaw[1].Get("Range") != "bytes=600000-" || storageSaw[1].Get("If-Range") != `"v1"`) {
		t.Errorf("resumed with %v", storageSaw[1])
	}
}
