// Package redisserver runs a private Redis without persistence.
package redisserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrNotInstalled says how to get a Redis.
var ErrNotInstalled = errors.New("redis-server is not installed: apt-get install redis-server, brew install redis, or set REDIS_URL")

// A Server is a redis-server. It listens on a Unix socket in a private directory.
type Server struct {
	URL string
	dir string
	cmd *exec.Cmd
}

// Start starts a server.
func Start(ctx context.Context) (*Server, error) {
	if _, err := exec.LookPath("redis-server"); err != nil {
		return nil, ErrNotInstalled
	}
	dir, err := os.MkdirTemp("/tmp", "redis-") // a socket's path must be short
	if err != nil {
		return nil, err
	}
	s := &Server{URL: "unix://" + filepath.Join(dir, "sock"), dir: dir}
	if err := s.Restart(ctx); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return s, nil
}

// Restart starts a server that was killed, at the same address.
func (s *Server) Restart(ctx context.Context) error {
	s.cmd = exec.Command("redis-server", "--port", "0", "--unixsocket", filepath.Join(s.dir, "sock"),
		"--dir", s.dir, "--save", "", "--appendonly", "no")
	if err := s.cmd.Start(); err != nil {
		return err
	}
	client := s.Connect()
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for client.Ping(ctx).Err() != nil {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			s.Kill()
			return fmt.Errorf("redis-server did not start: %w", ctx.Err())
		}
	}
	return nil
}

// Connect returns a client of s.
func (s *Server) Connect() *redis.Client {
	return redis.NewClient(&redis.Options{Network: "unix", Addr: filepath.Join(s.dir, "sock"), ContextTimeoutEnabled: true})
}

// Kill ends the server at once, as a crash does.
func (s *Server) Kill() {
	s.cmd.Process.Kill()
	s.cmd.Wait()
}

// Close ends the server and removes what it left.
func (s *Server) Close() error {
	s.Kill()
	return os.RemoveAll(s.dir)
}
