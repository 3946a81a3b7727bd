package console

import (
	"slices"
	"strings"
	"testing"
)

// TestOutcomeIsTheLibrarys checks what the library makes of responses.
func TestOutcomeIsTheLibrarys(t *testing.T) {
	refund := func(s site) { s.refund("a") }
	for _, tc := range []struct {
		rule    string
		send    func(site)
		outcome string
		with    string // condition
		retried bool
		action  string
	}{
		{``, refund, "accepted", "", false, "done"},
		{`{"status":204}`, refund, "accepted", "", false, "done"},
		{`{"status":400}`, refund, "rejected", "bad_request", false, "correct"},
		{`{"status":409}`, refund, "rejected", "conflict", false, "find out"},
		{`{"status":429}`, refund, "rejected", "rate_limited", true, "resubmit"},
		{`{"status":429,"retry_after":-1}`, refund, "unknown", "rate_limited", false, "find out"},
		{`{"status":429,"retry_after":-1,"header":{"X-RateLimit-Remaining":["0"]}}`, refund, "rejected", "rate_limited", true, "resubmit"},
		{`{"status":503}`, refund, "unknown", "server_error", false, "find out"},
		{`{"status":307}`, refund, "rejected", "redirect", false, "fix setup"},
		{`{"drop":true}`, refund, "unknown", "no_response", false, "find out"},
		{`{"drop":true,"process":true}`, refund, "unknown", "no_response", false, "find out"},
		{`{"body":"<html>"}`, refund, "unknown", "bad_response", false, "find out"},
		{`{"truncate":1}`, refund, "accepted", "", false, "done"},
		{``, func(s site) { s.lookup("411111", "9") }, "ok", "", false, ""},
		{``, func(s site) { s.lookup(slices.Repeat([]string{"45717360"}, 50)...) }, "ok", "", false, ""},
		{`{"status":503}`, func(s site) { s.lookup("4") }, "failed", "server_error", true, ""},
		{`{"truncate":50}`, func(s site) { s.lookup("4") }, "failed", "bad_response", true, ""},
		{`{"body":"{"}`, func(s site) { s.lookup("4") }, "failed", "bad_response", true, ""},
		{``, func(s site) { s.send("POST", "/bins/multiple", `{"cards":[]}`) }, "failed", "bad_request", false, ""},
		{``, func(s site) { s.download() }, "ok", "", false, ""},
		{`{"truncate":50}`, func(s site) { s.download() }, "ok", "", true, ""}, // it resumes
		{``, func(s site) { s.send("GET", "/updater/inquiries/jobs/42/download", "", "Range", "bytes=4-") }, "ok", "", false, ""},
		{`{"truncate":50,"header":{"ETag":null}}`, func(s site) { s.download() }, "failed", "changed", false, ""},
		{``, func(s site) { s.send("GET", "/updater/inquiries/jobs/7/download", "") }, "failed", "not_found", false, ""},
	} {
		s := start(t)
		if tc.rule != "" {
			s.fault(strings.Replace(tc.rule, "{", `{"next":1,`, 1))
		}
		tc.send(s)
		v := s.requests()[0].Library
		if v == nil || v.Outcome != tc.outcome || v.Retried != tc.retried || v.Action != tc.action {
			t.Errorf("%s: %+v", tc.rule, v)
			continue
		}
		if v.Condition != tc.with {
			t.Errorf("%s: condition %q, want %q", tc.rule, v.Condition, tc.with)
		}
	}
}

func TestContractIsTold(t *testing.T) {
	s := start(t)
	s.send("POST", "/v1/acct/refunds", `{"refundId":"a","amount":10.5,"merchant_name":1,"crad":1,"canary_7":2,"additional_data":{"metadata":{"canary":1}}}`)
	e := s.requests()[0]
	var told []string
	for _, f := range e.Contract {
		told = append(told, f.String())
	}
	const unknown = " is not a member of the interface"
	want := []string{"amount is a decimal number where the interface has an integer", "****" + unknown, "crad" + unknown, "merchant_name" + unknown, "refundId" + unknown}
	if !slices.Equal(told, want) || e.Refused != want[0] || e.Accepted {
		t.Errorf("refused: %q; told:\n%s", e.Refused, strings.Join(told, "\n"))
	}
}

func TestSearch(t *testing.T) {
	s := start(t)
	s.refund("findme")
	s.refund("findme")
	s.lookup("45717360")
	s.send("POST", "/bins/multiple", `{}`)
	for query, want := range map[string][]int{
		"":                    {1, 2, 3, 4},
		"?q=FINDME":           {1, 2},
		"?q=cards+is+missing": {4},
		"?q=Dankort":          {3}, // in the body of the response
		"?q=nowhere":          nil,
	} {
		var got []int
		for _, e := range get[listing](s, "/sandbox/requests"+query).Requests {
			got = append(got, e.Number)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
}
