package main

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
)

// An appender is a file that grows, or standard output; nil is one that there is
// no use for. One whose suffix asks for
// compression is made of parts that are whole in themselves, as gzip and zstd
// allow, so that it can be cut off after any of them.
type appender struct {
	file   *os.File // nil: standard output
	buffer *bufio.Writer
	size   int64 // what is buffered included; of a compressed file, its whole parts
	synced int64

	packer packer // nil: not compressed
	inPart bool
	passed int64 // by the packer
}

type packer interface {
	io.WriteCloser
	Reset(io.Writer)
}

// openAppender is openPrivate.
func openAppender(path string, existing bool) (*appender, error) {
	file, err := openPrivate(path, existing)
	if err != nil {
		return nil, err
	}
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		file.Close()
		return nil, err
	}
	a := &appender{file: file, buffer: bufio.NewWriterSize(file, 1<<16), size: size}
	switch filepath.Ext(path) {
	case ".gz":
		a.packer = gzip.NewWriter(nil)
	case ".zst":
		if a.packer, err = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1)); err != nil {
			file.Close()
			return nil, err
		}
	}
	return a, nil
}

// cut keeps so much of the file. If that is nothing, the head is written.
func (a *appender) cut(size int64, head []byte) error {
	if a.file != nil {
		if err := errors.Join(a.buffer.Flush(), a.file.Truncate(size)); err != nil {
			return err
		}
		if _, err := a.file.Seek(size, io.SeekStart); err != nil {
			return err
		}
	}
	a.size, a.synced, a.inPart = size, min(a.synced, size), false
	if size == 0 {
		return a.write(head)
	}
	return nil
}

func (a *appender) write(text []byte) error {
	if a.packer == nil {
		a.size += int64(len(text))
		_, err := a.buffer.Write(text)
		return err
	}
	if !a.inPart {
		a.inPart, a.passed = true, 0
		a.packer.Reset(packed{a})
	}
	_, err := a.packer.Write(text)
	return err
}

// packed is where a packer writes.
type packed struct{ *appender }

func (p packed) Write(part []byte) (int, error) {
	p.passed += int64(len(part))
	return p.buffer.Write(part)
}

// endPart makes size the whole of what was written.
func (a *appender) endPart() error {
	if a == nil || !a.inPart {
		return nil
	}
	err := a.packer.Close()
	a.size += a.passed
	a.inPart = false
	return err
}

func (a *appender) sync() error {
	err := a.endPart()
	if a == nil || a.synced == a.size {
		return err
	}
	a.synced = a.size
	if err = errors.Join(err, a.buffer.Flush()); a.file != nil {
		err = errors.Join(err, a.file.Sync())
	}
	return err
}

func (a *appender) length() int64 {
	if a == nil {
		return 0
	}
	return a.size
}

func (a *appender) close() {
	if a != nil && a.file != nil {
		a.file.Close()
	}
}
