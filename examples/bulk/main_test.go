package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/carddata/carddata-go/examples/internal/program"
	"github.com/carddata/carddata-go/internal/sandbox"
)

// binary is the program, as its users build it.
var binary string

func TestMain(m *testing.M) { program.Main(m, &binary) }

// serve starts a service of the test's own.
func serve(t *testing.T) (*sandbox.Engine, program.Variables) {
	t.Helper()
	engine := sandbox.New()
	server, err := engine.ListenTCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return engine, program.Variables{"CARDDATA_BIN_URL": server.URL(), "CARDDATA_API_KEY": "key-canary"}
}

func bulk(t *testing.T, vars program.Variables, args ...string) program.Result {
	t.Helper()
	return program.Run(t, program.Command(t, vars, binary, args...))
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// sent returns the identifiers of the requests that arrived whole.
func sent(t *testing.T, engine *sandbox.Engine) []string {
	t.Helper()
	var all []string
	for _, r := range engine.Requests(sandbox.Bins) {
		if len(r.Body) == 0 {
			continue // killed between the header and the body: nothing was asked for
		}
		var body struct{ Cards []struct{ Card string } }
		if err := json.Unmarshal(r.Body, &body); err != nil {
			t.Fatal(err)
		}
		for _, card := range body.Cards {
			all = append(all, card.Card)
		}
	}
	return all
}

func TestDemo(t *testing.T) {
	temp := t.TempDir()
	got := bulk(t, nil, "-demo", temp)
	if got.Code != 0 || !regexp.MustCompile(`^complete +200,000 +rows in `).MatchString(got.Stdout) ||
		!regexp.MustCompile(`(?m)^known +200,000\nunknown +0 `).MatchString(got.Stdout) {
		t.Fatalf("%+v", got)
	}
	out := filepath.Join(temp, "enriched.csv")
	if !regexp.MustCompile(`(?m)^output +` + regexp.QuoteMeta(out) + `$`).MatchString(got.Stdout) {
		t.Errorf("%+v", got)
	}
	rows := strings.Split(read(t, out), "\n")
	if rows[0] != "id,card,amount,currency,"+defaultColumns || len(rows) != demoRows+2 {
		t.Errorf("%d rows, beginning %s", len(rows), rows[0])
	}
	for _, row := range []string{rows[1], rows[demoRows/2], rows[demoRows]} {
		fields := strings.Split(row, ",")
		var item struct {
			Data struct {
				Card struct{ Bank struct{ Name string } }
			}
		}
		if err := json.Unmarshal(sandbox.SyntheticCard(fields[1]), &item); err != nil || fields[9] != item.Data.Card.Bank.Name {
			t.Errorf("row %s; want bank %s (%v)", row, item.Data.Card.Bank.Name, err)
		}
	}
	if requests := regexp.MustCompile(`(?m)^requests +(\d+) `).FindStringSubmatch(got.Stdout); requests == nil || len(requests[1]) > 3 {
		t.Errorf("requests: %v", requests)
	}
	cardNumber := regexp.MustCompile(`\b4\d{15}\b`)
	if found := cardNumber.FindString(got.Stdout + got.Stderr + read(t, out+".state")); found != "" {
		t.Errorf("a card number was printed: %s", found)
	}
}

func TestDemoLeavesNothing(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	t.Setenv("TMP", temp) // on windows
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var stdout, stderr bytes.Buffer
	code := run(ctx, nil, nil, &stdout, &stderr, program.Variables{}.Lookup)
	entries, err := os.ReadDir(temp)
	if err != nil || code != 130 || len(entries) > 0 || !strings.Contains(stderr.String(), "\nremoved "+temp) {
		t.Errorf("exit code %d, %v, %v; error output:\n%s", code, entries, err, &stderr)
	}
	missing := filepath.Join(temp, "missing")
	if got := bulk(t, nil, "-demo", missing); got.Code != 2 || !strings.Contains(got.Stderr, "\nbulk: -demo: open "+missing) {
		t.Errorf("%+v", got)
	}
}

const goldenColumns = "card_brand,bank=bank.clean_name,country.numeric,alm,bin_length,cost.interchange.regulated,error"

func TestFormats(t *testing.T) {
	for _, test := range []struct {
		name, file, input string
		args              []string
		output, failed    string
	}{
		{
			"csv", "in.csv", "id,card,note\n1,45717360,\"a, \"\"b\"\"\nand c\"\n2, 411111 ,x\n\n3,999999,y", nil,
			"id,card,note,card_brand,bank,country.numeric,alm,bin_length,cost.interchange.regulated,error\n" +
				"1,45717360,\"a, \"\"b\"\"\nand c\",VISA,Eksempelbanken,208,false,8,true,\n" +
				"2, 411111 ,x,VISA,First Example Bank,840,,6,false,\n" +
				"3,999999,y,,,,,,,unknown bin\n", "",
		},
		{
			"windows csv, other name", "in.dat", "\ufeff\"the card\",id\r\n45717360,1\r\n", []string{"-column", "the card"},
			"\ufeff\"the card\",id,card_brand,bank,country.numeric,alm,bin_length,cost.interchange.regulated,error\r\n" +
				"45717360,1,VISA,Eksempelbanken,208,false,8,true,\r\n", "",
		},
		{
			"ndjson", "in.jsonl", "\ufeff{\"card\":\"45717360\", \"n\":1.50} \r\n{\"card\":411111}\n{\"card\":\"999999\"}\n", nil,
			`{"card":"45717360", "n":1.50,"card_brand":"VISA","bank":"Eksempelbanken","country.numeric":"208","alm":false,"bin_length":8,"cost.interchange.regulated":true,"error":null}` + "\r\n" +
				`{"card":411111,"card_brand":"VISA","bank":"First Example Bank","country.numeric":"840","alm":null,"bin_length":6,"cost.interchange.regulated":false,"error":null}` + "\n" +
				`{"card":"999999","card_brand":null,"bank":null,"country.numeric":null,"alm":null,"bin_length":null,"cost.interchange.regulated":null,"error":"unknown bin"}` + "\n", "",
		},
		{
			"lines", "in.txt", "45717360\n\n\"x,y\"\n", nil,
			"card,card_brand,bank,country.numeric,alm,bin_length,cost.interchange.regulated,error\n" +
				"45717360,VISA,Eksempelbanken,208,false,8,true,\n" +
				"\"\"\"x,y\"\"\",,,,,,,unknown bin\n", "",
		},
		{"header only", "in.csv", "card\n", nil, "card,card_brand,bank,country.numeric,alm,bin_length,cost.interchange.regulated,error\n", ""},
		{"nothing", "in.txt", "", nil, "card,card_brand,bank,country.numeric,alm,bin_length,cost.interchange.regulated,error\n", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, vars := serve(t)
			in := write(t, test.file, test.input)
			out := filepath.Join(t.TempDir(), "out")
			got := bulk(t, vars, append([]string{"-in", in, "-out", out, "-columns", goldenColumns}, test.args...)...)
			if got.Code != 0 {
				t.Fatalf("%+v", got)
			}
			if text := read(t, out); text != test.output {
				t.Errorf("output:\n%s\nwant:\n%s", text, test.output)
			}
			if text := read(t, out+".failed.csv"); text != failedHead+test.failed {
				t.Errorf("failed:\n%s", text)
			}
			for _, path := range []string{out, out + ".failed.csv", out + ".state"} {
				if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
					t.Errorf("%s: %v, %v", path, info.Mode(), err)
				}
			}
		})
	}
}

