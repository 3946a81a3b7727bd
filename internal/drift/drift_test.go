package drift_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/drift"
	"github.com/carddata/carddata-go/internal/testkit"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/updater"
)

var normal = flag.Int("normal", 5_000, "how many responses of a healthy service must pass without an event")

// A service whose responses can be changed, and the log of its clients.
type service struct {
	body     string
	header   []string
	mu       sync.Mutex
	log      bytes.Buffer
	bins     *bins.Client
	silent   *bins.Client // has no log, and keeps no news from those that have one
	refunds  *refunds.Client
	download *updater.Client
}

func (s *service) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(line)
}

const errorObject = `{"error":{"code":"job_not_ready","message":"later","details":{"anything":[1]}}}`

func newService(t testing.TB) *service {
	t.Helper()
	drift.Forget()
	t.Cleanup(drift.Forget)
	s := &service{}
	reply := func(status int, plain string) func(*http.Request) (*http.Response, error) {
		return func(req *http.Request) (*http.Response, error) {
			body := s.body
			if body == "" {
				body = plain
			}
			return testkit.Answer(status, body, s.header...)(req)
		}
	}
	data, err := os.ReadFile("../../bins/testdata/response.json")
	if err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.NewTextHandler(s, &slog.HandlerOptions{
		Level: slog.LevelWarn,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	lookups := testkit.NewMock("POST", testkit.Base+"/bins/multiple", reply(200, string(data)))
	writes := testkit.NewMock("POST", testkit.Base+"/v1/account-1/refunds", reply(201, `{"recorded":true}`))
	downloads := testkit.NewMock("GET", testkit.Base+"/updater/inquiries/jobs/job-1/download", reply(404, errorObject))
	var errs [4]error
	s.bins, errs[0] = bins.NewClient(testkit.Base, bins.StaticToken("key-of-the-test"), bins.WithHTTPClient(lookups.Client()), bins.WithLogger(logger), bins.WithMaxRetries(0))
	s.refunds, errs[1] = refunds.NewClient(testkit.Base, refunds.WithHTTPClient(writes.Client()), refunds.WithLogger(logger))
	s.download, errs[2] = updater.NewClient(testkit.Base, "merchant-1", updater.StaticToken("token-1"), updater.WithHTTPClient(downloads.Client()), updater.WithLogger(logger), updater.WithMaxRetries(0))
	s.silent, errs[3] = bins.NewClient(testkit.Base, bins.StaticToken("key-of-the-test"), bins.WithHTTPClient(lookups.Client()), bins.WithMaxRetries(0))
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// ask makes one call to an area, and returns what it logged of drift.
func (s *service) ask(t testing.TB, area string) (events []string) {
	s.mu.Lock()
	s.log.Reset()
	s.mu.Unlock()
	switch area {
	case "bins":
		s.silent.Lookup(t.Context(), &bins.LookupRequest{Cards: bins.Cards("45717360")})
		s.bins.Lookup(t.Context(), &bins.LookupRequest{Cards: bins.Cards("45717360")})
	case "refunds":
		s.refunds.Submit(t.Context(), "account-1", &refunds.Refund{RefundID: "refund-1"})
	case "updater":
		s.download.Download(t.Context(), "job-1")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for line := range strings.Lines(s.log.String()) {
		if _, event, ok := strings.Cut(line, "level=WARN msg=drift service="+area+" "); ok {
			_, event, _ = strings.Cut(event, "kind=")
			events = append(events, strings.TrimSpace(event))
		}
	}
	return events
}

// TestChanges proves that each change of the contract is told in the first response
// that shows it, and not again.
func TestChanges(t *testing.T) {
	s := newService(t)
	data, err := os.ReadFile("../../bins/testdata/response.json")
	if err != nil {
		t.Fatal(err)
	}
	plain := string(data)
	const fellBack = `"fallback decoder" place="response body"`
	for _, change := range []struct {
		area     string
		old, new string // in the body
		header   []string
		events   []string
	}{
		{"bins", `"bank": {`, `"bank": {"swift_code": "CANARY", `, nil, []string{`"unknown member" place=cards.data.card.bank.swift_code`}},
		{"bins", `"domestic": {`, `"domestic": {"cap_limit": 1, `, nil, []string{`"unknown member" place=cards.data.card.cost.interchange.domestic.cap_limit`}},
		{"bins", `"inter": {`, `"inter": {"cap_limit": 1, `, nil, []string{`"unknown member" place=cards.data.card.cost.interchange.inter.cap_limit`}},
		{"bins", `"intra": {`, `"intra": {"cap_limit": 1, `, nil, []string{`"unknown member" place=cards.data.card.cost.interchange.intra.cap_limit`}},
		{"bins", `"cards": [`, `"page": {"CANARY": 1}, "cards": [`, nil, []string{`"unknown member" place=page`}},
		{"bins", `"bin": `, `"4111111111111111": "CANARY", "bin": `, nil, []string{`"unknown member" place=cards.*`}},
		{"bins", `"bin_length": 8`, `"bin_length": "8"`, nil, []string{`"another type" place=cards.data.card.bin_length`}},
		{"bins", `"svc_bin_length": 9`, `"svc_bin_length": "9"`, nil, []string{`"another type" place=cards.data.card.svc_bin_length`}},
		{"bins", `{"assessment": {"rate": 0.130, "per": ["item", null]}}`, `["CANARY"]`, nil, []string{`"another type" place=cards.data.card.networkfees`}},
		{"bins", `"level2": true`, `"level2": "Y"`, nil, []string{`"another type" place=cards.data.card.level2`, fellBack}},
		{"bins", `"bin": "45717360"`, `"bin": 45717360`, nil, []string{`"another type" place=cards.bin`}},
		{"bins", `"product_name":`, `"Product_Name":`, nil, []string{`"unknown member" place=cards.data.card.product.Product_Name`}},
		{"bins", "", "", []string{"Deprecation", "@1688169599"}, []string{`deprecation place="response header"`}},
		{"bins", "", "", []string{"Sunset", "Wed, 11 Nov 2026 23:59:59 GMT"}, []string{`sunset place="response header"`}},
		{"bins", plain, `{"error":{"code":"c","reference":"CANARY"}}`, nil, nil},
		{"bins", plain, `[` + plain + `]`, nil, []string{`"another type" place="response body"`}},
		{"refunds", "", "", []string{"Deprecation", "true", "Sunset", "Wed, 11 Nov 2026 23:59:59 GMT"},
			[]string{`deprecation place="response header"`, `sunset place="response header"`}},
		{"updater", `"code":`, `"reference":"CANARY","code":`, nil, []string{`"unknown member" place=error.reference`}},
		{"updater", `{"anything":[1]}`, `["CANARY"]`, nil, []string{`"another type" place=error.details`}},
		{"updater", errorObject, `{"error":"CANARY"}`, nil, []string{`"another type" place=error`}},
		{"updater", "", "", []string{"Sunset", "Wed, 11 Nov 2026 23:59:59 GMT"}, []string{`sunset place="response header"`}},
	} {
		body := map[string]string{"bins": plain, "updater": errorObject}[change.area]
		s.body, s.header = strings.Replace(body, change.old, change.new, 1), change.header
		if change.new != "" && s.body == body {
			t.Fatalf("%s is not in the body", change.old)
		}
		events := s.ask(t, change.area)
		slices.Sort(events)
		if !slices.Equal(events, change.events) {
			t.Errorf("%s → %s %q: told %q, want %q", change.old, change.new, change.header, events, change.events)
		}
		if strings.Contains(s.log.String(), "CANARY") || strings.Contains(s.log.String(), "4111") || strings.Contains(s.log.String(), "2026") {
			t.Errorf("a value was logged: %s", s.log.String())
		}
		for range 3 {
			if events := s.ask(t, change.area); events != nil {
				t.Errorf("%s → %s: told again: %q", change.old, change.new, events)
			}
		}
	}
}

// TestToldWhenItCanBeRead proves that a response which cannot be read does not use up
// what a later one shows.
func TestToldWhenItCanBeRead(t *testing.T) {
	s := newService(t)
	const changed = `{"cards":[{"bin":"45717360","data":{"card":{"new_member":"CANARY","networkfees":1}}}]}`
	for _, broken := range []string{changed + "}", changed[:len(changed)-2], strings.Replace(changed, "45717360", "\\x", 1)} {
		s.body = broken
		if events := s.ask(t, "bins"); events != nil {
			t.Errorf("told %q of %s", events, broken)
		}
	}
	s.body = changed
	events := s.ask(t, "bins")
	slices.Sort(events)
	if want := []string{`"another type" place=cards.data.card.networkfees`, `"unknown member" place=cards.data.card.new_member`}; !slices.Equal(events, want) {
		t.Errorf("told %q, want %q", events, want)
	}
}

// TestOwnSecretIsNoPlace proves that a name which repeats a credential is not logged.
func TestOwnSecretIsNoPlace(t *testing.T) {
	s := newService(t)
	s.body = `{"cards":[],"key-of-the-test":1}`
	if events := s.ask(t, "bins"); len(events) != 1 || strings.Contains(events[0], "key-of") {
		t.Errorf("told %q", events)
	}
}

// TestMemoryIsBounded proves that a service which invents names without end fills
// neither the memory nor the log.
func TestMemoryIsBounded(t *testing.T) {
	s := newService(t)
	told := 0
	for n := range 1_000 {
		var name strings.Builder
		for ; n > 0; n /= 20 {
			name.WriteString(string(rune('a' + n%20)))
		}
		s.body = fmt.Sprintf(`{"cards":[],"x%s":1}`, name.String())
		told += len(s.ask(t, "bins"))
	}
	if told < 100 || told > 512 {
		t.Errorf("%d events", told)
	}
}

// TestHealthy proves that no response of a service that keeps to the contract, however
// it uses its freedom, is told.
func TestHealthy(t *testing.T) {
	s := newService(t)
	data, err := os.ReadFile("../../bins/testdata/response.json")
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	areas := []string{"bins", "bins", "bins", "refunds", "updater"}
	for range *normal {
		area := areas[random.IntN(len(areas))]
		s.body, s.header = "", []string{"X-Request-Id", "r-1", "X-Ratelimit-Remaining", "10"}
		switch area {
		case "bins":
			var document any
			if err := json.Unmarshal(data, &document); err != nil {
				t.Fatal(err)
			}
			s.body = free(random, document, "")
		case "updater":
			s.body = []string{errorObject, "", " <html>", `{"message":"forbidden"}`, `{"error":{"code":"c","details":null}}`}[random.IntN(5)]
		}
		if events := s.ask(t, area); events != nil {
			t.Fatalf("told %q of %s", events, s.body)
		}
	}
}

// free writes a value with what its contract leaves free: order and absence of
// members, null, space, escapes, numbers of up to 19 digits, and the contents of
// networkfees.
func free(random *rand.Rand, v any, name string) string {
	space := strings.Repeat(" \n\t", random.IntN(2))
	switch v := v.(type) {
	case map[string]any:
		var parts []string
		for member, value := range v {
			switch {
			case name == "networkfees" && random.IntN(4) == 0:
				parts = append(parts, `"caf\u00e9 `+member+`":{"x":[1e3,{"\"":null}]}`)
			case random.IntN(8) > 0:
				text := free(random, value, member)
				if random.IntN(12) == 0 && name != "" {
					text = "null"
				}
				parts = append(parts, space+`"`+member+`":`+space+text)
			}
		}
		random.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
		return "{" + strings.Join(parts, space+",") + space + "}"
	case []any:
		var parts []string
		for _, element := range v {
			parts = append(parts, free(random, element, name))
		}
		return "[" + strings.Join(parts, ","+space) + "]"
	case string:
		return []string{`"` + v + `"`, `""`, `"tab\t\b\f\r\/"`, `"\u0041\ud83d\ude00é"`, `"😀"`, "\"\xff\""}[random.IntN(6)]
	case float64:
		return []string{fmt.Sprint(v), "0", "-1", "9223372036854775807"}[random.IntN(4)]
	}
	text, _ := json.Marshal(v)
	return string(text)
}

// TestHealthyCostsNothing proves that a client which would tell of drift allocates no
// more for a healthy response than one which would not.
func TestHealthyCostsNothing(t *testing.T) {
	data, err := os.ReadFile("../../bins/testdata/response.json")
	if err != nil {
		t.Fatal(err)
	}
	allocations := func(logger *slog.Logger) float64 {
		client, err := bins.NewClient(testkit.Base, bins.StaticToken("key"), bins.WithLogger(logger), bins.WithHTTPClient(&http.Client{
			Transport: roundTripper(func(req *http.Request) (*http.Response, error) { return testkit.Answer(200, string(data))(req) }),
		}))
		if err != nil {
			t.Fatal(err)
		}
		request := &bins.LookupRequest{Cards: bins.Cards("45717360")}
		fewest := 1e9 // the collector and the race detector empty pools
		for range 1000 {
			fewest = min(fewest, testing.AllocsPerRun(1, func() { client.Lookup(t.Context(), request) }))
		}
		return fewest
	}
	warn := slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if silent, logging := allocations(nil), allocations(warn); logging > silent {
		t.Errorf("%v allocations with a logger, %v without", logging, silent)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
