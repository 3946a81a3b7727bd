// Package benchmark measures the library beside what a team would use instead. Each
// benchmark has one sub-benchmark for each client, so that benchstat puts the clients in
// columns:
//
//	go -C internal/proof/benchmark test -bench . | tee results.txt
//	go -C internal/proof/benchmark tool benchstat -col /client results.txt
package benchmark

import (
	"encoding/pem"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

const (
	token = "key-1"
	// serves is set in the environment of the process that runs the server.
	serves = "BENCHMARK_SERVER"
)

// local is the server that the benchmarks of a network share.
var local *server

func TestMain(m *testing.M) {
	flag.Parse()
	run := func() (int, error) {
		if os.Getenv(serves) != "" {
			return 0, serve()
		}
		dir, err := os.MkdirTemp("", "benchmark")
		if err != nil {
			return 0, err
		}
		defer os.RemoveAll(dir)
		if err := trust(filepath.Join(dir, "roots.pem")); err != nil {
			return 0, err
		}
		if local, err = startServer(); err != nil {
			return 0, err
		}
		defer local.close()
		return m.Run(), nil
	}
	code, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// trust makes the certificate of every httptest.Server a root of the system. A client then
// needs no transport of its own, and the one that the library makes is measured.
func trust(file string) error {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	if err := os.WriteFile(file, block, 0o600); err != nil {
		return err
	}
	return os.Setenv("SSL_CERT_FILE", file)
}

// perShort is n, or fewer for a mere check that the benchmarks run.
func perShort(n, short int) int {
	if testing.Short() {
		return short
	}
	return n
}
