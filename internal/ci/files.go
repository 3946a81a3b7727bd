package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

const maxTracked = 1_000_000 // bytes

// binaries are what executables and object files begin with.
var binaries = map[string][]byte{
	"an ELF binary":      []byte("\x7fELF"),
	"a Windows binary":   []byte("MZ"),
	"a Mach-O binary":    []byte("\xcf\xfa\xed\xfe"),
	"a universal binary": []byte("\xca\xfe\xba\xbe"),
	"WebAssembly":        []byte("\x00asm"),
	"an archive":         []byte("!<arch>\n"),
}

// checkFiles fails if a file that git tracks, or would track, is an executable
// or large.
func checkFiles(ctx context.Context, out io.Writer, args []string) error {
	if len(args) > 0 {
		return errUsage
	}
	names, err := repositoryFiles(ctx)
	if err != nil {
		return err
	}
	var bad []error
	for _, name := range names {
		if err := checkFile(name); err != nil {
			bad = append(bad, fmt.Errorf("%s: %w", name, err))
		}
	}
	fmt.Fprintf(out, "%d files\n", len(names))
	return errors.Join(bad...)
}

// repositoryFiles returns the files in and below this directory that git tracks, or
// would track, and that are there.
func repositoryFiles(ctx context.Context) ([]string, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	// The clone may belong to another user.
	listing, err := output(ctx, "git", "-c", "safe.directory="+root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	names := strings.Split(strings.TrimSuffix(string(listing), "\x00"), "\x00")
	return slices.DeleteFunc(names, func(name string) bool {
		_, err := os.Lstat(name)
		return err != nil
	}), err
}

func checkFile(path string) error {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	if info.Size() > maxTracked {
		return fmt.Errorf("%d bytes, at most %d are tracked", info.Size(), maxTracked)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for kind, magic := range binaries {
		if bytes.HasPrefix(content, magic) {
			return fmt.Errorf("%s is tracked", kind)
		}
	}
	if info.Mode().Perm()&0o111 != 0 && !bytes.HasPrefix(content, []byte("#!")) {
		return errors.New("it is executable, and no script")
	}
	return nil
}
