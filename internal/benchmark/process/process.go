// Package process runs work and servers in processes of their own.
package process

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"time"
)

// The library's contestants.
const (
	Library   = "carddata"
	LookupAll = Library + " LookupAll"
)

// The loops that one would write instead of LookupAll.
const (
	LoopOver      = "errgroup over "
	LimitedBefore = "limiter before go-retryablehttp"
)

// A Sample is what work took, by unit.
type Sample map[string]float64

// A Job is work for a worker. Which fields count is up to the work.
type Job struct {
	Work        string
	Contestant  string
	Transport   string
	Form        string // of a response
	Size        int
	Repeat      int
	Concurrency int
	Limit       float64 // requests a second
	Faults      bool
	TLS         bool
	Seconds     float64
}

// Run has a worker do a job.
func Run(worker string, job Job) (Sample, error) {
	argument, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(worker, "work", string(argument))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("worker %s: %w", argument, err)
	}
	var s Sample
	if err := json.Unmarshal(out, &s); err != nil {
		return nil, fmt.Errorf("worker %s: %w in %q", argument, err, out)
	}
	return s, nil
}

// ServerOptions say what a server simulates.
type ServerOptions struct {
	TLS             bool
	Tiny, Short     bool // responses, as of a service.Service
	Latency         time.Duration
	ConnectionDelay time.Duration // of what comes first on a connection
	Bytes           int64         // of a download
}

// A Server runs until it is closed.
type Server struct {
	URL         string
	Certificate []byte // in PEM

	stdin io.Closer
	cmd   *exec.Cmd
}

// Serve starts a server.
func Serve(worker string, o ServerOptions) (*Server, error) {
	argument, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(worker, "serve", string(argument))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &Server{stdin: stdin, cmd: cmd}
	if err := json.NewDecoder(bufio.NewReader(stdout)).Decode(s); err != nil {
		return nil, errors.Join(fmt.Errorf("server: %w", err), s.Close())
	}
	return s, nil
}

// Close ends the server.
func (s *Server) Close() error {
	s.stdin.Close()
	return s.cmd.Wait()
}

// ConnectionsPath is where a server tells how many connections were made to it,
// but for those that ask.
const ConnectionsPath = "/connections"

// Connections returns how many connections were made to the server.
func (s *Server) Connections(client *http.Client) (int, error) {
	resp, err := client.Get(s.URL + ConnectionsPath)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var n int
	_, err = fmt.Fscan(resp.Body, &n)
	return n, err
}
