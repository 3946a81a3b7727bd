package main

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/examples/internal/program"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/updater"
)

var (
	line     = regexp.MustCompile(`^export( [A-Z_]+=[^ ]+)+\n$`)
	variable = regexp.MustCompile(`([A-Z_]+)=([^ \n]+)`)
)

// TestBinary uses all three areas with the settings that the program prints.
func TestBinary(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be sent Ctrl-C on windows")
	}
	cmd := program.Command(t, nil, program.Build(t), "-addr", "127.0.0.1:0")
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	cmd.Stdout = writer
	wait := program.Start(t, cmd)
	writer.Close()
	output := bufio.NewReader(reader)
	env := make(program.Variables)
	for range 3 {
		text, err := output.ReadString('\n')
		if err != nil || !line.MatchString(text) {
			t.Fatalf("%q, %v; %+v", text, err, wait())
		}
		for _, found := range variable.FindAllStringSubmatch(text, -1) {
			env[found[1]] = found[2]
		}
	}

	lookup, err := bins.NewClient(env["CARDDATA_BIN_URL"], bins.StaticToken(env["CARDDATA_API_KEY"]))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lookup.Lookup(t.Context(), &bins.LookupRequest{Cards: bins.Cards("411111")}); err != nil {
		t.Error(err)
	}
	refund, err := refunds.NewClient(env["CARDDATA_REFUND_URL"])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := refund.Submit(t.Context(), env["CARDDATA_ACCOUNT_ID"], &refunds.Refund{RefundID: "a"}); err != nil {
		t.Error(err)
	}
	result, err := updater.NewClient(env["CARDDATA_UPDATER_URL"], env["CARDDATA_MERCHANT_ID"], updater.StaticToken(env["CARDDATA_ACCESS_TOKEN"]))
	if err != nil {
		t.Fatal(err)
	}
	if download, err := result.Download(t.Context(), "42"); err != nil {
		t.Error(err)
	} else {
		download.Close()
	}

	resp, err := http.Get(env["CARDDATA_BIN_URL"])
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if contentType := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || !strings.HasPrefix(contentType, "text/html") {
		t.Errorf("the page: %d, %s", resp.StatusCode, contentType)
	}

	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	got := wait()
	want := "sandbox " + env["CARDDATA_BIN_URL"] + " until Ctrl-C, with a page for the browser\ninterrupted\n"
	if rest, _ := output.ReadString(0); got.Code != 0 || got.Stderr != want || rest != "" {
		t.Errorf("%+v; more output: %q", got, rest)
	}
}

func TestExitCodes(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, test := range []struct {
		args   []string
		code   int
		stderr string
	}{
		{[]string{"-h"}, 0, ""},
		{[]string{"-adr", "x"}, 2, "sandbox: flag provided but not defined: -adr"},
		{[]string{"127.0.0.1:0"}, 2, "sandbox: no arguments besides flags"},
		{[]string{"-addr", "0.0.0.0:0"}, 1, "sandbox: "},
		{[]string{"-addr", "nonsense"}, 1, "sandbox: "},
		{[]string{"-remote", "-addr", "nonsense"}, 1, "sandbox: "},
		{[]string{"-addr", taken.Addr().String()}, 1, "sandbox: "},
	} {
		var stdout, stderr bytes.Buffer
		code := run(t.Context(), test.args, &stdout, &stderr)
		if code != test.code || !strings.HasPrefix(stderr.String(), test.stderr) || strings.Count(stderr.String(), "\n") > 1 {
			t.Errorf("%q: exit code %d, error output:\n%s", test.args, code, stderr.String())
		}
	}
}

// TestRemote shows that other addresses than loopback need the flag.
func TestRemote(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	var stdout, stderr bytes.Buffer
	if code := run(ctx, []string{"-remote", "-addr", "0.0.0.0:0"}, &stdout, &stderr); code != 0 {
		t.Errorf("exit code %d, error output:\n%s", code, stderr.String())
	}
}
