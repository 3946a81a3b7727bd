package target

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
)

// TestPaths prints a path as it was typed, and masks what stands around it.
func TestPaths(t *testing.T) {
	const dated, grouped = "/data/20261122064131/a", "/4012/8888/8888/1881"
	gone := &fs.PathError{Op: "open", Path: dated, Err: fs.ErrNotExist}
	service := errors.New("no card 4111111111111111")
	for _, test := range []struct {
		err  error
		want string
	}{
		{gone, "open " + dated + ": file does not exist"},
		{fmt.Errorf("bulk: %w", errors.Join(service, gone)), "bulk: no card 411111******1111 open " + dated + ": file does not exist"},
		{Usage("bulk: %v", gone), "bulk: open " + dated + ": file does not exist"},
		{fmt.Errorf("fleet: %w", Usage("%s is 4111111111111111", Path(grouped))), "fleet: " + grouped + " is 411111******1111"},
		{Errorf("%s: %w, %w", Path(grouped), service, service), grouped + ": no card 411111******1111, no card 411111******1111"},
		{Errorf("%s exists, %[1]s.state too", Path(dated)), dated + " exists, " + dated + ".state too"},
		{Errorf("%s 1881", Path("/4012/8888/8888")), "/401288******1881"}, // a number beyond the path
		{Usage("open %s", Path("4111 1111-1111 1111")), "open 411111******1111"},
		{&fs.PathError{Op: "open", Path: "4111111111111111", Err: fs.ErrNotExist}, "open 411111******1111: file does not exist"},
		{&os.LinkError{Op: "rename", Old: grouped, New: "/2026/11/22/" + strings.Repeat("1", 13), Err: fs.ErrExist},
			"rename " + grouped + " /2026/11/22/1111111111111: file already exists"},
		{Errorf("%s: %s", Path("1"), "4111111111111111"), "1: 411111******1111"},
		{Errorf("%s", Path("a\x1b[2J\n"+dated)), "a [2J " + dated},
		{fmt.Errorf("%s: %w", dated, service), "/data/202611****4131/a: no card 411111******1111"}, // not said to be a path
	} {
		var out strings.Builder
		if Fail(t.Context(), &out, test.err); out.String() != test.want+"\n" {
			t.Errorf("%q is printed as %q", test.err, out.String())
		}
	}
	for _, path := range []string{dated, grouped, "out.csv"} {
		if got := Path(path).String(); got != path {
			t.Errorf("%q is printed as %q", path, got)
		}
	}
	if err := Usage("%w", gone); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}
