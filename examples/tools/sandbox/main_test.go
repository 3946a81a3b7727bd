package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/updater"
)

var variable = regexp.MustCompile(`([A-Z_]+)=([^ \n]+)`)

// TestProgram uses all three areas with the settings that the program prints, and ends it
// while a page listens.
func TestProgram(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	defer end()
	reader, writer := io.Pipe()
	var stderr bytes.Buffer
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, []string{"-addr", "127.0.0.1:0"}, writer, &stderr) }()
	output := bufio.NewReader(reader)
	env := make(map[string]string)
	for range 3 {
		text, err := output.ReadString('\n')
		if err != nil || !strings.HasPrefix(text, "export ") {
			t.Fatalf("%q, %v", text, err)
		}
		for _, found := range variable.FindAllStringSubmatch(text, -1) {
			env[found[1]] = found[2]
		}
	}
	url := env["CARDDATA_BIN_URL"]

	lookups, err := bins.NewClient(url, bins.StaticToken(env["CARDDATA_API_KEY"]))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lookups.Lookup(t.Context(), &bins.LookupRequest{Cards: bins.Cards("411111")}); err != nil {
		t.Error(err)
	}
	downloads, err := updater.NewClient(env["CARDDATA_UPDATER_URL"], env["CARDDATA_MERCHANT_ID"], updater.StaticToken(env["CARDDATA_ACCESS_TOKEN"]))
	if err != nil {
		t.Fatal(err)
	}
	if download, err := downloads.Download(t.Context(), "42"); err != nil {
		t.Error(err)
	} else {
		download.Close()
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if contentType := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || !strings.HasPrefix(contentType, "text/html") {
		t.Errorf("the page: %d, %s", resp.StatusCode, contentType)
	}

	submissions, err := refunds.NewClient(env["CARDDATA_REFUND_URL"])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := submissions.Submit(t.Context(), env["CARDDATA_ACCOUNT_ID"], &refunds.Refund{RefundID: "a"}); err != nil {
		t.Error(err)
	}
	events, err := client.Get(url + "/sandbox/events")
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()
	end()
	code := <-ended
	if want := "sandbox " + url + " until Ctrl-C, with a page for the browser\ninterrupted\n"; code != 0 || stderr.String() != want {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
}

func TestExitCodes(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	for _, test := range []struct {
		ctx    context.Context
		args   []string
		code   int
		stderr string
	}{
		{t.Context(), []string{"-h"}, 0, ""},
		{t.Context(), []string{"-adr", "x"}, 2, "sandbox: flag provided but not defined: -adr"},
		{t.Context(), []string{"127.0.0.1:0"}, 2, "sandbox: no arguments besides flags"},
		{t.Context(), []string{"-addr", "nonsense"}, 1, "sandbox: "},
		{t.Context(), []string{"-remote", "-addr", "nonsense"}, 1, "sandbox: "},
		{t.Context(), []string{"-addr", taken.Addr().String()}, 1, "sandbox: "},
		{t.Context(), []string{"-addr", "0.0.0.0:0"}, 1, "sandbox: "},
		{interrupted, []string{"-remote", "-addr", "0.0.0.0:0"}, 0, "sandbox http://127.0.0.1:"},
	} {
		var stdout, stderr bytes.Buffer
		code := run(test.ctx, test.args, &stdout, &stderr)
		if code != test.code || !strings.HasPrefix(stderr.String(), test.stderr) {
			t.Errorf("%q: exit code %d, error output:\n%s", test.args, code, stderr.String())
		}
	}
}

// TestAddressesCanBeUsed takes the printed settings as a program would.
func TestAddressesCanBeUsed(t *testing.T) {
	for _, test := range []struct {
		addr, url string
		insecure  bool
	}{
		{"127.0.0.1:8080", "http://127.0.0.1:8080", false},
		{"[::1]:8080", "http://[::1]:8080", false},
		{"[::]:8080", "http://127.0.0.1:8080", false},
		{"192.0.2.7:8080", "http://192.0.2.7:8080", true},
	} {
		var stdout, stderr bytes.Buffer
		if err := announce(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(test.addr)), &stdout, &stderr); err != nil {
			t.Fatal(err)
		}
		if strings.Count(stdout.String(), "_URL="+test.url+" ") != 3 || !strings.HasPrefix(stderr.String(), "sandbox "+test.url+" until") ||
			strings.Contains(stdout.String(), "\nexport CARDDATA_INSECURE_HTTP=1\n") != test.insecure {
			t.Errorf("%s: %s%s", test.addr, stdout.String(), stderr.String())
		}
		var options []bins.Option
		if test.insecure {
			options = append(options, bins.WithInsecureHTTP())
		}
		if _, err := bins.NewClient(test.url, bins.StaticToken("k"), options...); err != nil {
			t.Errorf("%s: %v", test.addr, err)
		}
	}
}
