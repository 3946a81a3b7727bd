package updater_test

import (
	"context"
	"crypto/sha256"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/carddata/carddata-go/updater"
)

// BenchmarkFile compares ways to a file, in turns within each round, so that what
// slows the machine down slows all of them. It reports the medians of how many
// times as fast as a hand-written copy each is; DownloadFile always syncs its
// file, and is compared with a copy that does, and with one that does not.
//
//	go test ./updater -run '^$' -bench File -benchtime 10x
func BenchmarkFile(b *testing.B) {
	const size = 512 << 20
	piece := sample(1 << 20)
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"v1"`)
		w.Header().Set("Content-Length", strconv.Itoa(size))
		for range size / len(piece) {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	}))
	defer service.Close()
	client, err := updater.NewClient(service.URL, "merchant-1", updater.StaticToken("token-1"))
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(b.TempDir(), "result")
	byHand := func(hash, sync bool) error {
		resp, err := http.Get(service.URL)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		file, err := os.Create(path)
		if err != nil {
			return err
		}
		defer file.Close()
		var body io.Reader = resp.Body
		if hash {
			body = io.TeeReader(body, sha256.New())
		}
		if _, err := io.Copy(file, body); err != nil || !sync {
			return err
		}
		return file.Sync()
	}
	write := func() error {
		download, err := client.Download(context.Background(), "7")
		if err != nil {
			return err
		}
		defer download.Close()
		file, err := os.Create(path)
		if err != nil {
			return err
		}
		defer file.Close()
		_, err = download.WriteTo(file)
		return err
	}
	toFile := func(o updater.FileOptions) error {
		_, err := client.DownloadFile(context.Background(), "7", path, o)
		return err
	}
	ways := []struct {
		name string
		base []string
		run  func() error
	}{
		{"copy", nil, func() error { return byHand(false, false) }},
		{"copy+hash", nil, func() error { return byHand(true, false) }},
		{"copy+sync", nil, func() error { return byHand(false, true) }},
		{"copy+hash+sync", nil, func() error { return byHand(true, true) }},
		{"WriteTo", []string{"copy"}, write},
		{"DownloadFile-SkipHash", []string{"copy", "copy+sync"}, func() error { return toFile(updater.FileOptions{SkipHash: true}) }},
		{"DownloadFile", []string{"copy+hash", "copy+hash+sync"}, func() error { return toFile(updater.FileOptions{}) }},
	}
	ratios := map[string][]float64{}
	for b.Loop() {
		took := map[string]float64{}
		for _, way := range ways {
			os.Remove(path)
			began := time.Now()
			if err := way.run(); err != nil {
				b.Fatal(err)
			}
			took[way.name] = time.Since(began).Seconds()
		}
		for _, way := range ways {
			for _, base := range way.base {
				name := way.name + "/" + base
				ratios[name] = append(ratios[name], took[base]/took[way.name])
			}
		}
		b.Log(took)
	}
	for name, all := range ratios {
		slices.Sort(all)
		b.ReportMetric(all[len(all)/2], "x-"+name)
	}
}
