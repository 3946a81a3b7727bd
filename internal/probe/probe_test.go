package probe

import (
	"bytes"
	"compress/gzip"
	"context"
	crand "crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/internal/memnet"
	"github.com/carddata/carddata-go/internal/sandbox"
)

// Under GODEBUG=fips140=only the first random number needs a clock that runs, which
// the clock of a bubble does not.
func init() { crand.Read(make([]byte, 1)) }

var target = Target{
	BinURL: "http://service.example", APIKey: "key-of-the-probe", UpdaterURL: "http://service.example", AccessToken: "token-of-the-probe",
	MerchantID: "merchant-of-the-probe", RefundURL: "http://service.example/base", Account: "account-of-the-probe", Job: "42", Pending: "43",
}

// serve has engine answer on a network in memory until the test ends.
func serve(t *testing.T, h http.Handler, idle time.Duration) Config {
	listener := memnet.Listen()
	server := &http.Server{Handler: http.StripPrefix("/base", h), IdleTimeout: idle}
	plain := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/base/") {
			server.Handler.ServeHTTP(w, r)
			return
		}
		h.ServeHTTP(w, r)
	}), IdleTimeout: idle}
	go plain.Serve(listener)
	t.Cleanup(func() { plain.Close() })
	return Config{Mode: ModeWrite, Say: t.Logf, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) { return listener.Dial(ctx) }}
}

func ask(t *testing.T, path string, config Config) ([]Point, string) {
	t.Helper()
	ledger, err := OpenLedger(path)
	if err != nil {
		t.Fatal(err)
	}
	defer ledger.Close()
	plan := NewPlan(target, ledger.Run())
	stopped, err := Run(t.Context(), plan, ledger, config)
	if err != nil {
		t.Fatal(err)
	}
	return Points(plan, ledger), stopped
}

// variant draws a service.
func variant(random *rand.Rand) *sandbox.Profile {
	pick := func(list ...string) string { return list[random.IntN(len(list))] }
	some := func(list ...string) []string {
		random.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
		list = list[:random.IntN(len(list)+1)]
		slices.Sort(list)
		return list
	}
	or := func(list []string, none string) []string {
		if len(list) == 0 {
			return []string{none}
		}
		return list
	}
	p := &sandbox.Profile{Version: 1, Points: map[string][]string{
		"lookup.order":        {pick("kept", "changed")},
		"lookup.items":        {pick("one per card", "one per card", "fewer", "more")},
		"lookup.duplicates":   {pick("kept", "merged")},
		"lookup.echo":         {pick("whole", "prefix 4", "prefix 6", "prefix 7", "prefix 8", "prefix 9", "prefix 10", "absent")},
		"lookup.unknown":      {pick("error item", "null data", "left out", "status 404", "status 422", "status 500")},
		"lookup.nulls":        or(some("additional_card_brands.bin_max", "alm", "bank.phone", "cost.interchange.inter", "cost.interchange.inter.cap_type_name", "cost.interchange.notes", "error", "networkfees"), "none"),
		"lookup.bounds":       {fmt.Sprintf("0: %s, 51: %s", pick("400", "422", "200", "500"), pick("400", "413", "500", "200"))},
		"lookup.unauthorized": {pick("401", "403", "400")},
		"lookup.error":        slices.Clone([][]string{{"documented object"}, {"message"}, {"message", "code"}, {"code"}, {"other"}, {"empty"}}[random.IntN(6)]),
		"download.missing":    {pick("404 job_not_found", "404", "400 invalid_job")},
		"download.pending":    {pick("404 job_not_ready", "409 job_not_ready", "202", "425")},
		"download.content":    {pick("csv", "ndjson", "json", "other"), pick("length announced", "no length")},
		"refund.required":     or(some("amount", "refund_id", "refund_response.status"), "none"),
		"refund.duplicate":    {pick("refused 409", "refused 422", "same response", "another response")},
		"refund.response": slices.Clone([][]string{
			{"200", "application/json", `{"status":"string","id":"string","list":[{"line_1":"number"}],"none":"null"}`}, {"201", "application/json", `{"ok":"boolean"}`},
			{"204"}, {"202", "application/vnd.example+json", `["integer"]`}, {"200", "application/json", `"string"`}, {"200", "text/plain"},
		}[random.IntN(6)]),
		"refund.credential":  {"accepted without"},
		"service.request_id": {pick("X-Request-Id", "X-Correlation-Id", "Request-Id", "X-Acme-Request-Id", "X-Amzn-Trace-Id", "Cf-Ray", "X-Transaction-Id", "none")},
		"service.quota":      or(some("Ratelimit", "Ratelimit-Policy", "X-Quota-Left", "X-Rate-Limit-Reset", "X-Ratelimit-Limit-Minute", "X-Ratelimit-Remaining"), "none"),
		"service.idle":       {fmt.Sprintf("closed after %d s", 1+random.IntN(120))},
	}}
	if shape := p.Points["refund.response"]; !strings.Contains(strings.Join(shape, ""), "string") { // the fake has nothing in these bodies that could differ
		p.Points["refund.duplicate"] = []string{pick("refused 409", "same response")}
	}
	if random.IntN(3) == 0 {
		p.Points["lookup.enhanced"] = []string{"no difference"}
	} else {
		p.Points["lookup.enhanced"] = append(or(some("additional_card_brands.ecom_enabled", "cost.interchange.inter.cap_fixed_amount", "issuer_currency", "multi_account_access_indicator", "prepaid", "product", "shared_bin"), "bank.url"), pick("default like true", "like false", "like neither"))
	}
	if random.IntN(3) == 0 {
		p.Points["download.resume"] = []string{"no ranges", pick("strong validator", "date", "no validator")}
	} else {
		p.Points["download.resume"] = []string{"ranges", pick("strong validator", "date"), pick("If-Range heeded", "ignored")}
	}
	return p
}

