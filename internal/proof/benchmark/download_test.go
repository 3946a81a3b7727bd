package benchmark

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/carddata/carddata-go/updater"
)

// Download: 256 MiB over the loopback with TLS into a file, until they are on the disk.
func BenchmarkDownload(b *testing.B) {
	client, err := updater.NewClient(local.TLS, "merchant-1", updater.StaticToken(token))
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(b.TempDir(), "result")
	for _, c := range []struct {
		name  string
		fetch func(ctx context.Context) error
	}{
		{"carddata", func(ctx context.Context) error {
			_, err := client.DownloadFile(ctx, "job-1", path, updater.FileOptions{})
			return err
		}},
		{"net-http+sha256", func(ctx context.Context) error { return download(ctx, path, sha256.New()) }},
		{"net-http", func(ctx context.Context) error { return download(ctx, path, io.Discard) }},
	} {
		b.Run("client="+c.name, func(b *testing.B) {
			b.SetBytes(downloadSize)
			for b.Loop() {
				if err := c.fetch(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// download is a download as one writes it by hand.
func download(ctx context.Context, path string, also io.Writer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, local.TLS+"/updater/inquiries/jobs/job-1/download", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	var to io.Writer = file
	if also != io.Discard {
		to = io.MultiWriter(file, also)
	}
	if _, err := io.Copy(to, resp.Body); err != nil {
		return err
	}
	return file.Sync()
}
