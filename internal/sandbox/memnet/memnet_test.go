package memnet

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func pair(t *testing.T) (client, server *Conn) {
	t.Helper()
	l := Listen()
	defer l.Close()
	c, err := l.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return c.(*Conn), s.(*Conn)
}

func TestCloseSendsFIN(t *testing.T) {
	c, s := pair(t)
	if n, err := c.Write([]byte("hello")); n != 5 || err != nil {
		t.Fatalf("Write = %d, %v", n, err)
	}
	c.Close()
	if got, err := io.ReadAll(s); string(got) != "hello" || err != nil {
		t.Errorf("peer read %q, %v; want the buffered data and the end", got, err)
	}
	if _, err := s.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("peer's write: %v, want EPIPE", err)
	}
	for op, err := range map[string]error{
		"read":  second(c.Read(make([]byte, 1))),
		"write": second(c.Write([]byte("x"))),
		"set":   c.SetDeadline(time.Now()),
	} {
		if !errors.Is(err, net.ErrClosed) {
			t.Errorf("%s after Close: %v, want net.ErrClosed", op, err)
		}
	}
	if err := c.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

func TestBackPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := pair(t)
		sent := bytes.Repeat([]byte("0123456789"), 100_000)
		go func() {
			c.Write(sent)
			c.Close()
		}()
		got, err := io.ReadAll(s)
		if err != nil || !bytes.Equal(got, sent) {
			t.Errorf("read %d bytes, %v; want the %d sent", len(got), err, len(sent))
		}
	})
}

func TestBlockedWriteEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		end  func(c, s *Conn)
		want error
	}{
		"deadline":   {func(c, _ *Conn) { c.SetWriteDeadline(time.Now().Add(time.Minute)) }, os.ErrDeadlineExceeded},
		"past":       {func(c, _ *Conn) { c.SetWriteDeadline(time.Unix(1, 0)) }, os.ErrDeadlineExceeded},
		"close":      {func(c, _ *Conn) { c.Close() }, net.ErrClosed},
		"peer close": {func(_, s *Conn) { s.Close() }, syscall.EPIPE},
		"reset":      {func(c, _ *Conn) { c.Reset() }, syscall.ECONNRESET},
		"peer reset": {func(_, s *Conn) { s.Reset() }, syscall.ECONNRESET},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, s := pair(t)
				type result struct {
					n   int
					err error
				}
				done := make(chan result)
				go func() {
					n, err := c.Write(make([]byte, 2*capacity))
					done <- result{n, err}
				}()
				synctest.Wait()
				tc.end(c, s)
				if got := <-done; got.n != capacity || !errors.Is(got.err, tc.want) {
					t.Errorf("Write = %d, %v; want %d, %v", got.n, got.err, capacity, tc.want)
				}
			})
		})
	}
}

func TestReadDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, s := pair(t)
		b := make([]byte, 1)
		start := time.Now()
		c.SetDeadline(start.Add(time.Hour))
		_, err := c.Read(b)
		var ne net.Error
		if !errors.As(err, &ne) || !ne.Timeout() || time.Since(start) != time.Hour {
			t.Errorf("Read ended after %v with %v; want a timeout after an hour", time.Since(start), err)
		}
		s.Write([]byte("x"))
		if _, err := c.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("Read after the deadline: %v, want the timeout even though data waits", err)
		}
		c.SetReadDeadline(time.Time{})
		if n, err := c.Read(b); n != 1 || err != nil {
			t.Errorf("Read without deadline = %d, %v", n, err)
		}
		c.SetReadDeadline(time.Now().Add(time.Second))
		c.SetReadDeadline(time.Now().Add(time.Hour))
		time.Sleep(time.Minute)
		if n, err := c.Read(nil); n != 0 || err != nil {
			t.Errorf("a replaced deadline still fired: %v", err)
		}
	})
}

func TestListener(t *testing.T) {
	l := Listen()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Dial(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("dial with an ended context: %v", err)
	}
	waiting, err := l.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := waiting.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read on a connection never accepted: %v, want ECONNRESET", err)
	}
	_, err = l.Dial(t.Context())
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "dial" || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial after Close: %v, want a refused dial", err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept after Close: %v, want net.ErrClosed", err)
	}
}

func second[T any](_ T, err error) error { return err }
