package updater_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"testing"

	"github.com/carddata/carddata-go/updater"
	"github.com/carddata/carddata-go/updater/updatertest"
)

// digestOf is a header with the Repr-Digest of content.
func digestOf(content []byte) http.Header {
	sum := sha256.Sum256(content)
	return http.Header{"Repr-Digest": {fmt.Sprintf("md5=:AAAA:, sha-256=:%s:", base64.StdEncoding.EncodeToString(sum[:]))}}
}

// TestDigest: content that does not match the service's digest fails. A digest also proves
// content whole that has neither length nor chunks, and finds a mixture of two contents that
// have the same validator.
func TestDigest(t *testing.T) {
	content := sample(100_000)
	other := slices.Clone(content)
	other[70_000]++
	right, wrong, malformed := digestOf(content), digestOf(other), http.Header{"Repr-Digest": {"sha-256=:AAAA:, sha-256=x, xsha-256=:, =, :"}}
	inALineOfItsOwn := http.Header{"Repr-Digest": {"md5=:AAAA:", wrong.Get("Repr-Digest")}}
	unframedRight := maps.Clone(right)
	maps.Copy(unframedRight, unframed.Header)
	type fault = updatertest.Fault
	for _, test := range []struct {
		name     string
		faults   []fault
		is       error // of a stream
		requests int   // of a stream
		file     error
	}{
		{"right", []fault{{Header: right}}, nil, 1, nil},
		{"malformed", []fault{{Header: malformed}}, nil, 1, nil},
		{"wrong", []fault{{Header: wrong}}, updater.ErrDigestMismatch, 1, nil},
		{"wrong, in a line of its own", []fault{{Header: inALineOfItsOwn}}, updater.ErrDigestMismatch, 1, nil},
		{"always wrong", slices.Repeat([]fault{{Header: wrong}}, 4), updater.ErrDigestMismatch, 1, updater.ErrDigestMismatch},
		{"resumed", []fault{{Truncate: 60_000, Header: right}, {Header: right}}, nil, 2, nil},
		{"resumed without it", []fault{{Truncate: 60_000, Header: right}, {}}, nil, 2, nil},
		{"resumed with another content", []fault{{Truncate: 60_000, Header: wrong}, {}}, updater.ErrDigestMismatch, 2, nil},
		{"resumed, and another", []fault{{Truncate: 60_000, Header: right}, {Header: wrong}}, updater.ErrChanged, 2, nil},
		{"without an end", []fault{{Header: unframedRight}}, nil, 1, nil},
		{"without an end, and cut off", []fault{{Truncate: 60_000, Header: unframedRight}}, updater.ErrDigestMismatch, 1, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			fake := fakeJob(t, updatertest.Job{Content: bytes.NewReader(content)}, test.faults...)
			download := open(t, t.Context(), fake.Client(updater.WithRetryWait(0, 0)))
			got, err := io.ReadAll(download)
			if !errors.Is(err, test.is) || err == nil && !bytes.Equal(got, content) || len(fake.Requests()) != test.requests || !download.Verified {
				t.Errorf("a stream: %d bytes, %v, %d requests", len(got), err, len(fake.Requests()))
			}

			fake = fakeJob(t, updatertest.Job{Content: bytes.NewReader(content)}, test.faults...)
			path := target(t)
			file, err := fake.Client(updater.WithRetryWait(0, 0)).DownloadFile(t.Context(), "7", path, updater.FileOptions{})
			if !errors.Is(err, test.file) || err == nil && (!file.Verified || file.SHA256 != hashOf(content)) {
				t.Errorf("a file: %+v, %v", show(file), err)
			}
			if err == nil {
				holds(t, path, content)
			}
			lists(t, path, "result.csv")
		})
	}
	t.Run("the part of an earlier call is of another content", func(t *testing.T) {
		job := updatertest.Job{Content: bytes.NewReader(content), ETag: new(`"v1"`)}
		fake, path := fakeJob(t, job, updatertest.Fault{Truncate: 80_000, Header: right}), target(t)
		if _, err := fake.Client(updater.WithMaxRetries(0)).DownloadFile(t.Context(), "7", path, updater.FileOptions{}); err == nil {
			t.Fatal("not interrupted")
		}
		job.Content = bytes.NewReader(bytes.ToUpper(content))
		fake.SetJob("7", job)
		file, err := fake.Client(updater.WithRetryWait(0, 0)).DownloadFile(t.Context(), "7", path, updater.FileOptions{})
		if err != nil || file.ResumedBytes != 0 {
			t.Errorf("%+v, %v", show(file), err)
		}
		holds(t, path, bytes.ToUpper(content))
	})
}
