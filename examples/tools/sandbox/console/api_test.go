package console

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
)

func TestEvents(t *testing.T) {
	s := start(t)
	s.refund("a")
	resp, err := http.DefaultTransport.RoundTrip(s.request("GET", "/sandbox/events", ""))
	if err != nil || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatal(resp, err)
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	next := func(event string) (list listing) {
		t.Helper()
		var text string
		for !strings.HasSuffix(text, "\n\n") {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			text += line
		}
		data, found := strings.CutPrefix(text, "event: "+event+"\ndata: ")
		if !found || json.Unmarshal([]byte(data), &list) != nil {
			t.Fatalf("%q", text)
		}
		return list
	}
	if all := next("snapshot").Requests; len(all) != 1 || all[0].Status != 200 {
		t.Errorf("snapshot: %+v", all)
	}
	s.refund("b")
	if all := next("update").Requests; len(all) != 1 || all[0].Number != 2 {
		t.Errorf("update: %+v", all)
	}
	s.send("POST", "/sandbox/reset", "")
	for next("update").Oldest != 3 {
	}
}

// TestRecorded: the sandbox says of a refund whether it was recorded, even if the caller got no
// response.
func TestRecorded(t *testing.T) {
	s := start(t)
	s.refund("a")
	s.send("POST", "/sandbox/faults", `{"fault": "drop_after_accept", "area": "refunds", "next": 1}`)
	s.refund("b")
	s.send("POST", "/sandbox/faults", `{"status": 503, "area": "refunds", "next": 1}`)
	s.refund("c")
	for query, want := range map[string]string{
		"account=acct&refund_id=a": `{"recorded":true}`, "account=acct&refund_id=b": `{"recorded":true}`,
		"account=acct&refund_id=c": `{"recorded":false}`, "account=other&refund_id=a": `{"recorded":false}`,
	} {
		if got := strings.TrimSpace(s.send("GET", "/sandbox/refunds?"+query, "").body); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	for i := range 1100 { // more than are kept
		s.refund(strconv.Itoa(i))
	}
	if got := strings.TrimSpace(s.send("GET", "/sandbox/refunds?account=acct&refund_id=c", "").body); got != `{"recorded":null}` {
		t.Errorf("no longer kept: %s", got)
	}
}

func TestExport(t *testing.T) {
	s := start(t)
	s.refund("a")
	s.lookup("411111")
	lines := json.NewDecoder(bytes.NewReader([]byte(s.send("GET", "/sandbox/requests.ndjson", "").body)))
	for _, want := range []string{`{"refund_id":"a"}`, `{"cards":[{"card":"411111"}]}`} {
		var d struct {
			Request struct{ Body json.RawMessage }
		}
		if err := lines.Decode(&d); err != nil || string(d.Request.Body) != want {
			t.Errorf("%s, %v; want %s", d.Request.Body, err, want)
		}
	}
	if lines.More() {
		t.Error("more lines than requests")
	}
}

func TestConcurrentUse(t *testing.T) {
	s := start(t)
	s.fault(`{"fault":"drop_after_accept","percent":30}`)
	const callers, each = 8, 20
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for i := range each {
				s.refund(strconv.Itoa(i))
				s.send("GET", "/sandbox/requests/"+strconv.Itoa(i), "")
			}
		})
	}
	wg.Wait()
	refunds := get[state](s, "/sandbox/state").Areas["refunds"]
	if want := callers * each; refunds.Requests != want || refunds.OK+refunds.Cut != want || refunds.Duplicates != want-each {
		t.Errorf("%+v", refunds)
	}
}
