package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"
	"github.com/redis/go-redis/v9"
	"github.com/xitongsys/parquet-go/writer"

	"github.com/carddata/carddata-go/examples/fleet/quota"
	"github.com/carddata/carddata-go/examples/fleet/redisclient"
	"github.com/carddata/carddata-go/internal/sandbox"
)

func TestMain(m *testing.M) {
	flag.Parse()
	beam.Init()
	os.Setenv("CARDDATA_API_KEY", "key")
	if dir := os.Getenv("BEAM_CHILD"); dir != "" {
		if err := work(dir); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// work is a process of several that have 30 requests a second together: a third each,
// or what they need of it by way of Redis.
func work(dir string) error {
	if address := os.Getenv("REDIS_URL"); address != "" {
		client, err := redisclient.New(address)
		if err == nil {
			limiter, err = quota.New(client, "beam", 30, 1)
		}
		if err != nil {
			return err
		}
	}
	j := job{in: dir + "/in.csv", out: dir + "/out", column: "card", prefix: 8, groups: 2, files: 1,
		service: Service{URL: os.Getenv("CARDDATA_BIN_URL"), Rate: 30.0 / 3}}
	return j.execute(prism.Execute)
}

// TestSharesOfAQuota has three processes look up at once. The service's own record
// tells what they made of the quota.
func TestSharesOfAQuota(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes the quota its seconds")
	}
	t.Run("thirds", func(t *testing.T) {
		requests, most, took := lookUpAtOnce(t, []int{1500, 1500, 1500})
		// 30 of each process, a tenth of a second apart; some may be held up on the way.
		if requests < 3*30 || requests > 3*(30+1) || took < 2500*time.Millisecond {
			t.Errorf("%d requests in %s, at most %d in a second", requests, took, most)
		}
	})
	t.Run("Redis", func(t *testing.T) {
		address, client := startRedis(t)
		// One process has nearly all the work, and may use nearly all the quota.
		requests, most, took := lookUpAtOnce(t, []int{4300, 100, 100}, "REDIS_URL="+address)
		if requests < 90 || requests > 90+3*2 || took < 2500*time.Millisecond {
			t.Errorf("%d requests in %s, at most %d in a second", requests, took, most)
		}
		if n := client.Exists(t.Context(), "quota:beam").Val(); n != 1 {
			t.Error("no quota in Redis")
		}
	})
}

// lookUpAtOnce starts a process for each number of cards, and returns what the
// service has seen of them all: the requests, the most within a second, and how long
// they took.
func lookUpAtOnce(t *testing.T, cards []int, environment ...string) (requests, most int, took time.Duration) {
	engine := sandbox.New()
	engine.SetLookup(sandbox.SyntheticCard)
	server, err := engine.ListenTCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	var processes sync.WaitGroup
	for process, rows := range cards {
		dir := t.TempDir()
		var text strings.Builder
		text.WriteString("card\n")
		for i := range rows {
			fmt.Fprintf(&text, "4%d%06d00000000\n", process, i)
		}
		if err := os.WriteFile(dir+"/in.csv", []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		processes.Go(func() {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), append(environment, "BEAM_CHILD="+dir, "CARDDATA_BIN_URL="+server.URL())...)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			if got := lines(t, dir+"/out-*"); strings.Count(got, "\n") != rows { // and the header
				t.Errorf("%d rows", strings.Count(got, "\n"))
			}
		})
	}
	processes.Wait()
	record := engine.Requests(sandbox.Bins)
	first := 0
	for i, r := range record {
		for r.Time.Sub(record[first].Time) >= time.Second {
			first++
		}
		most = max(most, i-first+1)
	}
	took = record[len(record)-1].Time.Sub(record[0].Time)
	t.Logf("%d requests in %s, at most %d in a second", len(record), took, most)
	return len(record), most, took
}

