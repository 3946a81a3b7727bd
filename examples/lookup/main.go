// Lookup prints what is known of cards.
package main

import (
	"context"
	"flag"
	"io"
	"os"
	"strings"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/examples/internal/target"
)

const usage = `usage: lookup [-enhanced] [-json] [CARD ...]

Looks up 1 to 50 cards (BINs, card numbers or tokens) in one request and prints
what the service knows of them, with card numbers masked. Without arguments the
cards are read from standard input, one per line, unless it is a terminal.

  -enhanced  asks for the enhanced lookup
  -json      prints the response as JSON

CARDDATA_BIN_URL and CARDDATA_API_KEY name the service and the credential.
If neither is set, a sandbox with invented data takes its place.
CARDDATA_INSECURE_HTTP=1 allows http beyond this machine.

Exit code: 0 looked up, though cards may be unknown; 1 failed; 2 usage or
configuration; 130 interrupted.
`

var settings = target.Settings{URL: "CARDDATA_BIN_URL", Required: []string{"CARDDATA_API_KEY"}}

func main() {
	os.Exit(run(target.Signals(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.LookupEnv))
}

func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, env func(string) (string, bool)) int {
	flags := flag.NewFlagSet("lookup", flag.ContinueOnError)
	enhanced := flags.Bool("enhanced", false, "")
	asJSON := flags.Bool("json", false, "")
	if code, ok := target.Parse(flags, usage, args, stdout, stderr); !ok {
		return code
	}
	cards, err := readCards(ctx, flags.Args(), stdin)
	if err != nil {
		return target.Fail(ctx, stderr, err)
	}

	service, err := target.Open(stderr, env, settings)
	if err != nil {
		return target.Fail(ctx, stderr, err)
	}
	defer service.Close()
	client, err := bins.NewClient(service.URL, bins.StaticToken(service.Value("CARDDATA_API_KEY")), service.Options()...)
	if err != nil {
		return target.Fail(ctx, stderr, err)
	}

	req := &bins.LookupRequest{Cards: bins.Cards(cards...)}
	if *enhanced {
		req.Enhanced = enhanced // otherwise left out: the service's default is not documented
	}
	resp, err := client.Lookup(ctx, req)
	if err != nil {
		return target.Fail(ctx, stderr, err)
	}
	show := printTable
	if *asJSON {
		show = printJSON
	}
	if err := show(stdout, resp.Cards); err != nil {
		return target.Fail(ctx, stderr, err)
	}
	return 0
}

func readCards(ctx context.Context, args []string, stdin io.Reader) ([]string, error) {
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") {
			return nil, target.Usage("lookup: flags go before the cards (-h helps)")
		}
	}
	if len(args) > 0 {
		return args, nil
	}
	if target.IsTerminal(stdin) {
		return nil, target.Usage("lookup: no cards given, neither as arguments nor on standard input (-h helps)")
	}
	input, err := target.Read(ctx, stdin)
	var cards []string
	for line := range strings.Lines(string(input)) {
		if card := strings.TrimSpace(line); card != "" {
			cards = append(cards, card)
		}
	}
	return cards, err
}
