//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package main

import (
	"io/fs"
	"os"
)

// lockFile does nothing: another process is not noticed.
func lockFile(*os.File) error { return nil }

func isPrivate(info fs.FileInfo) bool { return info.Mode().IsRegular() }
