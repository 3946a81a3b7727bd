package main

import (
	"bytes"
	"context"
	"io"
	"os"

	"github.com/carddata/carddata-go/examples/tools/internal/cli"
)

// A source is the bytes of an input.
type source struct {
	io.Reader
	size int64 // 0: not known
	file *os.File
}

func openSource(ctx context.Context, c *config) (*source, error) {
	switch {
	case c.made:
		text := invented()
		return &source{Reader: bytes.NewReader(text), size: int64(len(text))}, nil
	case c.in == standard:
		return &source{Reader: interruptible(ctx, c.stdin)}, nil
	}
	file, err := os.Open(c.in)
	if err != nil {
		return nil, cli.Usage("enrich: %w", err)
	}
	info, err := file.Stat()
	switch {
	case err == nil && info.IsDir():
		err = cli.Usage("enrich: the input is a directory")
	case err == nil && info.Mode().IsRegular():
		return &source{file, info.Size(), file}, nil
	case err == nil:
		return &source{Reader: interruptible(ctx, file), file: file}, nil
	}
	file.Close()
	return nil, err
}

func (s *source) close() {
	if s.file != nil {
		s.file.Close()
	}
}

// interruptible returns a reader that ends with ctx, because a pipe may never end by itself.
func interruptible(ctx context.Context, r io.Reader) io.Reader {
	out, in := io.Pipe()
	go func() {
		_, err := io.Copy(in, r)
		in.CloseWithError(err)
	}()
	context.AfterFunc(ctx, func() { out.CloseWithError(context.Cause(ctx)) })
	return out
}