func TestReport(t *testing.T) {
	engine, vars := serve(t)
	engine.Script(sandbox.Bins, sandbox.Fault{Status: 503}, sandbox.Fault{Status: 400})
	in := write(t, "in.txt", strings.Repeat("45717360\n", 60)+strings.Repeat("9", 30)+"\n")
	dir := t.TempDir()
	out, path := filepath.Join(dir, "out.csv"), filepath.Join(dir, "report.json")
	got := bulk(t, vars, "-in", in, "-out", out, "-report", path)
	text := regexp.MustCompile(`\d+\.\d s, [\d,]+ rows/s`).ReplaceAllString(got.Stdout, "T")
	want := `complete, 61 failed  61  rows in T
known                0
unknown              0   rows whose card the service does not know
failed               61  rows without an answer
  bad_request        60
  too_many_digits    1
cached               59  rows for which nothing was sent
distinct             1   identifiers sent
requests             2   of them 1 retries
output               ` + out + `
failed               ` + out + ".failed.csv" + `
`
	if got.Code != exitFailedRows || text != want {
		t.Errorf("%+v; want:\n%s", got, want)
	}
	var r report
	if err := json.Unmarshal([]byte(read(t, path)), &r); err != nil {
		t.Fatal(err)
	}
	if r.Outcome != "complete, 61 failed" || r.Rows != 61 || r.Known != 0 || r.Failed != 61 || r.Errors["bad_request"] != 60 ||
		r.Errors["too_many_digits"] != 1 || r.Cached != 59 || r.Distinct != 1 || r.Requests != 2 || r.Retries != 1 ||
		r.Runs != 1 || r.Seconds <= 0 || r.RowsPerSecond <= 0 || r.Output != out || r.FailedFile != out+".failed.csv" {
		t.Errorf("report: %+v", r)
	}
	if first := strings.Split(read(t, out+".failed.csv"), "\n")[1]; !strings.HasPrefix(first, `1,45717360,bad_request,"bins: lookup: `) {
		t.Errorf("failed: %s", first)
	}
}