// TestVariants proves that the probe finds what a service does: nothing wrong,
// and at least 95 of 100 points right.
func TestVariants(t *testing.T) {
	right, open := 0, 0
	seeds := uint64(20)
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			profile := variant(rand.New(rand.NewPCG(seed, 1)))
			engine := sandbox.New()
			if err := engine.SetProfile(profile); err != nil {
				t.Fatal(err)
			}
			points, stopped := ask(t, filepath.Join(t.TempDir(), "ledger"), serve(t, engine, engine.IdleTimeout()))
			requests := 0
			for _, area := range []sandbox.Area{sandbox.Bins, sandbox.Refunds, sandbox.Updater} {
				requests += len(engine.Requests(area))
			}
			if requests > 75 || len(engine.Requests(sandbox.Refunds)) > 6 {
				t.Errorf("seed %d: %d requests, %d refunds", seed, requests, len(engine.Requests(sandbox.Refunds)))
			}
			for _, p := range points {
				want, asked := profile.Points[p.ID]
				switch {
				case !asked:
				case p.State == Observed && slices.Equal(p.Answer, want):
					right++
				case p.State == NotAnswerable || p.State == NotTried:
					open++
					t.Logf("seed %d: %s is open; it is %q (stopped: %q)", seed, p.ID, want, stopped)
				default:
					t.Errorf("seed %d: %s is %s %q, want %q (%s)", seed, p.ID, p.State, p.Answer, want, p.Bound)
				}
			}
			// A fake made from the profile that was found is found again.
			again := sandbox.New()
			found := &sandbox.Profile{Version: sandbox.ProfileVersion, Points: map[string][]string{}}
			for _, p := range points {
				if p.State == Observed {
					found.Points[p.ID] = p.Answer
				}
			}
			if err := again.SetProfile(found); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			second, _ := ask(t, filepath.Join(t.TempDir(), "ledger"), serve(t, again, again.IdleTimeout()))
			for i, p := range points {
				if p.State == Observed && !slices.Equal(second[i].Answer, p.Answer) {
					t.Errorf("seed %d: %s is %q, and %q the second time", seed, p.ID, p.Answer, second[i].Answer)
				}
			}
		})
	}
	t.Logf("%d right, %d open", right, open)
	if share := float64(right) / float64(right+open); share < 0.95 {
		t.Errorf("%.1f %% right", 100*share)
	}
}

