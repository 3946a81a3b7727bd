package updater_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"

	"github.com/carddata/carddata-go/updater"
	"github.com/carddata/carddata-go/updater/updatertest"
)

// A child is a download in a process of its own. It prints a line when it has all bytes, and
// its error at the end.
type child struct {
	URL, Path string
	Mount     bool // mount the path upon itself
}

// mountOnItself is nil where a child cannot have mounts of its own.
var mountOnItself func(path string) error

const childVariable = "CARDDATA_DOWNLOAD"

func TestMain(m *testing.M) {
	encoded, ok := os.LookupEnv(childVariable)
	if !ok {
		os.Exit(m.Run())
	}
	var job child
	if err := json.Unmarshal([]byte(encoded), &job); err != nil {
		panic(err)
	}
	if job.Mount {
		if err := mountOnItself(job.Path); err != nil {
			fmt.Println("cannot mount:", err)
			os.Exit(3)
		}
	}
	if err := job.run(); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func (job child) client() (*updater.Client, error) {
	return updater.NewClient(job.URL, "merchant-1", updater.StaticToken("token-1"))
}

// next is the download after the child's.
func (job child) next(t *testing.T) *updater.File {
	t.Helper()
	client, err := job.client()
	if err != nil {
		t.Fatal(err)
	}
	file, err := client.DownloadFile(t.Context(), "7", job.Path, updater.FileOptions{})
	if err != nil {
		t.Fatalf("the next call: %v", err)
	}
	return file
}

func (job child) run() error {
	client, err := job.client()
	if err != nil {
		return err
	}
	_, err = client.DownloadFile(context.Background(), "7", job.Path, updater.FileOptions{
		Progress: func(p updater.FileProgress) {
			if p.Bytes == p.Total {
				fmt.Println("complete")
			}
		},
	})
	return err
}

func (job child) command(t *testing.T) *exec.Cmd {
	t.Helper()
	if runtime.GOOS == "js" {
		t.Skip("no processes here")
	}
	encoded, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+string(encoded))
	cmd.Stderr = os.Stderr
	return cmd
}

// counted is content that calls reached once, when left bytes were read.
type counted struct {
	*io.SectionReader
	mu      sync.Mutex
	left    int64
	reached func()
}

func (c *counted) ReadAt(p []byte, at int64) (int, error) {
	n, err := c.SectionReader.ReadAt(p, at)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left > 0 && c.left <= int64(n) {
		c.reached()
	}
	c.left -= int64(n)
	return n, err
}

// TestKilled kills downloads at any moment. The path has the old content or the whole new
// one, and the next call continues the part.
func TestKilled(t *testing.T) {
	const size = 12 << 20
	content := sample(size)
	continued := 0
	for i := range 24 {
		job := child{Path: target(t)}
		at := rand.Int64N(size)
		if i >= 20 {
			at = 0 // when all bytes are there, but not yet synced
		}
		var cmd *exec.Cmd
		started := make(chan struct{})
		source := &counted{SectionReader: io.NewSectionReader(bytes.NewReader(content), 0, size), left: at, reached: func() {
			<-started
			cmd.Process.Kill()
		}}
		fake := fakeJob(t, updatertest.JobContent{Content: source, ETag: new(`"v1"`)})
		job.URL = fake.URL()
		cmd = job.command(t)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		close(started)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if at == 0 && lines.Text() == "complete" {
				cmd.Process.Kill()
			}
		}
		cmd.Wait()

		got, err := os.ReadFile(job.Path)
		if err != nil || string(got) != "old" && !bytes.Equal(got, content) {
			t.Fatalf("killed at byte %d: the path holds %d bytes, %v", at, len(got), err)
		}
		info, err := os.Stat(partialOf(job.Path))
		_, unnoted := os.Stat(partialOf(job.Path) + ".json") // absent when the part is about to get its path
		left := err == nil && info.Size() > 1 && unnoted == nil
		file := job.next(t)
		holds(t, job.Path, content)
		if file.SHA256 != hashOf(content) || left != (file.ResumedBytes > 0) {
			t.Errorf("killed at byte %d: %d bytes left, %d continued", at, info.Size(), file.ResumedBytes)
		}
		if file.ResumedBytes > 0 {
			continued++
		}
		lists(t, job.Path, "result.csv")
	}
	t.Logf("%d of 24 downloads were continued", continued)
	if continued < 8 {
		t.Errorf("only %d downloads were continued", continued)
	}
}
