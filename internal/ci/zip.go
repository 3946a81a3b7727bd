package main

import (
	"archive/zip"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
)

// maxZip bounds what everyone downloads who uses the library: the root module with
// its tests and examples, and without the modules inside it.
const maxZip = 800_000 // bytes

// checkZip makes the zip of the module in this directory as the module proxy does,
// and fails if it is too large.
func checkZip(ctx context.Context, out io.Writer, args []string) error {
	if len(args) > 0 {
		return errUsage
	}
	names, err := repositoryFiles(ctx)
	if err != nil {
		return err
	}
	module, err := output(ctx, "go", "list", "-m")
	if err != nil {
		return err
	}
	names = ofModule(names)
	size, err := zipSize(strings.TrimSpace(string(module))+"@v1.0.0", names)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%d bytes in a zip of %d files\n", size, len(names))
	if size > maxZip {
		return fmt.Errorf("the module's zip has %d bytes, at most %d are wanted: what is large belongs into a module of its own", size, maxZip)
	}
	return nil
}

// ofModule leaves out the files of the modules inside this one.
func ofModule(names []string) []string {
	var inside []string
	for _, name := range names {
		if dir, file := path.Split(name); file == "go.mod" && dir != "" {
			inside = append(inside, dir)
		}
	}
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.ContainsFunc(inside, func(dir string) bool { return strings.HasPrefix(name, dir) })
	})
}

func zipSize(prefix string, names []string) (int64, error) {
	size := new(counter)
	archive := zip.NewWriter(size)
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			return 0, err
		}
		file, err := archive.Create(path.Join(prefix, name))
		if err == nil {
			_, err = file.Write(content)
		}
		if err != nil {
			return 0, err
		}
	}
	err := archive.Close()
	return int64(*size), err
}

// A counter counts the bytes that are written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}