// TestNamedIn proves that a refusal names what it says is missing, and not the words
// that it is made of.
func TestNamedIn(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":{"code":"invalid","message":"amount is required"}}`:                                                              "amount",
		`{"type":"about:blank","title":"Bad Request","status":400,"reason":"missing","detail":"Missing fields: currency, amount"}`: "amount currency",
		`{"errors":[{"field":"transaction_id","type":"missing"},{"field":"created","reason":"required"}]}`:                         "created transaction_id",
		`{"errors":{"amount":["is required"]}}`:                                                                                    "amount",
		`{"message":"transactionId and /refund_response/status are missing"}`:                                                      "transaction_id refund_response.status",
		`{"message":"'network' is missing"}`:                                                                                       "payment_method_details.card.attributes.network",
		`{"message":"created is required", "status":"error"}`:                                                                      "created",
		`{"message":"missing field: reason"}`:                                                                                      "refund_response.reason",
		`{"message":"the record could not be created for this reason: bad status"}`:                                                "",
		`<h1>Bad Request</h1>`:                       "",
		`{"message":"transaction_order_id missing"}`: "transaction_order_id",
	} {
		if got := strings.Join(namedIn([]byte(body)), " "); got != want {
			t.Errorf("%s names %q, want %q", body, got, want)
		}
	}
}

