package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/internal/mask"
	"github.com/carddata/carddata-go/internal/proof/testkit/program"
	"github.com/carddata/carddata-go/internal/sandbox"
)

// binary is the program, as its users build it.
var binary string

func TestMain(m *testing.M) { program.Main(m, &binary) }

// serve starts a service for one test.
func serve(t *testing.T) (*sandbox.Engine, map[string]string) {
	t.Helper()
	fake := sandbox.NewFake(t, sandbox.Bins)
	return fake.Engine, map[string]string{"CARDDATA_BIN_URL": fake.URL(), "CARDDATA_API_KEY": "key-canary"}
}

func enrich(t *testing.T, vars map[string]string, args ...string) program.Result {
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
			continue // the program was killed before it sent the body
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
				"2, 411111 ,x,VISA,First Example Bank,840,,6,false,\n\n" +
				"3,999999,y,,,,,,,unknown bin\n", "",
		},
		{
			"spreadsheet that says its delimiter", "in.csv", "\ufeffsep=;\r\nid;card\r\n1;45717360\r\n", nil,
			"\ufeffsep=;\r\nid;card;card_brand;bank;country.numeric;alm;bin_length;cost.interchange.regulated;error\r\n" +
				"1;45717360;VISA;Eksempelbanken;208;false;8;true;\r\n", "",
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
		{"header only", "in.csv", "card\n", nil, "card,card_brand,bank,country.numeric,alm,bin_length,cost.interchange.regulated,error\n", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, vars := serve(t)
			in := write(t, test.file, test.input)
			out := filepath.Join(t.TempDir(), "out")
			got := enrich(t, vars, append([]string{"-in", in, "-out", out, "-columns", goldenColumns}, test.args...)...)
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

// TestDigits: eight digits of a card number are sent, unless -prefix says otherwise. The columns say
// by default whether authentication is required.
func TestDigits(t *testing.T) {
	for _, test := range []struct {
		args []string
		sent string
	}{{nil, "45717360"}, {[]string{"-prefix", "10"}, "4571736012"}, {[]string{"-prefix", "0"}, "4571736012345678"}} {
		engine, vars := serve(t)
		out := filepath.Join(t.TempDir(), "out.csv")
		got := enrich(t, vars, append([]string{"-in", write(t, "in.csv", "card\n4571 7360 1234 5678\n"), "-out", out}, test.args...)...)
		if cards := sent(t, engine); got.Code != 0 || len(cards) != 1 || cards[0] != test.sent {
			t.Errorf("%v: sent %q, %+v", test.args, cards, got)
		}
		if text := read(t, out); test.args == nil && (!strings.Contains(text, ",authentication.authentication_required,error\n") || !strings.Contains(text, ",DK,true,\n")) {
			t.Error(text)
		}
	}
}

func TestReport(t *testing.T) {
	engine, vars := serve(t)
	engine.Script(sandbox.Bins, sandbox.Fault{Status: 400})
	in := write(t, "in.csv", "card\n"+strings.Repeat("45717360\n", 60)+strings.Repeat("9", 30)+"\n")
	out := filepath.Join(t.TempDir(), "out.csv")
	got := enrich(t, vars, "-in", in, "-out", out)
	text := regexp.MustCompile(`\d+\.\d s`).ReplaceAllString(got.Stdout, "T")
	want := `complete, 61 failed  61  rows in T
known                0
unknown              0   rows whose card the service does not know
failed               61  rows without a result
  bad_request        60
  too_many_digits    1
cached               59  rows for which nothing was sent
distinct             1   identifiers sent
requests             1
output               ` + out + `
failed               ` + out + ".failed.csv" + `
`
	if got.Code != exitFailedRows || text != want {
		t.Errorf("%+v; want:\n%s", got, want)
	}
	var r report
	if got := enrich(t, vars, "-in", in, "-out", out, "-resume", "-json"); json.Unmarshal([]byte(got.Stdout), &r) != nil {
		t.Errorf("%+v", got)
	}
	if r.Outcome != "complete, 61 failed" || r.Rows != 61 || r.Failed != 61 || r.Errors["bad_request"] != 60 || r.Runs != 2 || r.Output != out {
		t.Errorf("report: %+v", r)
	}
	if first := strings.Split(read(t, out+".failed.csv"), "\n")[1]; !strings.HasPrefix(first, `2,45717360,bad_request,"bins: lookup: `) {
		t.Errorf("failed: %s", first)
	}
}

func TestInvented(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.csv")
	got := enrich(t, nil, "-sandbox", "-out", out, "-prefix", "6")
	rows := strings.Split(read(t, out), "\n")
	if got.Code != 0 || !strings.HasPrefix(got.Stdout, "complete  200,000 ") || rows[0] != "id,card,amount,currency,"+defaultColumns || len(rows) != inventedRows+2 {
		t.Fatalf("%+v; %d rows, beginning %s", got, len(rows), rows[0])
	}
	if number := strings.Split(rows[1], ",")[1]; len(number) != 16 || mask.CheckDigit(number) || strings.Contains(got.Stdout+got.Stderr, number) {
		t.Errorf("row %s; %+v", rows[1], got)
	}
}

// TestUsage has command lines that are refused. Nothing may be sent or written.
func TestUsage(t *testing.T) {
	engine, vars := serve(t)
	in := write(t, "in.csv", "id,card,type\n1,411111,x\n")
	out := filepath.Join(t.TempDir(), "out.csv")
	taken := write(t, "taken.csv", "mine")
	file := []string{"-in", in, "-out", out}
	for _, test := range []struct {
		vars   map[string]string
		args   []string
		stderr string
	}{
		{nil, file, "missing or empty: CARDDATA_BIN_URL, CARDDATA_API_KEY (-sandbox uses"},
		{map[string]string{"CARDDATA_BIN_URL": vars["CARDDATA_BIN_URL"]}, file, "missing or empty: CARDDATA_API_KEY ("},
		{map[string]string{"CARDDATA_BIN_URL": "", "CARDDATA_API_KEY": "key-canary"}, file, "missing or empty: CARDDATA_BIN_URL ("},
		{map[string]string{"CARDDATA_BIN_URL": "key-canary", "CARDDATA_API_KEY": "https://x"}, file, "CARDDATA_BIN_URL is no https URL"},
		{vars, nil, "enrich: -in and -out are needed"},
		{vars, []string{"-out", out}, "enrich: -in and -out are needed"},
		{vars, []string{"-in", in + "x.csv", "-out", out}, "enrich: open "},
		{vars, []string{"-in", filepath.Dir(in), "-field", "card", "-out", out}, "enrich: the input is a directory"},
		{vars, append(file, "4111111111111111"), "enrich: no arguments besides flags"},
		{vars, []string{"-4111111111111111"}, "enrich: flag provided but not defined: -411111******1111"},
		{vars, []string{"-in", "4111111111111111", "-out", out, "-column", "card"}, "enrich: open 411111******1111: "},
		{vars, append(file, "-column", "x", "-field", "x"), "enrich: -column and -field exclude"},
		{vars, append(file, "-column", "pan"), `enrich: the header of the input names no column "pan", but "id", "card", "type" (`},
		{vars, file, `enrich: the input has a column "type" already: rename the new one (-columns NAME=type)`},
		{vars, append(file, "-columns", "brand"), `enrich: the service's card object has no member "brand"`},
		{vars, append(file, "-columns", "a=type,a=prepaid"), `enrich: -columns names the column "a" twice`},
		{vars, append(file, "-concurrency", "0"), "enrich: -concurrency must be at least 1"},
		{vars, append(file, "-rate", "NaN"), "enrich: -concurrency must be at least 1, -rate not"},
		{vars, append(file, "-columns", "card_brand", "-prefix", "12"), "enrich: -prefix is 0 to 11"},
		{vars, append(file, "-delimiter", ";;"), "enrich: -delimiter is one of"},
		{vars, []string{"-in", in, "-out", in, "-columns", "card_brand"}, "enrich: " + in + " exists: "},
		{vars, []string{"-in", in, "-out", in, "-columns", "card_brand", "-resume"}, "enrich: there is no state to resume "},
		{vars, append(file, "-columns", "card_brand", "-failed", out), "enrich: " + out + " exists: "},
		{vars, append(file, "-failed", out+".state"), "enrich: " + out + ".state is the file of the run's state"},
		{vars, []string{"-in", in, "-out", taken, "-columns", "card_brand"}, "enrich: " + taken + " exists: "},
		{vars, []string{"-in", in, "-out", taken, "-resume", "-columns", "card_brand"}, "enrich: there is no state to resume " + taken + " from"},
		{vars, append(file, "-columns", "card_brand", "-failed", taken), "enrich: " + taken + " exists: "},
		{vars, []string{"-in", "-", "-out", "-", "-field", "x"}, "enrich: -out - needs -failed FILE"},
		{vars, []string{"-in", "-", "-out", "-", "-field", "x", "-failed", "f", "-resume"}, "enrich: what went to standard output cannot be resumed"},
		{vars, []string{"-in", "-", "-out", "-", "-failed", "f"}, "enrich: the input's format does not show in its name"},
		{vars, []string{"-in", write(t, "x.csv", "\xff\xfec\x00"), "-out", out}, "enrich: the input is UTF-16"},
		{vars, []string{"-in", write(t, "x.csv", ""), "-out", out}, "enrich: the input does not begin with a CSV header"},
	} {
		got := enrich(t, test.vars, test.args...)
		if got.Code != 2 || got.Stdout != "" || !strings.HasPrefix(got.Stderr, test.stderr) || strings.Count(got.Stderr, "\n") != 1 {
			t.Errorf("%q: %+v, want %s", test.args, got, test.stderr)
		}
		got.CheckMasked(t, "key-canary")
		if entries, _ := os.ReadDir(filepath.Dir(out)); len(entries) > 0 {
			t.Fatalf("%q: files were made: %v", test.args, entries)
		}
	}
	if engine.RequestCount(sandbox.Bins) != 0 || read(t, taken) != "mine" {
		t.Error("something was sent or written")
	}
	if got := enrich(t, nil, "-h"); got.Code != 0 || got.Stdout != usage || got.Stderr != "" {
		t.Errorf("%+v", got)
	}
}

// TestMasks has the service quote the card number wherever it can.
func TestMasks(t *testing.T) {
	for name, input := range map[string]string{
		"in.csv":    "card\n" + canary + "\n4111 1111 1111 1111\n4111-1111-1111-1111\n\"" + canary + "\"x\n" + canary + canary + "\n",
		"in.ndjson": `{"card":"` + canary + `"}` + "\n{\"card\":" + canary + "}\n{\"card\":4111111111111111.0}\n{\"card\":" + canary + "\n",
	} {
		for _, fail := range []bool{false, true} {
			engine, vars := serve(t)
			engine.SetLookup(func(string) json.RawMessage {
				return json.RawMessage(`{"bin":"4111111111111111","error":"no card 4111-1111-1111-1111\u001b[2J\nfound",
					"data":{"card":{"pan_or_token":"4111111111111111","card_brand":"VISA"}}}`)
			})
			if fail {
				engine.Script(sandbox.Bins, sandbox.Fault{Status: 400, Body: new(`{"error":{"code":"4111111111111111","message":"no 4111111111111111"}}`)})
			}
			out := filepath.Join(t.TempDir(), "out")
			got := enrich(t, vars, "-in", write(t, name, input), "-out", out, "-json", "-columns", "card_brand,error")
			got.CheckMasked(t, "key-canary", "\x1b")
			for _, path := range []string{out + ".failed.csv", out + ".state"} {
				program.Result{Stdout: read(t, path)}.CheckMasked(t, "key-canary", "\x1b")
			}
			if !fail && !strings.Contains(read(t, out), "no card 411111******1111 [2J found") {
				t.Errorf("output:\n%s", read(t, out))
			}
		}
	}
}
