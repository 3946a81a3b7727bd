package drift_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/drift"
	"github.com/carddata/carddata-go/internal/proof/testkit"
)

// logged makes two lookups at a service with this response. It returns the kinds and places
// in the log.
func logged(t *testing.T, body string, header ...string) (events []string) {
	t.Helper()
	var log bytes.Buffer
	mock := testkit.NewMock("POST", testkit.Base+"/bins/multiple", testkit.Answer(200, body, header...))
	client, err := bins.NewClient(testkit.Base, bins.StaticToken("key-of-the-test"), bins.WithHTTPClient(mock.Client()), bins.WithMaxRetries(0),
		bins.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		client.Lookup(t.Context(), &bins.LookupRequest{Cards: bins.Cards("45717360")})
	}
	for line := range strings.Lines(log.String()) {
		if _, event, ok := strings.Cut(line, "msg=drift service=bins "); ok {
			_, event, _ = strings.Cut(event, "kind=")
			events = append(events, strings.TrimSpace(event))
		}
	}
	if strings.Contains(log.String(), "CANARY") || strings.Contains(log.String(), "4111") || strings.Contains(log.String(), "key-of") {
		t.Errorf("a value or a secret was logged: %s", &log)
	}
	slices.Sort(events)
	return events
}

func plain(t *testing.T) string {
	drift.Forget()
	t.Cleanup(drift.Forget)
	data, err := os.ReadFile("../../bins/testdata/response.json")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Each deviation is logged once, for the first response that shows it.
func TestDeviations(t *testing.T) {
	body := plain(t)
	if events := logged(t, body); events != nil {
		t.Errorf("logged %q for a response without a deviation", events)
	}
	for _, test := range []struct{ old, new, event string }{
		{`"bank": {`, `"bank": {"swift_code": "CANARY", `, `"unknown member" place=cards.data.card.bank.swift_code`},
		{`"inter": {`, `"inter": {"cap_limit": 1, `, `"unknown member" place=cards.data.card.cost.interchange.inter.cap_limit`},
		{`"intra": {`, `"intra": {"cap_limit": 1, `, `"unknown member" place=cards.data.card.cost.interchange.intra.cap_limit`},
		{`"cards": [`, `"page": {"CANARY": 1}, "cards": [`, `"unknown member" place=page`},
		{`"bin": `, `"4111111111111111": "CANARY", "bin": `, `"unknown member" place=cards.*`},
		{`"product_name":`, `"Product_Name":`, `"name in another case" place=cards.data.card.product.product_name`},
		{`"cards": [`, `"key-of-the-test": 1, "cards": [`, `"unknown member" place=*`},
		{`"bin_length": 8`, `"bin_length": "8"`, `"string for integer" place=cards.data.card.bin_length`},
		{`"bin_length": 8`, `"bin_length": 8.0`, `"number for integer" place=cards.data.card.bin_length`},
		{`"bin_length": 8`, `"bin_length": 4111111111111111.5`, `"number for integer, not read" place=cards.data.card.bin_length`},
		{`"bin_length": 8`, `"bin_length": null`, ""},
		{`"virtual_card": false`, `"virtual_card": "CANARY"`, `"string for boolean, not read" place=cards.data.card.virtual_card`},
		{`"bin_length": 8`, `"bank": {"name": ["CANARY"]}, "bin_length": 8`, `"array for string, not read" place=cards.data.card.bank.name "repeated member" place=cards.data.card.bank`},
		{`"card": {`, `"card": {"networkfees": "CANARY", `, `"repeated member" place=cards.data.card.networkfees "string for object" place=cards.data.card.networkfees`},
		{`"cards": [`, `"cards": ["CANARY", `, `"string for object, not read" place=cards`},
		{`"cards": [`, `"cards": [{"bin": 4111111111111111, "error": {"CANARY": 1}, "data": []}, `,
			`"array for object, not read" place=cards.data "number for string" place=cards.bin "object for string" place=cards.error`},
	} {
		changed := strings.Replace(body, test.old, test.new, 1)
		if events := strings.Join(logged(t, changed), " "); changed == body || events != test.event {
			t.Errorf("%s: logged %q, want %q", test.new, events, test.event)
		}
		if events := logged(t, changed); events != nil {
			t.Errorf("%s: logged again: %q", test.new, events)
		}
	}
	events := logged(t, body, "Deprecation", "@1688169599", "Sunset", "Wed, 11 Nov 2026 23:59:59 GMT")
	if want := []string{`deprecation place="response header"`, `sunset place="response header"`}; !slices.Equal(events, want) {
		t.Errorf("logged %q, want %q", events, want)
	}
}

// The memory and the log are bounded, even if the service sends ever new names.
func TestMemoryIsBounded(t *testing.T) {
	plain(t)
	events := 0
	for n := range 1_000 {
		name := strings.NewReplacer("0", "a", "1", "b", "2", "c", "3", "d", "4", "e", "5", "f", "6", "g", "7", "h", "8", "i", "9", "j").Replace(fmt.Sprint(n))
		events += len(logged(t, `{"cards":[],"x`+name+`":1}`))
	}
	if events < 100 || events > 512 {
		t.Errorf("%d events", events)
	}
}