// TestOddServices proves that what a service or the way to it does besides changes no
// answer. A point may stay open then.
func TestOddServices(t *testing.T) {
	profile := &sandbox.Profile{Version: 1, Points: map[string][]string{
		"lookup.order": {"kept"}, "lookup.items": {"one per card"}, "lookup.duplicates": {"merged"}, "lookup.echo": {"prefix 8"},
		"lookup.unknown": {"status 404"}, "lookup.nulls": {"alm"}, "lookup.enhanced": {"no difference"}, "lookup.bounds": {"0: 400, 51: 413"},
		"lookup.unauthorized": {"401"}, "lookup.error": {"documented object"}, "download.missing": {"404 job_not_found"}, "download.pending": {"409 job_not_ready"},
		"download.content": {"csv", "length announced"}, "download.resume": {"ranges", "strong validator", "If-Range heeded"},
		"refund.required": {"amount"}, "refund.duplicate": {"refused 409"}, "refund.response": {"201", "application/json", `{"b":"string","a":"integer"}`},
		"refund.credential": {"accepted without"}, "service.request_id": {"X-Request-Id"}, "service.quota": {"none"}, "service.idle": {"closed after 90 s"},
	}}
	pass := func(h http.Handler, w http.ResponseWriter, r *http.Request) *httptest.ResponseRecorder {
		recorder := httptest.NewRecorder()
		h.ServeHTTP(recorder, r)
		maps.Copy(w.Header(), recorder.Header())
		return recorder
	}
	for name, odd := range map[string]struct {
		open  int // points at most
		serve func(n int, h http.Handler, w http.ResponseWriter, r *http.Request)
		other map[string]Point
	}{
		"compresses without being asked": {serve: func(_ int, h http.Handler, w http.ResponseWriter, r *http.Request) {
			recorder := pass(h, w, r)
			var small bytes.Buffer
			zip := gzip.NewWriter(&small)
			zip.Write(recorder.Body.Bytes())
			zip.Close()
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Length", fmt.Sprint(small.Len()))
			w.WriteHeader(recorder.Code)
			w.Write(small.Bytes())
		}, open: 2}, // 204 and 206 have no compressed form
		"announces no length": {serve: func(_ int, h http.Handler, w http.ResponseWriter, r *http.Request) {
			recorder := pass(h, w, r)
			w.Header().Del("Content-Length")
			w.WriteHeader(recorder.Code)
			w.(http.Flusher).Flush()
			w.Write(recorder.Body.Bytes())
		}, other: map[string]Point{"download.content": {State: Observed, Answer: []string{"csv", "no length"}}}},
		"closes after each response": {serve: func(_ int, h http.Handler, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Connection", "close")
			h.ServeHTTP(w, r)
		}, open: 1},
		"is slow": {serve: func(_ int, h http.Handler, w http.ResponseWriter, r *http.Request) {
			time.Sleep(20 * time.Second)
			h.ServeHTTP(w, r)
		}},
		"has HTML for errors": {serve: func(_ int, h http.Handler, w http.ResponseWriter, r *http.Request) {
			recorder := pass(h, w, r)
			if recorder.Code >= 400 {
				recorder.Body = bytes.NewBufferString("<html>amount</html>")
				w.Header().Set("Content-Type", "text/html")
				w.Header().Del("Content-Length")
			}
			w.WriteHeader(recorder.Code)
			w.Write(recorder.Body.Bytes())
		}, other: map[string]Point{
			"lookup.error":     {State: Observed, Answer: []string{"other"}},
			"download.missing": {State: Observed, Answer: []string{"404"}}, "download.pending": {State: Observed, Answer: []string{"409"}},
		}},
		"knows few cards, and looks them up before it counts them": {serve: func(_ int, h http.Handler, w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			if bytes.Contains(body, []byte("620000")) || bytes.Contains(body, []byte("510510")) {
				w.WriteHeader(http.StatusNotFound)
				io.WriteString(w, `{"error":{"code":"unknown_bin","message":"a card is not known"}}`)
				return
			}
			h.ServeHTTP(w, r)
		}},
		"says 200 with an error object": {serve: func(_ int, h http.Handler, w http.ResponseWriter, r *http.Request) {
			recorder := pass(h, w, r)
			if recorder.Code == http.StatusNotFound && strings.Contains(r.URL.Path, "/bins/") {
				recorder.Code = http.StatusOK
			}
			w.WriteHeader(recorder.Code)
			w.Write(recorder.Body.Bytes())
		}, open: 1},
		"says 200 with no cards and an error object": {serve: func(_ int, h http.Handler, w http.ResponseWriter, r *http.Request) {
			recorder := pass(h, w, r)
			if recorder.Code == http.StatusNotFound && strings.Contains(r.URL.Path, "/bins/") {
				w.Header().Del("Content-Length")
				io.WriteString(w, `{"cards":[],"error":{"code":"unknown_bin"}}`)
				return
			}
			w.WriteHeader(recorder.Code)
			w.Write(recorder.Body.Bytes())
		}, open: 1},
		"repeats the first item at the end": {serve: repeats(pass, func(cards []json.RawMessage) []json.RawMessage { return append(cards, cards[0]) }),
			other: map[string]Point{"lookup.items": {State: Observed, Answer: []string{"more"}}}},
		"repeats the last item at the beginning": {serve: repeats(pass, func(cards []json.RawMessage) []json.RawMessage { return slices.Insert(cards, 0, cards[len(cards)-1]) }),
			other: map[string]Point{"lookup.items": {State: Observed, Answer: []string{"more"}}}},
		"repeats every item": {serve: repeats(pass, func(cards []json.RawMessage) []json.RawMessage {
			var twice []json.RawMessage
			for _, card := range cards {
				twice = append(twice, card, card)
			}
			return twice
		}), open: 1, other: map[string]Point{"lookup.items": {State: Observed, Answer: []string{"more"}}}},
		"repeats an item, and changes the order": {serve: repeats(pass, func(cards []json.RawMessage) []json.RawMessage {
			slices.Reverse(cards)
			return append(cards, cards[0])
		}), other: map[string]Point{"lookup.items": {State: Observed, Answer: []string{"more"}}, "lookup.order": {State: Observed, Answer: []string{"changed"}}}},
		"changes the order at times": {serve: func(n int, h http.Handler, w http.ResponseWriter, r *http.Request) {
			recorder := pass(h, w, r)
			var body struct {
				Cards []json.RawMessage `json:"cards"`
			}
			text := recorder.Body.Bytes()
			if n%3 == 0 && json.Unmarshal(text, &body) == nil && len(body.Cards) > 1 {
				slices.Reverse(body.Cards)
				text, _ = json.Marshal(body)
			}
			w.Header().Del("Content-Length")
			w.WriteHeader(recorder.Code)
			w.Write(text)
		}, other: map[string]Point{"lookup.order": {State: Contradicted, Answer: []string{"kept", "changed"}}}},
		"limits": {serve: func(n int, h http.Handler, w http.ResponseWriter, r *http.Request) {
			if n%9 == 5 {
				w.Header().Set("Retry-After", []string{"0", "2", time.Now().Add(5 * time.Second).UTC().Format(http.TimeFormat)}[n/9%3])
				http.Error(w, `{"message":"slow down, amount"}`, http.StatusTooManyRequests)
				return
			}
			h.ServeHTTP(w, r)
		}, open: 5},
		"fails twice": {serve: func(n int, h http.Handler, w http.ResponseWriter, r *http.Request) {
			if n == 12 || n == 48 {
				http.Error(w, "upstream", http.StatusServiceUnavailable)
				return
			}
			h.ServeHTTP(w, r)
		}, open: 2},
		"breaks off": {serve: func(n int, h http.Handler, w http.ResponseWriter, r *http.Request) {
			recorder := pass(h, w, r)
			text := recorder.Body.Bytes()
			if n%8 == 3 {
				text = text[:len(text)/2]
			}
			w.Header().Set("Content-Length", fmt.Sprint(recorder.Body.Len()))
			w.WriteHeader(recorder.Code)
			w.Write(text)
		}, open: 6},
		"refuses the key": {serve: func(n int, h http.Handler, w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/bins/") {
				http.Error(w, `{"error":{"code":"unauthorized"}}`, http.StatusUnauthorized)
				return
			}
			h.ServeHTTP(w, r)
		}, open: 8},
	} {
		synctest.Test(t, func(t *testing.T) {
			engine := sandbox.New()
			if err := engine.SetProfile(profile); err != nil {
				t.Fatal(err)
			}
			n := 0
			config := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n++
				odd.serve(n, engine, w, r)
			}), engine.IdleTimeout())
			points, stopped := ask(t, filepath.Join(t.TempDir(), "ledger"), config)
			open := 0
			for _, p := range points {
				want := Point{State: Observed, Answer: profile.Points[p.ID]}
				if other, ok := odd.other[p.ID]; ok {
					want = other
				}
				switch {
				case p.State == NotAnswerable:
					t.Logf("%s: %s is open", name, p.ID)
					open++
				case p.State != want.State || !slices.Equal(p.Answer, want.Answer):
					t.Errorf("%s: %s is %s %q, want %q", name, p.ID, p.State, p.Answer, want.Answer)
				}
			}
			if open > odd.open || stopped != "" {
				t.Errorf("%s: %d points are open (%s)", name, open, stopped)
			}
		})
	}
}

