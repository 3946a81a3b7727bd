package secrets_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/carddata/carddata-go/internal/proof/testkit"
	"github.com/carddata/carddata-go/updater"
)

// TestCanariesOfFiles downloads planted answers to files, and looks for them, and
// for the path, in what the library prints and in the note that it leaves.
func TestCanariesOfFiles(t *testing.T) {
	ids := plantedIDs()
	var log bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	client := func(over http.RoundTripper) *updater.Client {
		c, err := updater.NewClient("https://service.test/"+planted("the base URL's path"), ids.Merchant, ids.Token,
			updater.WithHTTPClient(&http.Client{Transport: over}), updater.WithRetryWait(0, 0), updater.WithLogger(logger))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	dir := filepath.Join(t.TempDir(), planted("a file's path"))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, planted("a file's path"))

	answers := plantedAnswers()
	answers["a whole content"] = answering(200, planted("an answer's body"), "ETag", `"`+planted("an answer's body")+`"`)
	for name, over := range answers {
		file, err := client(over).DownloadFile(t.Context(), ids.Job, path, updater.FileOptions{AcceptUnverified: true})
		if err == nil {
			checkPrints(t, name, file)
		} else {
			checkError(t, name, err)
		}
	}
	for name, to := range map[string]string{
		"a directory": dir, "a missing directory": filepath.Join(dir, planted("a file's path"), "x"), "a broken path": path + "\x00", "a long name": path + strings.Repeat("n", 255),
	} {
		_, err := client(answers["a whole content"]).DownloadFile(t.Context(), ids.Job, to, updater.FileOptions{})
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		checkError(t, name, err)
	}

	mock := testkit.NewMock("GET", "https://service.test/"+planted("the base URL's path")+"/updater/inquiries/jobs/"+ids.Job+"/download",
		func(r *http.Request) (*http.Response, error) {
			resp, err := answering(200, planted("an answer's body"), "ETag", `"v1"`).RoundTrip(r)
			resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(planted("an answer's body")), iotest.ErrReader(leakyError{planted("the transport's error")})))
			resp.ContentLength = 1000
			return resp, err
		}, testkit.Answer(206, planted("an answer's body"), "ETag", planted("an error's code"), "Content-Range", planted("an error's code")))
	_, err := client(mock).DownloadFile(t.Context(), ids.Job, path, updater.FileOptions{})
	if !errors.Is(err, updater.ErrBadResponse) {
		t.Fatalf("%v", err)
	}
	checkError(t, "a broken content", err)
	note, err := os.ReadFile(filepath.Join(dir, "."+planted("a file's path")+".part.json"))
	if err != nil {
		t.Fatal(err)
	}
	for place, form := range secrets.in(string(note)) {
		t.Errorf("the note shows the canary of %s as %q", place, form)
	}
	for place, form := range secrets.in(log.String()) {
		t.Errorf("the log shows the canary of %s as %q", place, form)
	}
	if !strings.Contains(log.String(), "msg=reconnect") {
		t.Error("the log tells of no reconnect, and so the test looked at little")
	}
}
