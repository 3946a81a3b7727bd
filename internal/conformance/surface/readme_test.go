package surface_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadmeCode builds every complete program of the README and parses every
// piece of Go, so that what a newcomer pastes works.
func TestReadmeCode(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := goBlocks(string(text))
	if err != nil {
		t.Fatal(err)
	}
	programs := 0
	for _, block := range blocks {
		name := fmt.Sprintf("line %d", block.line)
		if err := checkFormat(block.code); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !block.isProgram() {
			continue
		}
		programs++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := buildProgram(t, root, block.code); err != nil {
				t.Error(err)
			}
		})
	}
	if programs == 0 {
		t.Error("the README holds no program")
	}
}

type goBlock struct {
	line int // of the fence
	code string
}

func (b goBlock) isProgram() bool { return strings.HasPrefix(b.code, "package main\n") }

// goBlocks returns the blocks fenced as go, and refuses fences that it cannot
// pair, because it could miss code behind them.
func goBlocks(text string) ([]goBlock, error) {
	var blocks []goBlock
	opened, language := 0, ""
	var code strings.Builder
	number := 0
	for line := range strings.Lines(text) {
		number++
		trimmed := strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(trimmed, "```") && !strings.HasPrefix(trimmed, "~~~"):
			code.WriteString(line)
		case !strings.HasPrefix(line, "```"):
			return nil, fmt.Errorf("line %d: a fence must be ``` at the beginning of the line", number)
		case opened == 0:
			opened, language = number, strings.TrimPrefix(trimmed, "```")
			if language == "" || strings.ToLower(language) == "golang" || strings.ContainsAny(language, "` \t{") {
				return nil, fmt.Errorf("line %d: a fence must name its language, and nothing else", number)
			}
			code.Reset()
		case trimmed != "```":
			return nil, fmt.Errorf("line %d: a block inside the block of line %d", number, opened)
		default:
			if language == "go" {
				blocks = append(blocks, goBlock{opened, code.String()})
			}
			opened = 0
		}
	}
	if opened != 0 {
		return nil, fmt.Errorf("line %d: the block has no end", opened)
	}
	return blocks, nil
}

// checkFormat parses a file, declarations, or statements.
func checkFormat(code string) error {
	formatted, err := format.Source([]byte(code))
	if err == nil && !bytes.Equal(formatted, []byte(code)) {
		err = errors.New("not as gofmt writes it")
	}
	return err
}

// buildProgram lays the program over a directory that does not exist, so that
// it builds inside the module without a file being written there.
func buildProgram(t *testing.T, root, code string) error {
	dir := t.TempDir()
	source, overlay := filepath.Join(dir, "main.go"), filepath.Join(dir, "overlay.json")
	replace := map[string]map[string]string{
		"Replace": {filepath.Join(root, "internal", "readme", "main.go"): source},
	}
	table, err := json.Marshal(replace)
	if err != nil {
		return err
	}
	if err := errors.Join(os.WriteFile(source, []byte(code), 0o600), os.WriteFile(overlay, table, 0o600)); err != nil {
		return err
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-overlay", overlay,
		"-o", filepath.Join(dir, "program.exe"), "./internal/readme")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

func TestReadmeCheckFindsFaults(t *testing.T) {
	for name, text := range map[string]string{
		"no end":       "```go\nx()\n",
		"no language":  "```\nx()\n```\n",
		"indented":     "- item\n  ```go\n  x()\n  ```\n",
		"tildes":       "~~~go\nx()\n~~~\n",
		"other name":   "```golang\nx()\n```\n",
		"attributes":   "```go title=x\nx()\n```\n",
		"inside block": "```sh\n```go\nx()\n```\n",
	} {
		if blocks, err := goBlocks(text); err == nil {
			t.Errorf("%s: accepted as %v", name, blocks)
		}
	}
	blocks, err := goBlocks("text\n```sh\nls\n```\n```go\nx()\n```\n")
	if err != nil || len(blocks) != 1 || blocks[0] != (goBlock{5, "x()\n"}) {
		t.Errorf("%v, %v", blocks, err)
	}
	for code, good := range map[string]bool{
		"x, err := f()\nif err != nil {\n\treturn\n}\n": true,
		"import \"os\"\n\nfunc f() { os.Exit(1) }\n":    true,
		"package p\n\nvar X = 1\n":                      true,
		"x :=\n":                                        false,
		"if x {\n":                                      false,
		"x( )\n":                                        false,
		"client, err := bins.NewClient(\n\turl,\n)\n…\nf(client)\n": false,
	} {
		if err := checkFormat(code); (err == nil) != good {
			t.Errorf("%q: %v", code, err)
		}
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	const broken = "package main\n\nimport \"github.com/carddata/carddata-go/bins\"\n\nfunc main() { bins.Missing() }\n"
	if err := buildProgram(t, root, broken); err == nil || !strings.Contains(err.Error(), "bins.Missing") {
		t.Errorf("an unknown function: %v", err)
	}
}
