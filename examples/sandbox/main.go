// Sandbox serves a stand-in for the Card Data Service, for programs in any
// language.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/carddata/carddata-go/examples/internal/target"
	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/internal/sandbox/console"
)

const usage = `usage: sandbox [-addr HOST:PORT] [-remote] [-allow-host NAME] [-like FILE]

Serves BIN lookup, refund ingestion and account updater download with invented
data until Ctrl-C or SIGTERM, and prints the settings under which the other
examples find it. At the same address there is a page for the browser that shows
what arrives and switches faults on, and an API that scripts everything:
/sandbox/openapi.json describes it, and /openapi.json the service. Any credential
is accepted, and nothing is written to disk. What the real service does not document, such
as status codes and the content of job 42, is the sandbox's own choice.

  -addr HOST:PORT   a loopback address to serve on, 127.0.0.1:8080 by default;
                    port 0 picks a free one
  -remote           accept any other address too: whoever reaches it can see
                    what arrives, and switch faults on
  -allow-host NAME  serve page and API under this name too, such as that of a
                    container; repeat it for several. The printed settings use
                    the first
  -like FILE        behave like the service in this profile, which examples/probe
                    writes

Exit code: 0 ended by a signal; 1 the address cannot be used; 2 usage.
`

func main() {
	os.Exit(run(target.Signals(), os.Args[1:], os.Stdout, os.Stderr))
}

type config struct {
	addr    string
	options console.Options
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	c, code, ok := parse(args, stdout, stderr)
	if !ok {
		return code
	}
	if err := c.serve(ctx, stdout, stderr); err != nil {
		return target.Fail(ctx, stderr, err)
	}
	return 0
}

func parse(args []string, stdout, stderr io.Writer) (c config, code int, ok bool) {
	flags := flag.NewFlagSet("sandbox", flag.ContinueOnError)
	flags.StringVar(&c.addr, "addr", "127.0.0.1:8080", "")
	flags.BoolVar(&c.options.Remote, "remote", false, "")
	flags.Func("allow-host", "", func(name string) error {
		if name == "" || strings.ContainsAny(name, "/:@ ") {
			return errors.New("a name without scheme and port")
		}
		c.options.Hosts = append(c.options.Hosts, name)
		return nil
	})
	flags.Func("like", "", func(path string) error {
		text, err := os.ReadFile(path)
		if err == nil {
			c.options.Profile, err = sandbox.ParseProfile(text)
		}
		return err
	})
	if code, ok := target.Parse(flags, usage, args, stdout, stderr); !ok {
		return c, code, false
	}
	if flags.NArg() > 0 {
		return c, target.Fail(context.Background(), stderr, target.Usage("sandbox: no arguments besides flags (-h helps)")), false
	}
	return c, 0, true
}

const (
	// More than any program in a test has; each may hold the start of a body.
	maxConnections = 1000
	// How long requests in progress may take to end with the program.
	grace = 3 * time.Second
)

func (c config) serve(ctx context.Context, stdout, stderr io.Writer) error {
	listener, err := c.listen()
	if err != nil {
		return err
	}
	site := console.New(c.options)
	server := http.Server{
		Handler:           site,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       cmp.Or(site.IdleTimeout(), 2*time.Minute),
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	defer server.Close()
	// First, so that whoever gets a response finds the settings printed.
	if err := c.announce(listener.Addr().(*net.TCPAddr), stdout, stderr); err != nil {
		listener.Close()
		return err
	}
	go server.Serve(sandbox.LimitListener(listener, maxConnections))
	<-ctx.Done()
	site.Close()
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	server.Shutdown(ending)
	fmt.Fprintln(stderr, "interrupted")
	return nil
}

func (c config) listen() (net.Listener, error) {
	if !c.options.Remote {
		return sandbox.ListenLoopback(c.addr)
	}
	listener, err := net.Listen("tcp", c.addr)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	return listener, nil
}

// announce prints settings that work as they stand: an address of all interfaces
// is no address to connect to, and http beyond this machine has to be allowed.
func (c config) announce(addr *net.TCPAddr, stdout, stderr io.Writer) error {
	port := strconv.Itoa(addr.Port)
	ip, _ := netip.AddrFromSlice(addr.IP)
	ip = ip.Unmap()
	host, others := ip.String(), []string(nil)
	if ip.IsUnspecified() {
		host, others = "127.0.0.1", machineAddresses()
	}
	local := ip.IsLoopback() || ip.IsUnspecified()
	if len(c.options.Hosts) > 0 {
		others = append([]string{host}, others...)
		host, local = c.options.Hosts[0], c.options.Hosts[0] == "localhost"
	}
	url := func(host string) string { return "http://" + net.JoinHostPort(host, port) }
	_, err := fmt.Fprintf(stdout, `export CARDDATA_BIN_URL=%[1]s CARDDATA_API_KEY=sandbox
export CARDDATA_REFUND_URL=%[1]s CARDDATA_ACCOUNT_ID=sandbox
export CARDDATA_UPDATER_URL=%[1]s CARDDATA_ACCESS_TOKEN=sandbox CARDDATA_MERCHANT_ID=sandbox
`, url(host))
	if err == nil && !local {
		_, err = fmt.Fprintf(stdout, "export %s=1\n", target.InsecureHTTP)
	}
	fmt.Fprintf(stderr, "sandbox %s until Ctrl-C, with a page for the browser\n", url(host))
	for _, other := range others {
		fmt.Fprintf(stderr, "also at %s\n", url(other))
	}
	return err
}

// machineAddresses are those under which other machines may reach this one.
func machineAddresses() []string {
	all, _ := net.InterfaceAddrs()
	var found []string
	for _, addr := range all {
		if network, ok := addr.(*net.IPNet); ok && network.IP.IsGlobalUnicast() {
			found = append(found, network.IP.String())
		}
	}
	return found
}
