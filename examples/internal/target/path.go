package target

import (
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/carddata/carddata-go/internal/mask"
)

// A Path names a file of whoever runs the program. It is printed as it was typed, also
// where its digits, such as those of a date, could be a card number's.
type Path string

func (p Path) String() string { return line(printable(string(p)), []Path{p}) }

// typed tells whether p is to be printed as it is. What is nothing but a number was
// meant to be a card where the command line takes none.
func (p Path) typed() bool { return strings.Trim(string(p), "0123456789 -") != "" }

// Errorf is fmt.Errorf, of which Fail prints each argument that is a Path as it was
// typed, and likewise the paths in arguments that are errors.
func Errorf(format string, args ...any) error {
	e := &pathError{error: fmt.Errorf(format, args...)}
	for _, arg := range args {
		switch arg := arg.(type) {
		case Path:
			e.paths = append(e.paths, arg)
		case error:
			e.paths = append(e.paths, pathsOf(arg)...)
		}
	}
	return e
}

type pathError struct {
	error
	paths []Path
}

func (e *pathError) Unwrap() error { return e.error }

// pathsOf returns the paths that err's text holds. Those of the system's errors are
// what the program was told to open.
func pathsOf(err error) (paths []Path) {
	switch e := err.(type) {
	case *pathError:
		return e.paths
	case *fs.PathError:
		paths = []Path{Path(e.Path)}
	case *os.LinkError:
		paths = []Path{Path(e.Old + " " + e.New), Path(e.Old), Path(e.New)}
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		paths = append(paths, pathsOf(e.Unwrap())...)
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			paths = append(paths, pathsOf(err)...)
		}
	}
	return paths
}

// line is Line of a text in which paths stay as they are. A path without a number that
// would be masked is not looked for, as one of a few letters is found in any text.
func line(text string, paths []Path) string {
	for _, path := range paths {
		own := printable(string(path))
		if mask.Text(own) == own || !path.typed() {
			continue
		}
		if before, after, found := strings.Cut(text, own); found {
			return line(before, paths) + own + line(after, paths)
		}
	}
	return mask.Text(text)
}
