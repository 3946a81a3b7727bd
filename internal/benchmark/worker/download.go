package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/carddata/carddata-go/internal/benchmark/process"
	"github.com/carddata/carddata-go/updater"
)

// download downloads Size MiB into a file, Repeat times.
func download(job process.Job) (_ process.Sample, err error) {
	server, err := start(process.ServerOptions{TLS: job.TLS, Bytes: int64(job.Size) << 20})
	if err != nil {
		return nil, err
	}
	defer server.Close()
	defer forget()
	dir, err := os.MkdirTemp("", "download")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	fetch, err := newDownload(job.Contestant, server.URL, filepath.Join(dir, "result"))
	if err != nil {
		return nil, err
	}
	began := time.Now()
	for range job.Repeat {
		if err := fetch(); err != nil {
			return nil, err
		}
	}
	return process.Sample{"ns": float64(time.Since(began).Nanoseconds()) / float64(job.Repeat*job.Size)}, nil
}

// newDownload returns a contestant's way to fetch a content into a file, until it
// is on the disk.
func newDownload(contestant, url, path string) (func() error, error) {
	client, err := updater.NewClient(url, "merchant-1", updater.StaticToken(token))
	if err != nil {
		return nil, err
	}
	own := func(o updater.FileOptions) func() error {
		return func() error {
			_, err := client.DownloadFile(context.Background(), "job-1", path, o)
			return err
		}
	}
	byHand := func(also ...io.Writer) func() error {
		return func() error { return copyToFile(url+"/updater/inquiries/jobs/job-1/download", path, also) }
	}
	switch contestant {
	case process.Library:
		return own(updater.FileOptions{}), nil
	case process.Library + " without hash":
		return own(updater.FileOptions{SkipHash: true}), nil
	case "io.Copy":
		return byHand(), nil
	case "io.Copy teed into SHA-256":
		return byHand(sha256.New()), nil
	}
	return nil, fmt.Errorf("there is no download %q", contestant)
}

// copyToFile is a download as one writes it by hand.
func copyToFile(url, path string, also []io.Writer) error {
	req, err := http.NewRequest(http.MethodGet, url, nil)
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
	if len(also) > 0 {
		to = io.MultiWriter(append(also, file)...)
	}
	if _, err := io.Copy(to, resp.Body); err != nil {
		return err
	}
	return file.Sync()
}
