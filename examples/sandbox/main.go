// Sandbox serves a stand-in for the Card Data Service on this machine, for
// programs in any language.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/carddata/carddata-go/examples/internal/target"
	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/internal/sandbox/console"
)

const usage = `usage: sandbox [-addr HOST:PORT] [-remote]

Serves BIN lookup, refund ingestion and account updater download with invented
data until Ctrl-C, and prints the settings under which the other examples find
it. At the same address there is a page for the browser that shows what arrives
and switches faults on; examples/sandbox/README.md has its JSON API. Any
credential is accepted, and nothing is stored. What the real service does not
document, such as status codes and the content of job 42, is the sandbox's own
choice.

  -addr HOST:PORT  a loopback address to serve on, 127.0.0.1:8080 by default;
                   port 0 picks a free one
  -remote          accept any other address too: whoever reaches it can see
                   what arrives, and switch faults on

Exit code: 0 ended by Ctrl-C; 1 the address cannot be used; 2 usage.
`

func main() {
	os.Exit(run(target.Signals(), os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("sandbox", flag.ContinueOnError)
	addr := flags.String("addr", "127.0.0.1:8080", "")
	remote := flags.Bool("remote", false, "")
	if code, ok := target.Parse(flags, usage, args, stdout, stderr); !ok {
		return code
	}
	if flags.NArg() > 0 {
		return target.Fail(ctx, stderr, target.Usage("sandbox: no arguments besides flags (-h helps)"))
	}

	listener, err := listen(*addr, *remote)
	if err != nil {
		return target.Fail(ctx, stderr, err)
	}
	server := http.Server{
		Handler:           console.New(*remote),
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	defer server.Close()
	go server.Serve(listener)

	url := "http://" + listener.Addr().String()
	_, err = fmt.Fprintf(stdout, `export CARDDATA_BIN_URL=%s CARDDATA_API_KEY=sandbox
export CARDDATA_REFUND_URL=%s CARDDATA_ACCOUNT_ID=sandbox
export CARDDATA_UPDATER_URL=%s CARDDATA_ACCESS_TOKEN=sandbox CARDDATA_MERCHANT_ID=sandbox
`, url, url, url)
	if err != nil {
		return target.Fail(ctx, stderr, err)
	}
	fmt.Fprintf(stderr, "sandbox %s until Ctrl-C, with a page for the browser\n", url)
	<-ctx.Done()
	fmt.Fprintln(stderr, "interrupted")
	return 0
}

func listen(addr string, remote bool) (net.Listener, error) {
	if !remote {
		return sandbox.ListenLoopback(addr)
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	return listener, nil
}
