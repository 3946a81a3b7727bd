package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/carddata/carddata-go/examples/fleet/internal/redistest"
	"github.com/carddata/carddata-go/internal/sandbox"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestReadmeShowsTheRun compares the README and the chart with the committed run.
func TestReadmeShowsTheRun(t *testing.T) {
	var r report
	if err := json.Unmarshal([]byte(read(t, "fleet.json")), &r); err != nil {
		t.Fatal(err)
	}
	var table, chart bytes.Buffer
	if err := r.print(&table); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(read(t, "README.md"), "\n"+table.String()) {
		t.Errorf("the README does not show\n%s", &table)
	}
	if err := r.draw(&chart); err != nil {
		t.Fatal(err)
	}
	if read(t, "fleet.svg") != chart.String() {
		t.Error("fleet.svg is not of fleet.json: go -C examples/fleet run . -out .")
	}
}

// TestReadmeCode runs the code that the README shows.
func TestReadmeCode(t *testing.T) {
	_, code, ok := strings.Cut(read(t, "README.md"), "```go\n")
	if code, _, _ = strings.Cut(code, "```"); !ok || !strings.HasSuffix(read(t, "example_test.go"), "\n"+code) {
		t.Error("the README shows other code than example_test.go")
	}
	redis := redistest.Start(t)
	service, err := sandbox.New().ListenTCP("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer service.Close()
	loader, err := newLoader(service.URL(), "key", redis.URL)
	if err != nil {
		t.Fatal(err)
	}
	result, err := loader.Load(t.Context(), "411111")
	if card, _ := result.Card(); err != nil || card.CardBrand != "VISA" {
		t.Errorf("%v, %v", result, err)
	}
	// A loader shares a response after it has given it.
	client := redistest.Connect(t, redis)
	for end := time.Now().Add(5 * time.Second); client.DBSize(t.Context()).Val() < 2; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the response is not in Redis")
		}
	}
	if n := client.Exists(t.Context(), "quota:carddata-bins").Val(); n != 1 {
		t.Error("no quota in Redis")
	}
}
