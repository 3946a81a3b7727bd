package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"
	"github.com/xitongsys/parquet-go/writer"

	"github.com/carddata/carddata-go/internal/sandbox"
)

func TestMain(m *testing.M) {
	flag.Parse()
	beam.Init()
	os.Setenv("CARDDATA_API_KEY", "key")
	os.Exit(m.Run())
}

// TestRowsTravelWhole runs each kind of input.
func TestRowsTravelWhole(t *testing.T) {
	engine := sandbox.New()
	server, err := engine.ListenTCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	const parquet = "in.parquet"
	for _, test := range []struct{ name, in, known, failed string }{
		{parquet, "1,4111111111111111\n2,4571 7360 0000 0000\n3,999999\n4,\n",
			"1,4111111111111111,VISA,CREDIT,US,FIRST EXAMPLE BANK\n2,4571 7360 0000 0000,VISA,DEBIT,DK,EKSEMPELBANKEN\nid,card,brand,type,country,bank",
			"3,999999,unknown bin\n4,,no card\nid,card,reason"},
		{"in.csv", "id,card,note\n1,4111111111111111,\"a, b\"\n2,4571 7360 0000 0000,\n3,999999,c\n4\n5,,\n",
			"1,4111111111111111,\"a, b\",VISA,CREDIT,US,FIRST EXAMPLE BANK\n2,4571 7360 0000 0000,,VISA,DEBIT,DK,EKSEMPELBANKEN\nid,card,note,brand,type,country,bank",
			"3,999999,c,unknown bin\n4,not a record of as many fields as the header\n5,,,no card\nid,card,note,reason"},
	} {
		dir := t.TempDir()
		j := job{in: filepath.Join(dir, test.name), out: filepath.Join(dir, "out"), column: "card", prefix: 8, groups: 2, files: 3, service: Service{URL: server.URL()}}
		content := []byte(test.in)
		if test.name == parquet {
			content = toParquet(t, test.in)
		}
		if err := os.WriteFile(j.in, content, 0o600); err != nil {
			t.Fatal(err)
		}
		before := engine.RequestCount(sandbox.Bins)
		if err := j.execute(prism.Execute); err != nil {
			t.Fatal(err)
		}
		if n := engine.RequestCount(sandbox.Bins) - before; n > 2 {
			t.Errorf("%s: %d requests", test.name, n)
		}
		if got := lines(t, j.out+"-*"); got != test.known {
			t.Errorf("%s: known are\n%s", test.name, got)
		}
		if got := lines(t, j.out+".failed-*"); got != test.failed {
			t.Errorf("%s: failed are\n%s", test.name, got)
		}
		if err := j.execute(prism.Execute); err == nil || !strings.Contains(err.Error(), "has files already") {
			t.Errorf("%s: beside an earlier run: %v", test.name, err)
		}
	}
}

// toParquet makes a Parquet file of lines with an id and a card.
func toParquet(t *testing.T, text string) []byte {
	t.Helper()
	var file bytes.Buffer
	w, err := writer.NewParquetWriterFromWriter(&file, new(ParquetRow), 1)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text) {
		id, card, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ",")
		number, err := strconv.ParseInt(id, 10, 64)
		if err := errors.Join(err, w.Write(ParquetRow{number, card})); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.WriteStop(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// lines returns the sorted lines of files, without repetitions.
func lines(t *testing.T, pattern string) string {
	t.Helper()
	found := map[string]int{}
	names, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSuffix(line, "\n"); found[line] == 0 {
				all = append(all, line)
			}
			found[line]++
		}
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func TestNoKeyIsACardNumber(t *testing.T) {
	for card, want := range map[string]string{"4111111111111111": "41111111", "4111 1111-1111 1111": "41111111", "411111": "411111", "": "",
		"4111.1111/1111_1111\u00a01111": "41111111", "card 4111111111111111": "41111111", "4111.11": "411111", "tok_1a2b3c4d": "tok_1a2b3c4d"} {
		if id, err := identify(card, 8); id != want || (err == nil) != (want != "") {
			t.Errorf("%q is looked up as %q, %v", card, id, err)
		}
	}
}
