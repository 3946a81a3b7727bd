package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/carddata/carddata-go/examples/internal/program"
	"github.com/carddata/carddata-go/internal/sandbox"
)

func pipe(t *testing.T, vars program.Variables, stdin string, args ...string) program.Result {
	t.Helper()
	cmd := program.Command(t, vars, binary, args...)
	cmd.Stdin = strings.NewReader(stdin)
	return program.Run(t, cmd)
}

// TestPipe compares what comes through a pipe with what a file gets, of an input
// that is larger than what lies between cards and rows.
func TestPipe(t *testing.T) {
	engine, vars := serve(t)
	engine.SetLookup(sandbox.SyntheticCard)
	in, _ := killInput(t)
	dir := t.TempDir()
	args := []string{"-column", "card", "-prefix", "8"}
	if got := bulk(t, vars, append(args, "-in", in, "-out", filepath.Join(dir, "file.csv"))...); got.Code != exitFailedRows {
		t.Fatalf("%+v", got)
	}
	got := pipe(t, vars, read(t, in), append(args, "-in", "-", "-out", "-", "-failed", filepath.Join(dir, "failed.csv"))...)
	if got.Code != exitFailedRows || got.Stdout != read(t, filepath.Join(dir, "file.csv")) || !strings.Contains(got.Stderr, "\ncomplete, ") {
		t.Errorf("exit code %d, %d bytes, %s", got.Code, len(got.Stdout), got.Stderr)
	}
	if read(t, filepath.Join(dir, "failed.csv")) != read(t, filepath.Join(dir, "file.csv.failed.csv")) {
		t.Error("other rows have failed")
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 4 {
		t.Errorf("the files are %v", entries)
	}
}

func TestPipeUsage(t *testing.T) {
	_, vars := serve(t)
	dir := t.TempDir()
	old := write(t, "old.csv", "")
	if err := os.WriteFile(old+".state", []byte(`{"run":{"columns":"type","failed":"`+old+`.failed.csv"}}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	semicolons := write(t, "semicolons.csv", "id;card\n1;411111\n")
	for _, test := range []struct {
		args   []string
		stderr string
	}{
		{[]string{"-in", "-", "-out", "-", "-lines"}, "bulk: -out - needs -failed FILE or -keep-failed"},
		{[]string{"-in", "-", "-out", "-", "-lines", "-keep-failed", "-resume"}, "bulk: what went to standard output cannot be resumed"},
		{[]string{"-in", "-", "-out", "-", "-keep-failed"}, "bulk: the input's format does not show in its name"},
		{[]string{"-in", semicolons, "-out", dir + "/x"}, `bulk: line 1 of the input names the column "card" with another delimiter: give -delimiter ';'`},
		{[]string{"-in", write(t, "tabs.csv", "id\tcard\n1\t411111\n"), "-out", dir + "/x"}, `bulk: line 1 of the input names the column "card" with another delimiter: give -delimiter tab`},
		{[]string{"-in", write(t, "commas.tsv", "id,card\n"), "-out", dir + "/x"}, `bulk: line 1 of the input names the column "card" with another delimiter: give -delimiter ','`},
		{[]string{"-in", semicolons, "-out", dir + "/x", "-delimiter", ";;"}, "bulk: -delimiter is one character"},
		{[]string{"-in", semicolons, "-out", dir + "/x", "-delimiter", `"`}, "bulk: -delimiter is one character"},
		{[]string{"-in", write(t, "x.csv.gz", "card\n411111\n"), "-out", dir + "/x"}, "bulk: the input cannot be read: gzip: "},
		{[]string{"-in", write(t, "in.csv", "card\n"), "-out", old, "-columns", "type", "-resume"}, "bulk: " + old + ".state is of another version of this program"},
	} {
		got := bulk(t, vars, test.args...)
		lines := strings.Split(strings.TrimSuffix(got.Stderr, "\n"), "\n")
		if last := lines[len(lines)-1]; got.Code != 2 || got.Stdout != "" || !strings.HasPrefix(last, test.stderr) {
			t.Errorf("%q: %+v, want %s", test.args, got, test.stderr)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("files were made: %v", entries)
	}
}

func TestDelimiters(t *testing.T) {
	_, vars := serve(t)
	for name, d := range map[string]string{"in.tsv": "\t", "in.csv": ";"} {
		in := write(t, name, strings.ReplaceAll("id|card\n1|411111\n2|\"999|999\"\n3|45717360\n", "|", d))
		out := filepath.Join(t.TempDir(), "out")
		args := []string{"-in", in, "-out", out, "-columns", "card_brand,bank.name,error"}
		if d == ";" {
			args = append(args, "-delimiter", d)
		}
		got := bulk(t, vars, args...)
		want := strings.ReplaceAll("id|card|card_brand|bank.name|error\n1|411111|VISA|FIRST EXAMPLE BANK|\n2|\"999|999\"|||unknown bin\n3|45717360|VISA|EKSEMPELBANKEN|\n", "|", d)
		if strings.Contains(read(t, out+".failed.csv"), "control_character") { // a tab within a card
			want = strings.Replace(want, strings.ReplaceAll("2|\"999|999\"|||unknown bin\n", "|", d), "", 1)
		}
		if read(t, out) != want {
			t.Errorf("%s: %+v\n%s", name, got, read(t, out))
		}
	}
}

func TestKeepFailed(t *testing.T) {
	engine, vars := serve(t)
	in := "card,note\n411111,a\n,b\n999999,c\n4.11111E+15,d\n"
	args := []string{"-in", "-", "-out", "-", "-column", "card", "-columns", "card_brand,error", "-keep-failed"}
	got := pipe(t, vars, in, args...)
	const want = "card,note,card_brand,error\n411111,a,VISA,\n,b,,failed: empty: the card is empty\n999999,c,,unknown bin\n" +
		"4.11111E+15,d,,\"failed: rounded: the card was rounded to an exponent, as spreadsheets do\"\n"
	if got.Code != 0 || got.Stdout != want {
		t.Errorf("%+v", got)
	}
	// Requests that fail.
	engine.Script(sandbox.Bins, sandbox.Fault{Status: 400})
	if got := pipe(t, vars, in, args...); got.Code != 0 || !strings.Contains(got.Stdout, "411111,a,,\"failed: bad_request: ") {
		t.Errorf("%+v", got)
	}
	// A row to which no columns can be added has nowhere to go without -failed.
	got = pipe(t, vars, in+"ragged\n", args...)
	if got.Code != 1 || !strings.Contains(got.Stderr, "line 6: the row has more or fewer fields than the header, and there is no -failed file for it") {
		t.Errorf("%+v", got)
	}
	failed := filepath.Join(t.TempDir(), "failed.csv")
	got = pipe(t, vars, in+"ragged\n", append(args, "-failed", failed)...)
	if got.Code != exitFailedRows || got.Stdout != want || !strings.Contains(read(t, failed), "\n6,,ragged,") {
		t.Errorf("%+v", got)
	}
	// NDJSON, and into a file.
	out := filepath.Join(t.TempDir(), "out.ndjson")
	got = pipe(t, vars, "{\"card\":\"411111\"}\n{}\n", "-in", "-", "-out", out, "-field", "card", "-columns", "card_brand,error", "-keep-failed")
	const objects = "{\"card\":\"411111\",\"card_brand\":\"VISA\",\"error\":null}\n" +
		"{\"card_brand\":null,\"error\":\"failed: empty: the object does not state the card\"}\n"
	if got.Code != 0 || read(t, out) != objects {
		t.Errorf("%+v\n%s", got, read(t, out))
	}
}

// TestCompressed reads and writes both kinds, and resumes a run whose output is
// cut off in the middle.
func TestCompressed(t *testing.T) {
	in, _ := killInput(t)
	plain := filepath.Join(t.TempDir(), "plain.csv")
	args := []string{"-prefix", "8", "-concurrency", "1"}
	engine, vars := serve(t)
	engine.SetLookup(sandbox.SyntheticCard)
	if got := bulk(t, vars, append(args, "-in", in, "-out", plain)...); got.Code != exitFailedRows {
		t.Fatalf("%+v", got)
	}
	for suffix, pack := range map[string]func(io.Writer) io.WriteCloser{
		".gz":  func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
		".zst": func(w io.Writer) io.WriteCloser { e, _ := zstd.NewWriter(w); return e },
	} {
		t.Run(suffix, func(t *testing.T) {
			var text bytes.Buffer
			w := pack(&text)
			io.WriteString(w, read(t, in))
			w.Close()
			from := write(t, "in.csv"+suffix, text.String())
			out := filepath.Join(t.TempDir(), "out.csv"+suffix)
			args := append(args, "-in", from, "-out", out)

			engine, vars := serve(t)
			g := newGate(400)
			engine.SetLookup(g.lookup)
			cmd := program.Command(t, vars, binary, args...)
			wait := program.Start(t, cmd)
			<-g.reached
			program.WaitFor(t, func() bool { _, rows := recorded(t, out+".state"); return rows > 0 })
			cmd.Process.Kill()
			wait()
			close(g.pass)
			appendTo(t, out, "torn")

			engine, vars = serve(t)
			engine.SetLookup(sandbox.SyntheticCard)
			if got := bulk(t, vars, append(args, "-resume")...); got.Code != exitFailedRows || !strings.Contains(got.Stdout, "\nruns ") {
				t.Errorf("%+v", got)
			}
			file, err := os.Open(out)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			r, err := unpacked(out, file)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(r); err != nil || string(got) != read(t, plain) {
				t.Errorf("%v, %d bytes", err, len(got))
			}
		})
	}
}

func TestPipeInterrupted(t *testing.T) {
	_, vars := serve(t)
	cmd := program.Command(t, vars, binary, "-in", "-", "-out", "-", "-lines", "-keep-failed")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close() // never, as far as the program knows
	wait := program.Start(t, cmd)
	fmt.Fprintln(stdin, "411111")
	program.WaitFor(t, func() bool { return cmd.Process.Signal(os.Interrupt) == nil })
	if got := wait(); got.Code != 130 && got.Code != -1 {
		t.Errorf("%+v", got)
	}
}

// TestShellRecipe runs the README's commands for a shell.
func TestShellRecipe(t *testing.T) {
	_, vars := serve(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "transactions.csv"), []byte("id,card\n1,411111\n2,45717360\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, command := range recipes(t, "In a shell") {
		cmd := program.Command(t, vars, "bash", "-euc", "set -o pipefail; "+command)
		cmd.Dir = dir
		cmd.Env = append(cmd.Env, "PATH="+filepath.Dir(binaryNamed(t, "bulk"))+":"+os.Getenv("PATH"))
		if got := program.Run(t, cmd); got.Code != 0 || !strings.Contains(got.Stdout, "VISA") {
			t.Errorf("%s: %+v", command, got)
		}
	}
}

// TestRowsOfAnEngine feeds the program as Spark's pipe and ClickHouse's executable
// functions do: lines of JSON, one for each row, and as many back in their order.
func TestRowsOfAnEngine(t *testing.T) {
	_, vars := serve(t)
	for _, section := range []string{"In Spark", "In ClickHouse"} {
		command := recipes(t, section)[0]
		cmd := program.Command(t, vars, "bash", "-euc", command)
		cmd.Env = append(cmd.Env, "PATH="+filepath.Dir(binaryNamed(t, "bulk"))+":"+os.Getenv("PATH"))
		cmd.Stdin = strings.NewReader("{\"id\":1,\"card\":\"411111\"}\n{\"id\":2,\"card\":\"\"}\n{\"id\":3,\"card\":\"999999\"}\n")
		got := program.Run(t, cmd)
		lines := strings.Split(strings.TrimSuffix(got.Stdout, "\n"), "\n")
		if got.Code != 0 || len(lines) != 3 || !strings.Contains(lines[0], "VISA") || !strings.Contains(lines[1], "failed: empty") || !strings.HasPrefix(lines[2], `{"id":3,`) {
			t.Errorf("%s: %s: %+v", section, command, got)
		}
	}
}

// binaryNamed is the program under the name that a recipe calls.
func binaryNamed(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(binary, path); err != nil {
		t.Skip(err)
	}
	return path
}

// recipes are the commands under a heading of the README.
func recipes(t *testing.T, heading string) []string {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed")
	}
	_, after, found := strings.Cut(read(t, "README.md"), "### "+heading+"\n")
	if !found {
		t.Fatalf("the README has no %q", heading)
	}
	after, _, _ = strings.Cut(after, "\n#")
	var commands []string
	for {
		var block string
		if _, after, found = strings.Cut(after, "```sh\n"); !found {
			return commands
		}
		block, after, _ = strings.Cut(after, "```")
		commands = append(commands, block)
	}
}
