// Command callpath lists the files whose functions one warm call enters, as the
// coverage counters of that call show. It has to be built with them; the package
// comment of internal/transport has the command.
package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"runtime/coverage"
	"slices"
	"strings"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/updater"
)

func main() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"cards":[{"bin":"400000","data":{"card":{"card_brand":"VISA","level2":true}}}]}`)
	}))
	defer server.Close()
	token := bins.StaticToken("token-1")
	lookups, err := bins.NewClient(server.URL, token)
	check(err)
	submits, err := refunds.NewClient(server.URL)
	check(err)
	downloads, err := updater.NewClient(server.URL, "merchant-1", token)
	check(err)
	ctx := context.Background()
	for _, call := range []struct {
		name string
		do   func() error
	}{
		{"Submit", func() error {
			_, err := submits.Submit(ctx, "account-1", &refunds.Refund{RefundID: "refund-1"})
			return err
		}},
		{"Lookup", func() error {
			_, err := lookups.Lookup(ctx, &bins.LookupRequest{Cards: bins.Cards("400000")})
			return err
		}},
		{"Download", func() error {
			d, err := downloads.Download(ctx, "job-1")
			if err != nil {
				return err
			}
			defer d.Close()
			_, err = io.Copy(io.Discard, d)
			return err
		}},
	} {
		check(call.do()) // warm
		check(coverage.ClearCounters())
		check(call.do())
		files := entered()
		fmt.Printf("%s: %d files\n  %s\n", call.name, len(files), strings.Join(files, "\n  "))
	}
}

// entered reads the counters: a block of a function that ran has a count.
func entered() (files []string) {
	dir, err := os.MkdirTemp("", "callpath")
	check(err)
	defer os.RemoveAll(dir)
	check(coverage.WriteMetaDir(dir))
	check(coverage.WriteCountersDir(dir))
	profile := dir + "/profile"
	out, err := exec.Command("go", "tool", "covdata", "textfmt", "-i="+dir, "-o="+profile).CombinedOutput()
	if err != nil {
		log.Fatalf("%v: %s", err, out)
	}
	text, err := os.ReadFile(profile)
	check(err)
	lines := bufio.NewScanner(bytes.NewReader(text))
	for lines.Scan() {
		file, counts, found := strings.Cut(lines.Text(), ".go:")
		if !found || strings.HasSuffix(counts, " 0") || strings.Contains(file, "/callpath/") {
			continue
		}
		file = strings.TrimPrefix(file, "github.com/carddata/carddata-go/") + ".go"
		if !slices.Contains(files, file) {
			files = append(files, file)
		}
	}
	slices.Sort(files)
	return files
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
