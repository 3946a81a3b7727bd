package main

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/examples/internal/program"
	"github.com/carddata/carddata-go/internal/sandbox/console"
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
		{[]string{"-allow-host", "http://sandbox"}, 2, "sandbox: "},
		{[]string{"-like", "nowhere"}, 2, "sandbox: "},
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

// TestAddressesCanBeUsed takes the printed settings as a program in a container,
// or on the same machine, would.
func TestAddressesCanBeUsed(t *testing.T) {
	for _, test := range []struct {
		addr     string
		hosts    []string
		url      string
		insecure bool
	}{
		{"127.0.0.1:8080", nil, "http://127.0.0.1:8080", false},
		{"[::1]:8080", nil, "http://[::1]:8080", false},
		{"[::]:8080", nil, "http://127.0.0.1:8080", false},
		{"0.0.0.0:8080", nil, "http://127.0.0.1:8080", false},
		{"192.0.2.7:8080", nil, "http://192.0.2.7:8080", true},
		{"[2001:db8::7]:8080", nil, "http://[2001:db8::7]:8080", true},
		{"[::]:8080", []string{"sandbox", "gateway"}, "http://sandbox:8080", true},
		{"127.0.0.1:8080", []string{"localhost"}, "http://localhost:8080", false},
	} {
		var stdout, stderr bytes.Buffer
		c := config{options: console.Options{Hosts: test.hosts}}
		if err := c.announce(net.TCPAddrFromAddrPort(netip.MustParseAddrPort(test.addr)), &stdout, &stderr); err != nil {
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

// started runs the program until the test ends, and returns its address.
func started(t *testing.T, args ...string) (url string, cmd *exec.Cmd, wait func() program.Result) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be sent a signal on windows")
	}
	cmd = program.Command(t, nil, program.Build(t), append([]string{"-addr", "127.0.0.1:0"}, args...)...)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reader.Close() })
	cmd.Stdout = writer
	wait = program.Start(t, cmd)
	writer.Close()
	text, err := bufio.NewReader(reader).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return variable.FindStringSubmatch(text)[2], cmd, wait
}

// TestSIGTERM ends the program while a page listens and a response is late.
func TestSIGTERM(t *testing.T) {
	profile := filepath.Join(t.TempDir(), "profile.json")
	if err := os.WriteFile(profile, []byte(`{"version": 1, "points": {"download.missing": ["410 gone"]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	url, cmd, wait := started(t, "-like", profile)
	client := http.Client{Transport: &http.Transport{}}
	request := func(method, path, body string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer k"}, "X-Merchant-Id": {"m"}}
		return client.Do(r)
	}
	resp, err := request("GET", "/updater/inquiries/jobs/7/download", "")
	if err != nil || resp.StatusCode != http.StatusGone {
		t.Fatal(resp, err)
	}
	resp.Body.Close()
	events, err := request("GET", "/sandbox/events", "")
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()
	if resp, err = request("POST", "/sandbox/faults", `{"fault":"slow","delay":0.3,"next":1}`); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatal(resp, err)
	}
	resp.Body.Close()
	late := make(chan error, 1)
	go func() {
		resp, err := request("POST", "/v1/a/refunds", `{}`)
		if err == nil {
			resp.Body.Close()
		}
		late <- err
	}()
	stream := bufio.NewReader(events.Body)
	for text := ""; !strings.Contains(text, `"state":"open"`); {
		if text, err = stream.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-late; err != nil {
		t.Errorf("the late response: %v", err)
	}
	client.CloseIdleConnections()
	if got := wait(); got.Code != 0 || !strings.HasSuffix(got.Stderr, "interrupted\n") {
		t.Errorf("%+v", got)
	}
}

func TestAllowHost(t *testing.T) {
	url, cmd, wait := started(t, "-remote", "-allow-host", "sandbox")
	defer wait()
	defer cmd.Process.Signal(os.Interrupt)
	address := regexp.MustCompile(`[0-9]+$`).FindString(url)
	for host, want := range map[string]int{"sandbox:8080": 200, "SANDBOX": 200, "other:8080": 403} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:"+address+"/sandbox/state", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = host
		resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want || url != "http://sandbox:"+address {
			t.Errorf("%s at %s: %d", host, url, resp.StatusCode)
		}
	}
}

// TestActionsSnippet runs what the README shows for GitHub Actions, as its runner
// would.
func TestActionsSnippet(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, script, found := strings.Cut(string(readme), "    run: |\n")
	script, _, _ = strings.Cut(script, "\n  - run:")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil || !found {
		t.Fatal(err, found)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	dir := t.TempDir()
	if err := os.Rename(program.Build(t), filepath.Join(dir, "sandbox")); err != nil {
		t.Fatal(err)
	}
	for _, tool := range []string{"bash", "curl", "timeout"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-e", "-c", strings.ReplaceAll(script, "8080", port)+"\nkill %1; wait")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"), "GITHUB_ENV="+filepath.Join(dir, "env"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	set, err := os.ReadFile(filepath.Join(dir, "env"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"CARDDATA_BIN_URL=http://127.0.0.1:" + port, "CARDDATA_MERCHANT_ID=sandbox"} {
		if !strings.Contains("\n"+string(set), "\n"+line+"\n") {
			t.Errorf("no %s in\n%s", line, set)
		}
	}
}
