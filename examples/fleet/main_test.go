package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/carddata/carddata-go/examples/fleet/internal/redistest"
	"github.com/carddata/carddata-go/examples/internal/program"
)

// binary is the program, as its users build it.
var binary string

func TestMain(m *testing.M) {
	os.Unsetenv("REDIS_URL")
	program.Main(m, &binary)
}

// TestQuick runs the whole program, in a Redis that is not its own.
func TestQuick(t *testing.T) {
	server := redistest.Start(t)
	out := t.TempDir()
	got := program.Run(t, program.Command(t, program.Variables{"REDIS_URL": server.URL}, binary, "-quick", "-out", out))
	if got.Code != 0 || !strings.HasPrefix(got.Stderr, "redis as REDIS_URL says\nsandbox http://127.0.0.1:") ||
		!regexp.MustCompile(`(?m)^shared through Redis +\d+ +\d+ +\d+ % +\d\.\d\d s +\d\.\d\d s +0$`).MatchString(got.Stdout) {
		t.Errorf("%+v", got)
	}
	text, err := os.ReadFile(filepath.Join(out, "fleet.json"))
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(text, &r); err != nil || len(r.Results) != len(strategies) {
		t.Fatalf("%v\n%s", err, text)
	}
	each, part, shared := r.Results[0], r.Results[1], r.Results[2]
	if part.Throughput > 80 || part.Refused > 0 || shared.Throughput <= part.Throughput || each.Requests == 0 || shared.WaitP99 <= 0 {
		t.Errorf("%s", text)
	}
	picture, err := os.Open(filepath.Join(out, "fleet.svg"))
	if err != nil {
		t.Fatal(err)
	}
	defer picture.Close()
	for decoder := xml.NewDecoder(picture); err == nil; _, err = decoder.Token() {
	}
	if !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if keys := redistest.Connect(t, server).Keys(t.Context(), "*").Val(); len(keys) > 0 {
		t.Errorf("left in Redis: %v", keys)
	}
}

// TestInterrupt ends the program in the middle, with a Redis of its own.
func TestInterrupt(t *testing.T) {
	redistest.Start(t).Close() // is it installed?
	temp := t.TempDir()
	stderr, w := io.Pipe()
	cmd := program.Command(t, program.Variables{"TMPDIR": temp, "REDIS_URL": "redis://127.0.0.1:1"}, binary)
	cmd.Stderr = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 4096)
	n := 0
	for !strings.Contains(string(text[:n]), "4 replicas") {
		m, err := stderr.Read(text[n:])
		if n += m; err != nil {
			t.Fatal(err)
		}
	}
	go io.Copy(io.Discard, stderr)
	time.Sleep(200 * time.Millisecond)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit code %d\n%s", code, text[:n])
	}
	if !regexp.MustCompile(`(?m)^redis unix://.* \(none responds at REDIS_URL\)$`).Match(text[:n]) {
		t.Errorf("error output:\n%s", text[:n])
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestWrongPassword is told, and no other Redis is started in its place.
func TestWrongPassword(t *testing.T) {
	server := redistest.Start(t)
	if err := redistest.Connect(t, server).ConfigSet(t.Context(), "requirepass", "right").Err(); err != nil {
		t.Fatal(err)
	}
	url := strings.Replace(server.URL, "unix://", "unix://:secret@", 1)
	got := program.Run(t, program.Command(t, program.Variables{"REDIS_URL": url}, binary, "-quick"))
	if got.Code != 2 || got.Stdout != "" || got.Stderr != "fleet: REDIS_URL: the Redis refuses: the password is missing or wrong (WRONGPASS)\n" {
		t.Errorf("%+v", got)
	}
	got.CheckMasked(t, "secret")
}

func TestUsage(t *testing.T) {
	for _, test := range []struct {
		vars   program.Variables
		args   []string
		code   int
		stdout string
		stderr string
	}{
		{nil, []string{"-h"}, 0, usage, ""},
		{nil, []string{"x"}, 2, "", "fleet: no arguments besides flags"},
		{nil, []string{"-slow"}, 2, "", "fleet: flag provided but not defined"},
		{program.Variables{"REDIS_URL": "http://:secret@host"}, nil, 2, "", "fleet: REDIS_URL: not a URL of a Redis"},
		{program.Variables{"PATH": ""}, nil, 2, "", "fleet: REDIS_URL is not set, and redis-server is not installed: apt-get install"},
	} {
		test.args = append(test.args, "-out", t.TempDir())
		got := program.Run(t, program.Command(t, test.vars, binary, test.args...))
		if got.Code != test.code || got.Stdout != test.stdout || !strings.HasPrefix(got.Stderr, test.stderr) {
			t.Errorf("%v %v: %+v", test.vars, test.args, got)
		}
		got.CheckMasked(t, "secret")
	}
}