// repeats changes the items of responses with several.
func repeats(pass func(http.Handler, http.ResponseWriter, *http.Request) *httptest.ResponseRecorder, change func([]json.RawMessage) []json.RawMessage) func(int, http.Handler, http.ResponseWriter, *http.Request) {
	return func(_ int, h http.Handler, w http.ResponseWriter, r *http.Request) {
		recorder := pass(h, w, r)
		var body struct {
			Cards []json.RawMessage `json:"cards"`
		}
		text := recorder.Body.Bytes()
		if json.Unmarshal(text, &body) == nil && len(body.Cards) > 1 {
			body.Cards = change(body.Cards)
			text, _ = json.Marshal(body)
			w.Header().Del("Content-Length")
		}
		w.WriteHeader(recorder.Code)
		w.Write(text)
	}
}

// TestContentKind proves that content is told by what it is, where its media type is
// no help.
func TestContentKind(t *testing.T) {
	for body, want := range map[string]string{
		"job;\"net, in cents\"\n1;2\n":                "csv",
		"\"Amount, net\",Currency\n12,USD\n":          "csv",
		"\"Amount, net\",Currency\r\n\"1,2\",USD\r\n": "csv",
		"\"Amount\nnet\",Currency\n12,USD\n":          "csv",
		"a|b\n5\" tube|2\n":                           "csv",
		"a\tb\n1\t2\n":                                "csv",
		"{\"a\":1}\n{\"a\":2}\n":                      "ndjson",
		"[{\"a\":1}]\n":                               "json",
		"Dear customer, the file\nis gone.\n":         "other",
		"<a,b>\n<c,d>\n":                              "other",
		"\n":                                          "",
	} {
		if got := contentKind("text/plain", []byte(body)); got != want {
			t.Errorf("%q is %q, want %q", body, got, want)
		}
	}
}