func startRedis(t *testing.T) (address string, client redis.UniversalClient) {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "redis")
	cmd := exec.Command("redis-server", "--port", "0", "--unixsocket", socket, "--save", "")
	if err := cmd.Start(); err != nil {
		if os.Getenv("CI_REQUIRE_SERVERS") != "" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	address = "unix://" + socket
	client, err := redisclient.New(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	redisclient.Silence()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if err := client.Ping(t.Context()).Err(); err == nil {
			return address, client
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// TestRowsTravelWhole runs each kind of input, and then the rows that failed, for
// which the service has an answer by then.
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
		{"in.ndjson", "{\"card\":4111111111111111, \"id\":1}\n{\"card\":\"999999\"}\n{}\nno object\n",
			`{"card":4111111111111111, "id":1,"brand":"VISA","type":"CREDIT","country":"US","bank":"FIRST EXAMPLE BANK"}`,
			"{\"card\":\"999999\",\"reason\":\"unknown bin\"}\n{\"reason\":\"no card\"}\n{\"unreadable\":\"no object\",\"reason\":\"not a JSON object\"}"},
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
		again := j
		again.in, again.out = j.out+".failed-*", filepath.Join(dir, "again")
		if err := again.execute(prism.Execute); err != nil {
			t.Fatal(err)
		}
		if got := lines(t, again.out+".failed-*"); got != test.failed || lines(t, again.out+"-*") != "" {
			t.Errorf("%s: the second time\n%s", test.name, got)
		}
	}
}

// TestNothingOfAnEarlierRunStays runs a job again when its failed row is known, and with
// fewer files. Rows that stayed in either output would be taken for those of this run.
func TestNothingOfAnEarlierRunStays(t *testing.T) {
	server, err := sandbox.New().ListenTCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	process.Once = sync.Once{} // the client of another test's sandbox
	t.Cleanup(func() { process.Once = sync.Once{} })
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	j := job{in: filepath.Join(dir, "in.csv"), out: filepath.Join(dir, "out"), column: "card", prefix: 8, groups: 2, files: 20, service: Service{URL: server.URL()}}
	write("in.csv", "id,card\n1,4111111111111111\n2,4571736000000000\n3,999999\n")
	if err := j.execute(prism.Execute); err != nil {
		t.Fatal(err)
	}
	if got := lines(t, j.out+".failed-*"); got != "3,999999,unknown bin\nid,card,reason" {
		t.Fatalf("failed at first:\n%s", got)
	}
	write("in.csv", "id,card\n1,4111111111111111\n2,4571736000000000\n3,4111111111111111\n")
	kept := []string{write("out-notes.csv", "mine"), write("out.failed-00000.ndjson", "of another job")}
	failing := func(context.Context, *beam.Pipeline) (beam.PipelineResult, error) {
		return nil, errors.New("no runner")
	}
	if err := j.execute(failing); err == nil || lines(t, j.out+".failed-*.csv") == "" {
		t.Errorf("a run that failed has removed the files of the one before, %v", err)
	}
	j.files = 1
	if err := j.execute(prism.Execute); err != nil {
		t.Fatal(err)
	}
	if got, _ := filepath.Glob(j.out + "*"); !slices.Equal(got, []string{j.out + "-00000.csv", kept[0], kept[1]}) {
		t.Errorf("after the second run there are %v", got)
	}
	if got := lines(t, j.out+"-0*"); strings.Count(got, "\n") != 3 {
		t.Errorf("the output is\n%s", got)
	}
	again := j
	again.in = j.out + "-0*.csv"
	if err := again.execute(failing); err == nil || !strings.Contains(err.Error(), "is an input") {
		t.Errorf("an input that would be written over: %v", err)
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

// lines are the sorted lines of files, each of them once.
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
	for card, want := range map[string]string{"4111111111111111": "41111111", "4111 1111 1111 1111": "41111111", "4111-1111-1111-1111": "41111111", "411111": "411111", "": "",
		"4111.1111.1111.1111": "41111111", "4111/1111_1111\u00a01111": "41111111", "card 4111111111111111": "41111111", "4111.11": "411111", "４１１１１１１１１１１１１１１１": "４１１１１１１１", "tok_1a2b3c4d": "tok_1a2b3c4d"} {
		if id, err := identify(t.Context(), card, 8); id != want || (err == nil) != (want != "") {
			t.Errorf("%q is looked up as %q, %v", card, id, err)
		}
	}
	defer func() { tokenise = nil }()
	tokenise = func(_ context.Context, card string) (string, error) { return card, nil }
	if id, err := identify(t.Context(), "4111-1111-1111-1111", 8); id != "" || err == nil {
		t.Errorf("a tokeniser's card number is looked up as %q, %v", id, err)
	}
	if id, err := identify(t.Context(), "４１１１１１１１１１１１\n１１１１", 8); id != "" || err == nil {
		t.Errorf("a tokeniser's card number in another script is looked up as %q, %v", id, err)
	}
	tokenise = func(context.Context, string) (string, error) { return "tok_1", errors.New("down") }
	if _, err := identify(t.Context(), "4111111111111111", 8); err == nil {
		t.Error("a tokeniser that failed was believed")
	}
}
