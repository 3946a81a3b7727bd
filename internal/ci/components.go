package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"
)

// listComponents prints the modules whose code a program with these packages
// links, with version and checksum. Without packages it is the library.
func listComponents(ctx context.Context, out io.Writer, args []string) error {
	if len(args) == 0 {
		args = []string{"./bins", "./refunds", "./updater"}
	}
	listing, err := output(ctx, "go", append([]string{"list", "-deps", "-json=Module"}, args...)...)
	if err != nil {
		return err
	}
	var lines []string
	for d := json.NewDecoder(strings.NewReader(string(listing))); ; {
		var pkg struct {
			Module *struct {
				Path, Version, Sum string
				Main               bool
			}
		}
		err := d.Decode(&pkg)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if m := pkg.Module; m != nil && !m.Main {
			lines = append(lines, strings.TrimSpace(m.Path+" "+m.Version+" "+m.Sum))
		}
	}
	slices.Sort(lines)
	for _, line := range slices.Compact(lines) {
		fmt.Fprintln(out, line)
	}
	return nil
}

const (
	govulncheck  = "golang.org/x/vuln/cmd/govulncheck@v1.8.0"
	vulnDatabase = "https://vuln.go.dev/index/db.json"
)

// findVulnerabilities runs govulncheck, or says that it could not.
func findVulnerabilities(ctx context.Context, out io.Writer, args []string) error {
	if len(args) > 0 {
		return errUsage
	}
	if err := reach(ctx, vulnDatabase); err != nil {
		fmt.Fprintf(out, "not run: the database of govulncheck can not be reached (%v)\n", err)
		return nil
	}
	return pass(ctx, out, "go", "run", govulncheck, "./...")
}

func reach(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}
