package sandbox

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestEveryDocumentedTypeIsChecked gives each member of both requests a value of
// each other type.
func TestEveryDocumentedTypeIsChecked(t *testing.T) {
	values := map[string][]string{
		"string":  {`"a"`, `""`},
		"integer": {`0`, `-12`, `12345678901234567890`},
		"boolean": {`true`, `false`},
		"object":  {`{}`, `{"a": [1, null]}`},
		"array":   {`[]`, `[{}]`},
		"null":    {`null`},
		"number":  {`10.5`, `10.0`, `1e3`, `1E3`, `-0.5`},
	}
	members := 0
	var walk func(area Area, path string, s *schema, wrap func(string) string)
	walk = func(area Area, path string, s *schema, wrap func(string) string) {
		members++
		for kind, examples := range values {
			for _, example := range examples {
				findings := CheckBody(area, []byte(wrap(example)))
				f, refused := refusal(findings)
				if wrong := kind != s.Type; refused && !f.bounds && !wrong || !refused && wrong {
					t.Errorf("%s = %s: %v", path, example, findings)
				}
				if kind != s.Type && f.Path != path {
					t.Errorf("%s = %s is reported at %q", path, example, f.Path)
				}
			}
		}
		for name, member := range s.Properties {
			walk(area, strings.TrimPrefix(path+"."+name, "."), member, func(v string) string {
				return wrap(fmt.Sprintf(` { "other" : "x\"}", %q : %s }`, name, v))
			})
		}
		if s.Items != nil {
			walk(area, path+"[1]", s.Items, func(v string) string { return wrap(`[{}, ` + v + `]`) })
		}
	}
	for _, area := range []Area{Bins, Refunds} {
		for name, member := range requestSchema(area).Properties {
			walk(area, name, member, func(v string) string {
				if name == "cards" {
					return fmt.Sprintf(`{%q: %s}`, name, v)
				}
				return fmt.Sprintf(`{"cards": [{}], %q: %s}`, name, v)
			})
		}
	}
	if members != 4+27 {
		t.Errorf("%d members of requests, where the interface has 31", members)
	}
}

func TestRefusalNamesTheMember(t *testing.T) {
	for body, want := range map[string]string{
		`{"amount":"x"}`:                       "amount is a string where the interface has an integer",
		`{"amount":10.5}`:                      "amount is a decimal number where the interface has an integer",
		`{"refund_id":5}`:                      "refund_id is a number where the interface has a string",
		`{"additional_data":{"metadata":[1]}}`: "additional_data.metadata is an array where the interface has an object",
		`{"refund_id":"a","refund_id":null}`:   "refund_id is null where the interface has a string",
		`{"\u0061mount":true}`:                 "amount is a boolean where the interface has an integer",
		`[]`:                                   "the body is an array where the interface has an object",
		`{`:                                    "the body is not JSON",
		`{"payment_method_details":{"card":"x"}} `: "payment_method_details.card is a string where the interface has an object",
	} {
		e := New()
		d := memoryDoor(t, e, Refunds)
		r := d.refund(t, body)
		var got struct{ Error apiError }
		json.Unmarshal([]byte(r.body), &got)
		path, _, _ := strings.Cut(want, " ")
		if path == "the" {
			path = ""
		}
		if r.status != http.StatusBadRequest || got.Error.Message != want || got.Error.Details["path"] != path || len(e.Refunds()) != 0 {
			t.Errorf("%s: %+v", body, r)
		}
	}
}

func TestUnknownMembersAreToldAndAccepted(t *testing.T) {
	body := `{"refundId":"r","AMOUNT":1,"amount":1,"metadata":{"a":{}},"additional_data":{"metadata":{"free":1},"orderId":2}}`
	var paths []string
	for _, f := range CheckBody(Refunds, []byte(body)) {
		if f.Refused {
			t.Errorf("refused: %v", f)
		}
		paths = append(paths, f.Path)
	}
	if got := strings.Join(paths, " "); got != "refundId AMOUNT metadata additional_data.orderId" {
		t.Errorf("told: %s", got)
	}
	e := New()
	if r := memoryDoor(t, e, Refunds).refund(t, body); r.status != http.StatusOK {
		t.Errorf("%+v", r)
	}
	// A misspelled card is not looked up.
	if r := memoryDoor(t, e, Bins).lookup(t, `{"cards":[{"CARD":"411111"}],"Enhanced":true}`); r.status != http.StatusOK || strings.Contains(r.body, "VISA") {
		t.Errorf("%+v", r)
	}
}

// TestFindingsAreBounded checks a body with 1,000 wrong members.
func TestFindingsAreBounded(t *testing.T) {
	body := `{"cards":[` + strings.TrimSuffix(strings.Repeat(`{"card":1},`, 1000), ",") + `]}`
	findings := CheckBody(Bins, []byte(body))
	if len(findings) != maxFindings+1 || findings[0].Path != "cards[0].card" {
		t.Errorf("%d findings, the first %v", len(findings), findings[0])
	}
}
