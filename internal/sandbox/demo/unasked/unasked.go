// Package unasked starts a sandbox for a program that only prints its lookups, and reads and
// writes no files. It starts only if neither CARDDATA_BIN_URL nor CARDDATA_API_KEY is set,
// and prints a notice.
package unasked

import (
	"fmt"
	"os"
	"strings"

	"github.com/carddata/carddata-go/internal/sandbox/demo"
)

func init() {
	_, url := os.LookupEnv("CARDDATA_BIN_URL")
	_, key := os.LookupEnv("CARDDATA_API_KEY")
	if url || key || len(os.Args) < 2 || strings.HasPrefix(os.Args[1], "-") {
		return
	}
	if err := demo.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("invented data of the built-in sandbox, because CARDDATA_BIN_URL and CARDDATA_API_KEY are not set")
}
