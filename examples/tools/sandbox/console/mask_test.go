package console

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
)

// TestNothingLeaks puts secrets into every place of every request, and looks for them in
// everything that the console shows.
func TestNothingLeaks(t *testing.T) {
	const (
		pan    = "4929123412341234"
		secret = "canary-7"
	)
	s := start(t)
	hide := func(text string) string { return strings.NewReplacer("PAN", pan, "SECRET", secret).Replace(text) }
	for _, rule := range []string{``, `{"fault":"truncated","next":1}`, `{"fault":"server_error","next":1}`, `{"fault":"drop_after_accept","next":1}`} {
		for _, r := range []struct{ method, path, body string }{
			{"POST", "/bins/multiple", `{"cards":[{"card":"PAN"},{"card":"SECRET_token"},{"card":"49291234 12341234"},{"card":"4929SECRET"}]}`},
			{"POST", "/bins/multiple", `{"cards":[{"card":4929123412341234}],"SECRET":"SECRET"}`},
			{"POST", "/bins/multiple", `{"cards":[{"card":49291234123}]}`},
			{"POST", "/bins/multiple", `{"cards":[{"pan":"SECRET PAN","card":{"SECRET":["SECRET"]}}],"x":[["SECRET"]]}`},
			{"POST", "/bins/multiple", `{"cards":[{"card":"PAN"},{"card":"49291234123`},
			{"POST", "/bins/multiple", `cards=PAN&token=SECRET`},
			{"POST", "/bins/multiple?card=PAN&key=SECRET", `["SECRET", "PAN", 4929123412341234]`},
			{"POST", "/bins/PAN/SECRET", `{"SECRET":"SECRET"}`},
			{"POST", "/SECRET/PAN", `"SECRET PAN"`},
			{"POST", "/v1/PAN/refunds", `{"refund_id":"PAN","transaction_id":"4929-1234-1234-1234","amount":4929123412341234,
				"additional_data":{"description":"SECRET","metadata":{"SECRET":"SECRET","4929123412341234":{"SECRET":1}},"order_id":"x PAN x"},
				"refund_response":{"reason":"SECRET","status":{"SECRET":"SECRET"}},"SECRET":["SECRET"],
				"payment_method_details":{"SECRET":"SECRET","card":{"attributes":{"bin":"SECRET"},"number":"PAN"}}}`},
			{"POST", "/v1/acct/refunds", `{"refund_id":["SECRET"],"metadata":{"SECRET":1},"additional_data":"SECRET","amount":"PAN` + strings.Repeat("1", 300) + `"}`},
			{"POST", "/v1/acct/refunds", `{"additional_data":{"metadata":{"SECRET":"SECRET"`},
			{"GET", "/updater/inquiries/jobs/PAN/download", ""},
			{"GET", "/updater/inquiries/jobs/42/download", ""},
		} {
			if rule != "" {
				s.fault(rule)
			}
			s.send(r.method, strings.ReplaceAll(hide(r.path), " ", "%20"), hide(r.body),
				"Authorization", "Bearer "+secret, "X-Merchant-Id", secret, "Cookie", secret, "X-Api-Key", secret)
			s.send(r.method, strings.ReplaceAll(hide(r.path), " ", "%20"), hide(r.body), "Authorization", secret, "X-Merchant-Id", secret)
		}
	}
	// These parts of a result begin and end inside card numbers.
	for from := 40; from < 120; from++ {
		s.send("GET", "/updater/inquiries/jobs/42/download", "", "Range", "bytes="+strconv.Itoa(from)+"-"+strconv.Itoa(from+60))
	}

	last := s.requests()
	said := map[string]string{
		"requests": s.send("GET", "/sandbox/requests", "").body,
		"state":    s.send("GET", "/sandbox/state", "").body,
		"export":   s.send("GET", "/sandbox/requests.ndjson", "").body,
	}
	for _, e := range last {
		said["request"] += s.send("GET", "/sandbox/requests/"+strconv.Itoa(e.Number), "").body
	}
	for name, text := range said {
		// A mask leaves six digits at the front and four at the end. The sandbox's own
		// BINs have eight.
		for _, leak := range []string{secret, pan, "492912341", "12341234", "49291234 1234", "4929-1234", "411111111", "111111111", "555555555", "1234123412"} {
			if at := strings.Index(text, leak); at >= 0 {
				t.Errorf("%s say %q: …%s…", name, leak, text[max(0, at-300):min(len(text), at+60)])
			}
		}
	}
	for name, want := range map[string]string{"requests": "492912******1234", "export": `"metadata":"****"`, "request": `"Bearer ****"`} {
		if !strings.Contains(said[name], want) {
			t.Errorf("%s do not say %s", name, want)
		}
	}
}

func TestViews(t *testing.T) {
	for body, want := range map[string]message{
		`{"refund_id":"r","refundId":"r","number":2,"amount":12,"live":true,"additional_data":{"metadata":{"a":1},"order_id":"o"}}`: {
			Body: json.RawMessage(`{"refund_id":"r","refundId":"****","number":"****","amount":12,"live":true,"additional_data":{"metadata":"****","order_id":"o"}}`)},
		`{}`:                          {Body: json.RawMessage(`{}`)},
		`[1]`:                         {Body: json.RawMessage(`["****"]`)},
		`{"amount":1,"currency":DKK}`: {Text: "{\n  \"amount\": 1,\n  \"currency\": ", Cut: true},
		`{"amount":1} x`:              {Text: "{\n  \"amount\": 1\n}", Cut: true},
		`amount=1`:                    {Cut: true},
		``:                            {},
	} {
		var got message
		got.show([]byte(body), requestViews["refunds"])
		compacted, _ := json.Marshal(got.Body)
		if got.Body == nil {
			compacted = nil
		}
		if string(compacted) != string(want.Body) || got.Text != want.Text || got.Cut != want.Cut {
			t.Errorf("%s\n got %s %q %v\nwant %s %q %v", body, compacted, got.Text, got.Cut, want.Body, want.Text, want.Cut)
		}
	}
	deep := strings.Repeat(`{"":`, 200_000)
	var got message
	got.show([]byte(deep), requestViews["refunds"])
	if !got.Cut || len(got.Text) > 2*maxText {
		t.Errorf("a deep body is shown with %d bytes", len(got.Text))
	}
}