func TestKindsOfFailure(t *testing.T) {
	for _, test := range []struct {
		fault sandbox.Fault
		kind  string
	}{
		{sandbox.Fault{Body: `{"cards":[]}`}, "missing"},
		{sandbox.Fault{Body: "<html>", ContentType: "text/html"}, "bad_response"},
		{sandbox.Fault{Status: 413}, "too_large"},
		{sandbox.Fault{Status: 409}, "conflict"},
	} {
		engine, vars := serve(t)
		engine.Script(sandbox.Bins, test.fault)
		out := filepath.Join(t.TempDir(), "out")
		got := bulk(t, vars, "-in", write(t, "in.txt", "411111\n"), "-out", out)
		if got.Code != exitFailedRows || !strings.HasPrefix(read(t, out+".failed.csv"), failedHead+"1,411111,"+test.kind+",") {
			t.Errorf("%s: %+v\n%s", test.kind, got, read(t, out+".failed.csv"))
		}
	}
}

// A range within another one has another answer, which shows when an identifier of
// both comes later.
func TestConflictingRanges(t *testing.T) {
	engine, vars := serve(t)
	for card, bounds := range map[string][2]string{"411112": {"4111", "4111"}, "411114": {"411114", "411114"}} {
		engine.SetResult(card, json.RawMessage(fmt.Sprintf(`{"bin":%q,"data":{"card":{"bin_min":%q,"bin_max":%q,"card_brand":%q}}}`,
			card, number(first(bounds[0])), number(last(bounds[1])), card)))
	}
	var text strings.Builder
	text.WriteString("411112\n411114\n")
	for i := range 500 {
		fmt.Fprintf(&text, "5%06d\n", i)
	}
	text.WriteString("4111145\n")
	out := filepath.Join(t.TempDir(), "out")
	got := bulk(t, vars, "-in", write(t, "in.txt", text.String()), "-out", out, "-ranges", "-columns", "card_brand", "-concurrency", "1")
	if got.Code != 0 || !regexp.MustCompile(`(?m)^conflicts +1 +ranges within others`).MatchString(got.Stdout) ||
		!strings.HasPrefix(read(t, out), "card,card_brand\n411112,411112\n411114,411114\n") || !strings.HasSuffix(read(t, out), "\n4111145,411114\n") {
		t.Errorf("%+v\n%s", got, read(t, out))
	}
}

func TestRate(t *testing.T) {
	engine, vars := serve(t)
	var text strings.Builder
	for i := range 200 {
		fmt.Fprintf(&text, "4%05d\n", i)
	}
	got := bulk(t, vars, "-in", write(t, "in.txt", text.String()), "-out", filepath.Join(t.TempDir(), "out"), "-rate", "20")
	requests := engine.Requests(sandbox.Bins)
	if got.Code != 0 || len(requests) != 4 {
		t.Fatalf("%d requests; %+v", len(requests), got)
	}
	// The first waits for none, and the last for three twentieths of a second.
	if took := requests[3].Time.Sub(requests[0].Time); took < 100*time.Millisecond {
		t.Errorf("4 requests in %s", took)
	}
}
