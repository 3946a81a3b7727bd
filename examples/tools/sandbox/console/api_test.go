package console

import (
	"bytes"
	"encoding/json"
	"strconv"
	"sync"
	"testing"
)

func TestEvents(t *testing.T) {
	s := start(t)
	s.refund("a")
	stream := s.listen()
	if all := stream.next("snapshot").Requests; len(all) != 1 || all[0].Status != 200 {
		t.Errorf("snapshot: %+v", all)
	}
	s.refund("b")
	if all := stream.next("update").Requests; len(all) != 1 || all[0].Number != 2 {
		t.Errorf("update: %+v", all)
	}
	s.send("POST", "/sandbox/reset", "")
	for list := stream.next("update"); list.Oldest != 3; list = stream.next("update") {
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
	stream := s.listen()
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
	seen := make(map[int]bool)
	for list := stream.next("snapshot"); ; list = stream.next("update") {
		for _, e := range list.Requests {
			seen[e.Number] = seen[e.Number] || e.State != open
		}
		if list.Areas["refunds"] == refunds {
			break
		}
	}
	if len(seen) != callers*each {
		t.Errorf("the stream told of %d requests", len(seen))
	}
}