// TestKilled proves that a run which ends anywhere sends no entry of its plan a
// second time when it is started again.
func TestKilled(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	engine := sandbox.New()
	path := filepath.Join(t.TempDir(), "ledger")
	for range 50 {
		synctest.Test(t, func(t *testing.T) {
			ledger, err := OpenLedger(path)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(random.Int64N(int64(4*time.Second))))
			defer cancel()
			Run(ctx, NewPlan(target, ledger.Run()), ledger, serve(t, engine, 0))
			// A kill can also cut the line off that was being written.
			if random.IntN(2) == 0 {
				ledger.file.WriteString(`{"sent":"lookup-0`)
			}
			ledger.Close()
		})
	}
	requests := 0
	for _, area := range []sandbox.Area{sandbox.Bins, sandbox.Refunds, sandbox.Updater} {
		requests += len(engine.Requests(area))
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sent, all := map[string]bool{}, 0
	for text := range strings.Lines(string(data)) {
		var entry line
		json.Unmarshal([]byte(text), &entry)
		switch {
		case entry.Finished > 0:
			clear(sent)
		case sent[entry.Sent]:
			t.Errorf("%s was sent twice", entry.Sent)
		case entry.Sent != "":
			sent[entry.Sent] = true
			all++
		}
	}
	// Each request has its line, so that none was sent without one.
	if requests > all || requests < 40 {
		t.Errorf("%d requests, %d lines", requests, all)
	}
}

// TestStops proves that the probe gives way to a service that objects.
func TestStops(t *testing.T) {
	for name, test := range map[string]struct {
		fault    sandbox.Fault
		stopped  string
		requests int
	}{
		"429":                   {sandbox.Fault{Status: 429}, "429", 1},
		"429 with a long wait":  {sandbox.Fault{Status: 429, Header: http.Header{"Retry-After": {"60"}}}, "429", 1},
		"429 with a short wait": {sandbox.Fault{Status: 429, Header: http.Header{"Retry-After": {"2"}}}, "", 0},
		"server errors":         {sandbox.Fault{Status: 503}, "5xx", 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			engine := sandbox.New()
			engine.ScriptFunc(sandbox.Bins, func(sandbox.Request) sandbox.Fault { return test.fault })
			_, stopped := ask(t, filepath.Join(t.TempDir(), "ledger"), serve(t, engine, time.Minute))
			if !strings.Contains(stopped, test.stopped) || (stopped == "") != (test.stopped == "") ||
				test.requests > 0 && len(engine.Requests(sandbox.Bins)) != test.requests {
				t.Errorf("%s: stopped %q after %d requests", name, stopped, len(engine.Requests(sandbox.Bins)))
			}
		})
	}
}

// TestLedgerOfAnotherService proves that an unfinished run is not continued with another
// service.
func TestLedgerOfAnotherService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := sandbox.New()
		engine.ScriptFunc(sandbox.Bins, func(sandbox.Request) sandbox.Fault { return sandbox.Fault{Status: http.StatusTooManyRequests} })
		path := filepath.Join(t.TempDir(), "ledger")
		config := serve(t, engine, time.Minute)
		ask(t, path, config)
		ledger, err := OpenLedger(path)
		if err != nil {
			t.Fatal(err)
		}
		defer ledger.Close()
		other := target
		other.BinURL = "http://other.example"
		if _, err := Run(t.Context(), NewPlan(other, ledger.Run()), ledger, config); err == nil || !strings.Contains(err.Error(), "another service") {
			t.Errorf("another service: %v", err)
		}
	})
}

