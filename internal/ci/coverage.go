package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strconv"
	"strings"
)

// checkCoverage reads a profile of many test binaries and fails if a package is
// not above a percentage. Packages are directories of this module.
func checkCoverage(ctx context.Context, out io.Writer, args []string) error {
	if len(args) < 3 {
		return errUsage
	}
	least, err := strconv.ParseFloat(args[1], 64)
	if err != nil {
		return errUsage
	}
	module, err := output(ctx, "go", "list", "-m")
	if err != nil {
		return err
	}
	profile, err := os.Open(args[0])
	if err != nil {
		return err
	}
	defer profile.Close()
	found, err := readProfile(profile)
	if err != nil {
		return err
	}
	var low []error
	for _, dir := range args[2:] {
		c := found[path.Join(strings.TrimSpace(string(module)), dir)]
		fmt.Fprintf(out, "%-20s %5.1f %% of %d statements\n", dir, c.percent(), c.statements)
		if c.percent() <= least {
			low = append(low, fmt.Errorf("the coverage of %s is not above %g %%", dir, least))
		}
	}
	return errors.Join(low...)
}

type coverage struct{ statements, covered int }

func (c coverage) percent() float64 {
	if c.statements == 0 {
		return 0
	}
	return 100 * float64(c.covered) / float64(c.statements)
}

// readProfile returns the coverage of each package. Every test binary reports
// every block: one that any of them ran is covered.
func readProfile(profile io.Reader) (map[string]coverage, error) {
	type block struct {
		statements int
		ran        bool
	}
	blocks := map[string]block{}
	lines := bufio.NewScanner(profile)
	for n := 0; lines.Scan(); n++ {
		if n == 0 && strings.HasPrefix(lines.Text(), "mode: ") {
			continue
		}
		place, numbers, _ := strings.Cut(lines.Text(), " ")
		var statements, times int
		if _, err := fmt.Sscanf(numbers, "%d %d", &statements, &times); err != nil || !strings.Contains(place, ":") {
			return nil, fmt.Errorf("line %d is none of a coverage profile", n+1)
		}
		blocks[place] = block{statements, blocks[place].ran || times > 0}
	}
	found := map[string]coverage{}
	for place, b := range blocks {
		file, _, _ := strings.Cut(place, ":")
		c := found[path.Dir(file)]
		c.statements += b.statements
		if b.ran {
			c.covered += b.statements
		}
		found[path.Dir(file)] = c
	}
	return found, lines.Err()
}
