// Package demo lets a user try a program without an account. It adds the flag -sandbox, which
// serves invented data in the process and points the program's environment to it:
//
//	import _ "github.com/carddata/carddata-go/internal/sandbox/demo"
//
// Without the flag it does nothing: a program for real data must never get invented data
// because a variable is missing.
package demo

import (
	"flag"
	"fmt"
	"os"
	"strconv"

	"github.com/carddata/carddata-go/internal/sandbox"
)

func init() {
	flag.BoolFunc("sandbox", "use a built-in sandbox with invented data in place of the service", func(value string) error {
		if on, err := strconv.ParseBool(value); err != nil || !on {
			return err
		}
		fmt.Fprintln(os.Stderr, "sandbox: all data are invented")
		return Start()
	})
}

// Start serves a sandbox until the process ends, and points the environment to it.
func Start() error {
	server, err := sandbox.New().ListenTCP("127.0.0.1:0")
	if err != nil {
		return err
	}
	for name, value := range map[string]string{
		"CARDDATA_BIN_URL": server.URL(), "CARDDATA_API_KEY": "sandbox",
		"CARDDATA_REFUND_URL": server.URL(), "CARDDATA_ACCOUNT_ID": "sandbox",
		"CARDDATA_UPDATER_URL": server.URL(), "CARDDATA_ACCESS_TOKEN": "sandbox", "CARDDATA_MERCHANT_ID": "sandbox",
	} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	return os.Unsetenv("CARDDATA_REFUND_TOKEN")
}
