// Package redisserver runs a Redis of the program's own: private, empty, and gone
// with the program.
package redisserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/carddata/carddata-go/examples/fleet/redisclient"
)

// ErrNotInstalled says how to get a Redis.
var ErrNotInstalled = errors.New("redis-server is not installed: apt-get install redis-server, brew install redis, or set REDIS_URL")

// A Server is a running redis-server. It listens on a Unix socket in a private
// directory.
type Server struct {
	URL string

	dir    string
	cmd    *exec.Cmd
	output bytes.Buffer
	ended  chan struct{}
}

// Start starts a server that keeps nothing, unless settings, as on its command
// line, say otherwise.
func Start(ctx context.Context, settings ...string) (*Server, error) {
	// A socket's path must be short, so that it is not below a long TMPDIR's path.
	dir, err := os.MkdirTemp("", "redis-")
	if err != nil {
		return nil, err
	}
	s := &Server{URL: "unix://" + filepath.Join(dir, "sock"), dir: dir}
	if err := s.Restart(ctx, settings...); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return s, nil
}

// Restart starts a server that was killed, at the same address.
func (s *Server) Restart(ctx context.Context, settings ...string) error {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return ErrNotInstalled
	}
	s.output.Reset()
	s.cmd = exec.Command(path, append([]string{
		"--port", "0", "--unixsocket", filepath.Join(s.dir, "sock"), "--unixsocketperm", "700",
		"--dir", s.dir, "--save", "", "--appendonly", "no",
	}, settings...)...)
	s.cmd.Stdout, s.cmd.Stderr = &s.output, &s.output
	endWithParent(s.cmd)
	if err := s.cmd.Start(); err != nil {
		return fmt.Errorf("redis-server: %w", err)
	}
	ended := make(chan struct{})
	s.ended = ended
	cmd := s.cmd
	go func() {
		defer close(ended)
		cmd.Wait()
	}()
	if err := s.ready(ctx); err != nil {
		s.Kill()
		return fmt.Errorf("redis-server did not start: %w\n%s", err, &s.output)
	}
	return nil
}

func (s *Server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	client, err := redisclient.New(s.URL)
	if err != nil {
		return err
	}
	defer client.Close()
	for {
		err := client.Ping(ctx).Err()
		if err == nil {
			return nil
		}
		select {
		case <-s.ended:
			return errors.New("it ended")
		case <-ctx.Done():
			return err
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Kill ends the server at once, as a crash does.
func (s *Server) Kill() {
	s.cmd.Process.Kill()
	<-s.ended
}

// Close ends the server and removes what it left.
func (s *Server) Close() error {
	s.Kill()
	return os.RemoveAll(s.dir)
}