// TestModes proves that each mode sends no more than it says.
func TestModes(t *testing.T) {
	for mode, most := range map[Mode][2]int{ModePlan: {0, 0}, ModeConnect: {0, 0}, ModeRead: {75, 0}, ModeWrite: {75, 6}} {
		synctest.Test(t, func(t *testing.T) {
			engine := sandbox.New()
			config := serve(t, engine, time.Minute)
			config.Mode = mode
			ask(t, filepath.Join(t.TempDir(), "ledger"), config)
			reads := len(engine.Requests(sandbox.Bins)) + len(engine.Requests(sandbox.Updater))
			if writes := len(engine.Requests(sandbox.Refunds)); reads > most[0] || writes > most[1] || (reads > 0) != (most[0] > 0) || (writes > 0) != (most[1] > 0) {
				t.Errorf("%s: %d reads, %d writes", mode, reads, writes)
			}
			if mode != ModePlan && mode != ModeConnect {
				for _, r := range engine.Requests(sandbox.Bins) {
					checkIdentifiers(t, r.Body)
				}
			}
		})
	}
}

// checkIdentifiers proves that only published BINs and identifiers that nobody was
// issued are looked up.
func checkIdentifiers(t *testing.T, body []byte) {
	t.Helper()
	var request struct{ Cards []struct{ Card string } }
	if err := json.Unmarshal(body, &request); err != nil {
		t.Error(err)
	}
	for _, c := range request.Cards {
		if !slices.Contains(append(slices.Concat(knownCards, longCards, unknownCards), longest), c.Card) {
			t.Errorf("%s was looked up", c.Card)
		}
	}
}

// TestKeepsNoValues proves that nothing of what the service wrote, and none of the
// caller's credentials and ids in any form, reaches the ledger or a report.
func TestKeepsNoValues(t *testing.T) {
	for name, form := range map[string]func(string) string{
		"same": func(s string) string { return s }, "upper": strings.ToUpper, "no separators": func(s string) string { return strings.ReplaceAll(s, "-", "") },
		"in a code": func(s string) string { return "x_" + s + "_missing" }, "encoded": func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte("user:" + s)) },
	} {
		synctest.Test(t, func(t *testing.T) {
			echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				own := form(target.APIKey)
				switch part := strings.Split(r.URL.Path, "/"); {
				case strings.Contains(r.URL.Path, missingJob):
					own = form(target.MerchantID)
				case strings.Contains(r.URL.Path, "/jobs/"):
					own = form(part[4])
				case strings.Contains(r.URL.Path, "/refunds"):
					own = form(part[2])
				}
				w.Header().Set("Content-Type", "application/vnd."+own+"+json; charset=CANARY")
				w.Header().Set("X-Request-Id", "CANARY")
				w.Header().Set("X-Quota-"+own, "CANARY")
				w.Header().Set("CANARY", "CANARY")
				if strings.Contains(r.URL.Path, "/jobs/") {
					w.WriteHeader(http.StatusNotFound)
					fmt.Fprintf(w, `{"error":{"code":%q,"message":"CANARY","details":{"4111111111111111":%q}}}`, own, form(target.AccessToken))
					return
				}
				fmt.Fprintf(w, `{"cards":[{"bin":"CANARY","data":{"card":{"4111111111111111":null,%q:null,"bank":{"name":"First Example Bank"}}}}],`+
					`"4111 1111 1111 1111":"CANARY",%q:"CANARY"}`, own, own)
			})
			path := filepath.Join(t.TempDir(), "ledger")
			points, stopped := ask(t, path, serve(t, echo, time.Minute))
			printed, err := json.Marshal(points)
			if err != nil {
				t.Fatal(err)
			}
			page := bytes.NewBuffer(append(printed, stopped...))
			NewPlan(target, 1).Print(page, ModeWrite)
			ledger, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			text := strings.ToLower(page.String() + string(ledger))
			canaries := []string{"4111111111111111", "CANARY", "First Example Bank"}
			for _, own := range []string{target.APIKey, target.AccessToken, target.MerchantID, target.Account, target.Job, target.Pending} {
				switch {
				case len(own) > 2:
					canaries = append(canaries, own, form(own))
				case name != "encoded": // two digits are anywhere
					canaries = append(canaries, "Quota-"+form(own), "vnd."+form(own), `"`+form(own)+`"`, " "+form(own)+`"`)
				}
			}
			for _, canary := range canaries {
				if strings.Contains(text, strings.ToLower(canary)) {
					t.Errorf("%s: %s came out", name, canary)
				}
			}
		})
	}
}
