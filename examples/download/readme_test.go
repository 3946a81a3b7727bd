package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/examples/internal/program"
)

// TestReadme runs the commands of the README, with a smaller result, and looks
// for the output that it shows.
func TestReadme(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands are for a shell")
	}
	t.Parallel()
	text := read(t, "README.md")
	dir := t.TempDir()
	prefixes := strings.NewReplacer(
		"go -C examples/download run . ", binary+" ", "./download ", binary+" ", "/tmp/", dir+"/", "1GiB", "8MiB")
	ran, printed := 0, ""
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(text, -1) {
		for line := range strings.Lines(block[1]) {
			command := prefixes.Replace(line)
			if !strings.HasPrefix(command, binary) {
				continue // which builds the program
			}
			shell, err := exec.LookPath("sh")
			if err != nil {
				t.Skip(err)
			}
			cmd := program.Command(t, nil, shell, "-c", command)
			cmd.Dir = dir
			got := program.Run(t, cmd)
			if ran++; got.Code != 0 {
				t.Errorf("%s%+v", line, got)
			}
			printed += got.Stdout
		}
	}
	if ran < 6 {
		t.Errorf("%d commands were run", ran)
	}
	for row := range strings.Lines(text) {
		if strings.HasPrefix(row, "new_expiry=") && !strings.Contains(printed, row) {
			t.Errorf("no command prints %s", row)
		}
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "[^.]*")); len(files) != 3 {
		t.Errorf("the commands left %q", files)
	}
}
