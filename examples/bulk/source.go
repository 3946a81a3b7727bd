package main

import (
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/klauspost/compress/zstd"

	"github.com/carddata/carddata-go/examples/internal/target"
)

// standard is the path of standard input and output.
const standard = "-"

// A source is the bytes of an input. They are read twice at the same time: ahead
// of the answers for the cards, and with the answers for the rows that they
// belong to. Between the two lie up to 32,768 rows. A file is read twice indeed;
// of what can be read once alone, those rows are held in memory.
type source struct {
	ahead, rows io.Reader
	size        int64        // of the file; 0: not known
	read        atomic.Int64 // of the file, for the rows
	packed      bool
	file        *os.File
}

func openSource(ctx context.Context, path string, stdin io.Reader) (*source, error) {
	if path == standard {
		return newStream(interruptible(ctx, stdin)), nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, target.Usage("bulk: %v", err)
	}
	s, err := ofFile(ctx, file)
	if err != nil {
		file.Close()
		return nil, target.Usage("bulk: the input cannot be read: %v", err)
	}
	s.file = file
	return s, nil
}

func (s *source) close() {
	if s.file != nil {
		s.file.Close()
	}
}

func ofFile(ctx context.Context, file *os.File) (*source, error) {
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, target.Usage("it is a directory")
	case !info.Mode().IsRegular():
		plain, err := unpacked(file.Name(), interruptible(ctx, file))
		return newStream(plain), err
	}
	s := &source{size: info.Size(), packed: unpackedName(file.Name()) != file.Name()}
	if s.ahead, err = unpacked(file.Name(), io.NewSectionReader(file, 0, s.size)); err == nil {
		s.rows, err = unpacked(file.Name(), &counted{io.NewSectionReader(file, 0, s.size), &s.read})
	}
	return s, err
}

// progress tells how much of the input is done with, in bytes of the file.
func (s *source) progress(at checkpoint) progress {
	p := progress{at, at.Input, s.size}
	if s.packed {
		p.read = s.read.Load() // up to a buffer too much
	}
	return p
}

type counted struct {
	io.Reader
	n *atomic.Int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// unpacked reads what a file's suffix says.
func unpacked(name string, r io.Reader) (io.Reader, error) {
	switch filepath.Ext(name) {
	case ".gz":
		return gzip.NewReader(r)
	case ".zst":
		return zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
	}
	return r, nil
}

// unpackedName is the name of a file without the suffix of its compression.
func unpackedName(name string) string {
	if e := filepath.Ext(name); e == ".gz" || e == ".zst" {
		return name[:len(name)-len(e)]
	}
	return name
}

// A stream is read once, by two readers of one goroutine. It holds what one of
// them has read and the other has not.
type stream struct {
	from io.Reader
	err  error
	held []byte
	at   [2]int // where the readers are in it
}

func newStream(from io.Reader) *source {
	s := &stream{from: from}
	return &source{ahead: &streamReader{s, 0}, rows: &streamReader{s, 1}}
}

type streamReader struct {
	*stream
	number int
}

func (r *streamReader) Read(p []byte) (int, error) {
	at := &r.at[r.number]
	for *at == len(r.held) {
		if r.err != nil {
			return 0, r.err
		}
		r.fill()
	}
	n := copy(p, r.held[*at:])
	*at += n
	return n, nil
}

func (s *stream) fill() {
	if passed := min(s.at[0], s.at[1]); passed > len(s.held)/2 {
		s.held = s.held[:copy(s.held, s.held[passed:])]
		s.at[0], s.at[1] = s.at[0]-passed, s.at[1]-passed
	}
	var piece [64 << 10]byte
	n, err := s.from.Read(piece[:])
	s.held, s.err = append(s.held, piece[:n]...), err
}

// interruptible ends with ctx. Whoever feeds a pipe may never finish.
func interruptible(ctx context.Context, r io.Reader) io.Reader {
	out, in := io.Pipe()
	go func() {
		_, err := io.Copy(in, r)
		in.CloseWithError(err)
	}()
	context.AfterFunc(ctx, func() { out.CloseWithError(context.Cause(ctx)) })
	return out
}
