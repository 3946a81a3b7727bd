// Sandbox serves a stand-in for the Card Data Service, for programs in any
// language.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"time"

	"github.com/carddata/carddata-go/examples/tools/internal/cli"
	"github.com/carddata/carddata-go/examples/tools/sandbox/console"
	"github.com/carddata/carddata-go/internal/sandbox"
)

const usage = `usage: sandbox [-addr HOST:PORT] [-remote]

Serves BIN lookup, refund ingestion and account updater download with invented
data until Ctrl-C or SIGTERM, and prints the settings under which the other
examples find it. At the same address there is a page for the browser that shows
what arrives and switches faults on, and an API that does the same for programs.
/openapi.json describes the service. Any credential is accepted, and nothing is
written to disk. What the real service does not document, such as status codes
and the content of job 42, is the sandbox's own choice.

  -addr HOST:PORT  a loopback address to serve on, 127.0.0.1:8080 by default;
                   port 0 picks a free one
  -remote          accept any other address too. Every machine that reaches it
                   can see what arrives, and switch faults on

Exit code: 0 ended by a signal; 1 the address cannot be used; 2 usage.
`

func main() {
	os.Exit(run(cli.Signals(), os.Args[1:], os.Stdout, os.Stderr))
}

type config struct {
	addr   string
	remote bool
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var c config
	flags := flag.NewFlagSet("sandbox", flag.ContinueOnError)
	flags.StringVar(&c.addr, "addr", "127.0.0.1:8080", "")
	flags.BoolVar(&c.remote, "remote", false, "")
	if code, ok := cli.Parse(flags, usage, args, stdout, stderr); !ok {
		return code
	}
	if err := c.serve(ctx, stdout, stderr); err != nil {
		return cli.Fail(ctx, stderr, err)
	}
	return 0
}

func (c config) serve(ctx context.Context, stdout, stderr io.Writer) error {
	listener, err := c.listen()
	if err != nil {
		return err
	}
	server := http.Server{
		Handler:           console.New(c.remote),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	defer server.Close()
	// Print the settings first, so that they are there when the sandbox responds.
	if err := announce(listener.Addr().(*net.TCPAddr), stdout, stderr); err != nil {
		listener.Close()
		return err
	}
	go server.Serve(listener)
	<-ctx.Done()
	fmt.Fprintln(stderr, "interrupted")
	return nil
}

func (c config) listen() (net.Listener, error) {
	if !c.remote {
		return sandbox.ListenLoopback(c.addr)
	}
	listener, err := net.Listen("tcp", c.addr)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	return listener, nil
}

// announce prints settings that work without a change: nobody can connect to 0.0.0.0, and
// the library has to be told to use http to another machine.
func announce(addr *net.TCPAddr, stdout, stderr io.Writer) error {
	ip, _ := netip.AddrFromSlice(addr.IP)
	ip = ip.Unmap()
	if ip.IsUnspecified() {
		ip = netip.AddrFrom4([4]byte{127, 0, 0, 1})
	}
	url := "http://" + netip.AddrPortFrom(ip, uint16(addr.Port)).String()
	_, err := fmt.Fprintf(stdout, `export CARDDATA_BIN_URL=%[1]s CARDDATA_API_KEY=sandbox
export CARDDATA_REFUND_URL=%[1]s CARDDATA_ACCOUNT_ID=sandbox
export CARDDATA_UPDATER_URL=%[1]s CARDDATA_ACCESS_TOKEN=sandbox CARDDATA_MERCHANT_ID=sandbox
`, url)
	if err == nil && !ip.IsLoopback() {
		_, err = fmt.Fprintf(stdout, "export %s=1\n", cli.InsecureHTTP)
	}
	fmt.Fprintf(stderr, "sandbox %s until Ctrl-C, with a page for the browser\n", url)
	return err
}
