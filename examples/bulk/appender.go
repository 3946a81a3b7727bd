package main

import (
	"bufio"
	"errors"
	"io"
	"os"
)

// An appender is a file that grows.
type appender struct {
	file   *os.File
	buffer *bufio.Writer
	size   int64 // what is buffered included
	synced int64
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
	return &appender{file: file, buffer: bufio.NewWriterSize(file, 1<<16), size: size}, nil
}

// cut keeps so much of the file. If that is nothing, the head is written.
func (a *appender) cut(size int64, head []byte) error {
	if err := errors.Join(a.buffer.Flush(), a.file.Truncate(size)); err != nil {
		return err
	}
	_, err := a.file.Seek(size, io.SeekStart)
	a.size, a.synced = size, min(a.synced, size)
	if size == 0 && err == nil {
		err = a.write(head)
	}
	return err
}

func (a *appender) write(text []byte) error {
	a.size += int64(len(text))
	_, err := a.buffer.Write(text)
	return err
}

func (a *appender) sync() error {
	if a.synced == a.size {
		return nil
	}
	a.synced = a.size
	return errors.Join(a.buffer.Flush(), a.file.Sync())
}
