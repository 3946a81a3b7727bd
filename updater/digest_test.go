package updater_test

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/updater"
	"github.com/carddata/carddata-go/updater/updatertest"
)

func digestField(content []byte, algorithms ...string) string {
	var fields []string
	for _, algorithm := range algorithms {
		sum256, sum512 := sha256.Sum256(content), sha512.Sum512(content)
		sum := map[string][]byte{"sha-256": sum256[:], "sha-512": sum512[:], "md5": []byte("unknown")}[algorithm]
		fields = append(fields, fmt.Sprintf("%s=:%s:", algorithm, base64.StdEncoding.EncodeToString(sum)))
	}
	return strings.Join(fields, ", ")
}

// TestDigest: content that does not match the service's digest fails. A digest also proves
// content whole that has neither length nor chunks.
func TestDigest(t *testing.T) {
	content := sample(100_000)
	other := slices.Clone(content)
	other[70_000]++
	right, wrong := digestField(content, "sha-256"), digestField(other, "sha-256")
	cut := func(repr, whole string) updatertest.Fault {
		return updatertest.Fault{Truncate: 60_000, Header: header(repr, whole)}
	}
	sends := func(repr, whole string) updatertest.Fault {
		return updatertest.Fault{Header: header(repr, whole)}
	}
	unframed := func(repr string, truncate int) updatertest.Fault {
		return updatertest.Fault{Unframed: true, Truncate: truncate, Header: header(repr, "")}
	}
	for _, test := range []struct {
		name     string
		faults   []updatertest.Fault
		is       error // of a stream
		requests int   // of a stream
		file     error
	}{
		{"of sha-256", []updatertest.Fault{sends(right, "")}, nil, 1, nil},
		{"of sha-512", []updatertest.Fault{sends(digestField(content, "sha-512"), "")}, nil, 1, nil},
		{"of the response", []updatertest.Fault{sends("", right)}, nil, 1, nil},
		{"of an unknown algorithm", []updatertest.Fault{sends(digestField(other, "md5"), "")}, nil, 1, nil},
		{"malformed", []updatertest.Fault{sends("sha-256=:AAAA:, sha-512=:@:, sha-256, =, :", "sha-256=x")}, nil, 1, nil},
		{"wrong sha-512", []updatertest.Fault{sends(digestField(content, "sha-256")+", "+digestField(other, "sha-512"), "")}, updater.ErrDigestMismatch, 1, nil},
		{"wrong for the response", []updatertest.Fault{sends(right, wrong)}, updater.ErrDigestMismatch, 1, nil},
		{"always wrong", slices.Repeat([]updatertest.Fault{sends(wrong, "")}, 4), updater.ErrDigestMismatch, 1, updater.ErrDigestMismatch},
		{"resumed", []updatertest.Fault{cut(right, ""), sends(right, "")}, nil, 2, nil},
		{"resumed without it", []updatertest.Fault{cut(right, ""), sends("", "")}, nil, 2, nil},
		{"resumed, and wrong for the rest alone", []updatertest.Fault{cut("", ""), sends(wrong, ""), sends(right, "")}, nil, 2, nil},
		{"resumed, and another", []updatertest.Fault{cut(right, ""), sends(wrong, "")}, updater.ErrChanged, 2, nil},
		{"of a part", []updatertest.Fault{cut("", right), sends("", wrong)}, nil, 2, nil},
		{"of a response that broke", []updatertest.Fault{cut("", wrong)}, nil, 2, nil},
		{"without an end", []updatertest.Fault{unframed(right, 0)}, nil, 1, nil},
		{"without an end, and cut off", []updatertest.Fault{unframed(right, 60_000)}, updater.ErrDigestMismatch, 1, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			fake := fakeJob(t, updatertest.JobContent{Content: bytes.NewReader(content), ETag: new(`"v1"`)}, test.faults...)
			download := open(t, t.Context(), fake.Client(updater.WithRetryWait(0, 0)))
			got, err := io.ReadAll(download)
			if !errors.Is(err, test.is) || err == nil && !bytes.Equal(got, content) || len(fake.Requests()) != test.requests || !download.Verified {
				t.Errorf("a stream: %d bytes, %v, %d requests", len(got), err, len(fake.Requests()))
			}
			if n, again := download.Read(make([]byte, 1)); n != 0 || (again != io.EOF) != (err != nil) {
				t.Errorf("reading on: %d, %v", n, again)
			}

			fake = fakeJob(t, updatertest.JobContent{Content: bytes.NewReader(content), ETag: new(`"v1"`)}, test.faults...)
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
}

func header(repr, content string) http.Header {
	h := http.Header{}
	if repr != "" {
		h.Set("Repr-Digest", repr)
	}
	if content != "" {
		h.Set("Content-Digest", content)
	}
	return h
}

// TestDigestFindsAMixture: if two contents have the same validator, a digest finds that the
// part of an earlier call was of the other one.
func TestDigestFindsAMixture(t *testing.T) {
	content := sample(100_000)
	other := bytes.ToUpper(content)
	tag := `"v1"`
	fake := fakeJob(t, updatertest.JobContent{Content: bytes.NewReader(content), ETag: &tag})
	path := target(t)
	fake.Script(updatertest.Fault{Truncate: 50_000, Header: header(digestField(content, "sha-256"), "")})
	if _, err := fake.Client(updater.WithMaxRetries(0)).DownloadFile(t.Context(), "7", path, updater.FileOptions{}); err == nil {
		t.Fatal("not interrupted")
	}
	fake.SetJobContent("7", updatertest.JobContent{Content: bytes.NewReader(other), ETag: &tag})
	file, err := fake.Client(updater.WithRetryWait(0, 0)).DownloadFile(t.Context(), "7", path, updater.FileOptions{})
	if err != nil || file.ResumedBytes != 0 || file.SHA256 != hashOf(other) {
		t.Errorf("%+v, %v", show(file), err)
	}
	holds(t, path, other)
}
