package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/carddata/carddata-go/examples/tools/internal/cli"
	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/internal/sandbox/memnet"
)

var everything = target{
	binURL: "http://service.example", apiKey: "key-of-the-probe", updaterURL: "http://service.example", accessToken: "token-of-the-probe",
	merchantID: "merchant-of-the-probe", refundURL: "http://service.example", account: "account-of-the-probe", job: "42", pending: "4343",
}

// ask sends the plan to a service on a network in memory, and returns the report.
func ask(t *testing.T, h http.Handler, read, write bool) (text string, err error) {
	t.Helper()
	listener := memnet.Listen()
	server := &http.Server{Handler: h}
	go server.Serve(listener)
	t.Cleanup(func() { server.Close() })
	sender := newSender(newPlan(everything, "run"), 1, func(string) {})
	sender.client.Transport.(*http.Transport).DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return listener.Dial(ctx) }
	err = sender.run(t.Context(), read, write)
	var out bytes.Buffer
	report(&out, sender.seen)
	return out.String(), err
}

// TestReport proves that the report says what a service did, under the point that it
// bears on.
func TestReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := sandbox.New()
		text, err := ask(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			w.Header().Set("X-Trace", "1")
			switch {
			case strings.HasPrefix(r.Header.Get("Authorization"), "Bearer wrong-"):
				w.WriteHeader(http.StatusForbidden)
			case bytes.Contains(body, []byte(`"5555`)) && bytes.Contains(body, []byte(`"6011`)):
				io.WriteString(w, `{"cards":[{"bin":"4571","data":{"card":{"prepaid":1.5}}},{"error":"no"},{"bin":"5","error":null}]}`)
			case strings.Contains(r.URL.Path, "/4343/"):
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusAccepted)
				io.WriteString(w, `{"code":"job_not_ready","progress":7}`)
			case bytes.Contains(body, []byte(`-2"`)):
				w.WriteHeader(http.StatusUnprocessableEntity)
				io.WriteString(w, `{"message":"amount and svc_refund_status are missing"}`)
			default:
				engine.ServeHTTP(w, r)
			}
		}), true, true)
		if err != nil {
			t.Fatal(err)
		}
		open := ""
		said := map[string]string{}
		for line := range strings.Lines(text) {
			if !strings.HasPrefix(line, " ") {
				open = strings.TrimSpace(line)
			} else if words := strings.Fields(line); len(words) > 1 && words[0] != "bears" {
				said[open+": "+words[0]] = strings.Join(words[1:], " ")
			}
		}
		order := "order of the items, whether there is one for each card, and what bin echoes: "
		for point, want := range map[string]string{
			order + "lookup-several":                                                       "200, cards 5, items 3: card 2 by 4 characters; no bin without data with error string; card 1 by 1 characters without data",
			order + "lookup-repeated":                                                      "200, cards 4, items 4: card 1 by 6 characters; card 2 by 8 characters; card 1 by 6 characters; card 2 by 8 characters",
			"when an item has an error instead of data: lookup-unknown":                    "200, cards 1, items 1: card 1 by 6 characters without data with error string",
			"the number of cards outside 1 to 50: lookup-51":                               "400, application/json, code bad_request, error object, error.code string, error.details object, error.details.path string, error.message string",
			"status and body of a refused credential: lookup-token":                        "403, no body",
			"which members can be null, and the content of networkfees: data.card.prepaid": "boolean 16, decimal 2",
			"which members can be null, and the content of networkfees: data.card.alm":     "boolean 7, null 9",
			"effect and default of enhanced: data.card.alm":                                "null null boolean",
			"required refund members: refund-minimal":                                      "422, text/plain, message string, with the words amount svc_codes.svc_refund_status",
			"whether the service removes duplicate refunds: refund-again":                  "200, application/json, the same body",
			"authentication of the refund endpoint: refund-minimal":                        "422",
			"states of a job, and the response when it is not ready: download-pending":     "202, application/json, code job_not_ready, code string, progress integer",
			"format and content of a download: download-job":                               "200, text/csv, not JSON, 200 bytes, Content-Length",
			"ETag, Last-Modified and ranges of a download: download-range":                 "206, Accept-Ranges, Content-Range, Etag",
			"ETag, Last-Modified and ranges of a download: download-if-range":              "200, Accept-Ranges, Etag",
			"a header with a request id, rate limits: X-Trace":                             "in 22 of 22 responses",
			"status codes: lookup":                                                         "200 in 11, 400 in 2, 403 in 1",
			"timeouts: refund":                                                             "3 responses, after 1 ms in the middle and 1 ms at most",
		} {
			if said[point] != want {
				t.Errorf("%s\n got %s\nwant %s", point, said[point], want)
			}
		}
	})
}

// TestStops proves that the probe stops when the service objects.
func TestStops(t *testing.T) {
	for name, test := range map[string]struct {
		fault    sandbox.Fault
		stopped  string
		requests int
	}{
		"429":                   {sandbox.Fault{Status: 429, RetryAfter: -1}, "429", 1},
		"429 with a long wait":  {sandbox.Fault{Status: 429, Header: http.Header{"Retry-After": {"60"}}}, "429", 1},
		"429 with a short wait": {sandbox.Fault{Status: 429, Header: http.Header{"Retry-After": {"2"}}}, "<nil>", 14},
		"server errors":         {sandbox.Fault{Status: 503}, "5xx", 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			engine := sandbox.New()
			engine.ScriptFunc(sandbox.Bins, func(sandbox.Request) sandbox.Fault { return test.fault })
			_, err := ask(t, engine, true, true)
			if n := len(engine.Requests(sandbox.Bins)); !strings.Contains(fmt.Sprint(err), test.stopped) || n != test.requests {
				t.Errorf("%s: %v after %d requests", name, err, n)
			}
		})
	}
}

// TestNothingIsRepeated proves that a request without a response is not sent again.
func TestNothingIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := sandbox.New()
		engine.ScriptFunc(sandbox.Updater, func(r sandbox.Request) sandbox.Fault {
			return sandbox.Fault{Drop: r.Header.Get("Range") != "", Process: true}
		})
		_, err := ask(t, engine, true, false)
		if n := len(engine.Requests(sandbox.Updater)); err != nil || n != 5 {
			t.Errorf("%d downloads, %v", n, err)
		}
	})
}

// TestSteps proves that each step sends nothing of another, and only published BINs and
// identifiers that nobody was issued.
func TestSteps(t *testing.T) {
	for write, want := range map[bool][3]int{false: {14, 5, 0}, true: {0, 0, 3}} {
		synctest.Test(t, func(t *testing.T) {
			engine := sandbox.New()
			ask(t, engine, !write, write)
			if got := [3]int{len(engine.Requests(sandbox.Bins)), len(engine.Requests(sandbox.Updater)), len(engine.Requests(sandbox.Refunds))}; got != want {
				t.Errorf("write %v: %v lookups, downloads and refunds, want %v", write, got, want)
			}
			for _, r := range engine.Requests(sandbox.Bins) {
				for _, card := range regexp.MustCompile(`"card":"(\d+)"`).FindAllStringSubmatch(string(r.Body), -1) {
					if len(card[1]) > 11 {
						t.Errorf("%s was looked up", card[1])
					}
				}
			}
		})
	}
}

// TestKeepsNoValues proves that nothing of what the service wrote, and none of the
// caller's credentials and ids in any form, reaches the plan or the report.
func TestKeepsNoValues(t *testing.T) {
	for name, form := range map[string]func(string) string{
		"same": func(s string) string { return s }, "upper": strings.ToUpper, "no separators": func(s string) string { return strings.ReplaceAll(s, "-", "") },
		"in a code": func(s string) string { return "x_" + s + "_missing" }, "encoded": func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte("user:" + s)) },
	} {
		synctest.Test(t, func(t *testing.T) {
			text, err := ask(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				own := form(everything.apiKey)
				switch part := strings.Split(r.URL.Path, "/"); {
				case strings.Contains(r.URL.Path, missingJob):
					own = form(everything.merchantID)
				case strings.Contains(r.URL.Path, "/jobs/"):
					own = form(part[4])
				case strings.Contains(r.URL.Path, "/refunds"):
					own = form(part[2])
				}
				w.Header().Set("Content-Type", "application/vnd."+own+"+json; charset=CANARY")
				w.Header().Set("X-Quota-"+own, "CANARY")
				if strings.Contains(r.URL.Path, "/jobs/") {
					w.WriteHeader(http.StatusNotFound)
					fmt.Fprintf(w, `{"error":{"code":%q,"message":"CANARY","details":{"4111111111111111":%q}}}`, own, form(everything.accessToken))
					return
				}
				fmt.Fprintf(w, `{"cards":[{"bin":"CANARY","error":"CANARY","data":{"card":{"4111111111111111":null,%q:null,"bank":{"name":"First Example Bank"}}}}],`+
					`"4111 1111 1111 1111":"CANARY",%q:"CANARY"}`, own, own)
			}), true, true)
			if err != nil {
				t.Fatal(err)
			}
			var plan bytes.Buffer
			newPlan(everything, "run").printReads(&plan)
			newPlan(everything, "run").printWrites(&plan)
			text = strings.ToLower(text + plan.String())
			canaries := []string{"4111111111111111", "CANARY", "First Example Bank"}
			for _, own := range []string{everything.apiKey, everything.accessToken, everything.merchantID, everything.account, everything.pending} {
				canaries = append(canaries, own)
				if len(own) > 4 || name != "encoded" { // four digits are too few to look for in Base64
					canaries = append(canaries, form(own))
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

// A program is run as from a shell, against a sandbox.
func program(t *testing.T) (engine *sandbox.Engine, env map[string]string, probe func(args ...string) (code int, stdout, stderr string)) {
	fake := sandbox.NewFake(t, sandbox.Bins) // its address is that of all areas
	env = map[string]string{"CARDDATA_API_KEY": "key", "CARDDATA_ACCESS_TOKEN": "token", "CARDDATA_MERCHANT_ID": "merchant", "CARDDATA_ACCOUNT_ID": "production"}
	for _, area := range []string{"BIN", "REFUND", "UPDATER"} {
		env["CARDDATA_"+area+"_URL"] = fake.URL()
	}
	return fake.Engine, env, func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		code := run(t.Context(), append([]string{"-rate", "10000"}, args...), func(name string) string { return env[name] }, &out, &errs)
		return code, out.String(), errs.String()
	}
}

func arrived(e *sandbox.Engine) int {
	return len(e.Requests(sandbox.Bins)) + len(e.Requests(sandbox.Refunds)) + len(e.Requests(sandbox.Updater))
}

// TestConsent proves that no refund is sent without the hash of its plan, and none to the
// account that programs use.
func TestConsent(t *testing.T) {
	engine, _, probe := program(t)
	code, printed, stderr := probe("-write", "test")
	hash := regexp.MustCompile(`-plan-hash ([0-9a-f]+)`).FindStringSubmatch(stderr)
	if hash == nil || code != cli.ExitUsage || !strings.Contains(printed, "there is no harmless refund") {
		t.Fatalf("exit %d, %s%s", code, printed, stderr)
	}
	for _, args := range [][]string{
		{"-write", "other", "-plan-hash", hash[1]},
		{"-write", "test", "-plan-hash", ""},
		{"-write", "production", "-plan-hash", hash[1]},
	} {
		if code, _, _ := probe(args...); code != cli.ExitUsage || arrived(engine) != 0 {
			t.Errorf("%q: exit %d, %d requests", args, code, arrived(engine))
		}
	}
	code, printed, stderr = probe("-write", "test", "-plan-hash", hash[1])
	if code != 0 || arrived(engine) != 3 || !strings.Contains(printed, "refund-again") {
		t.Errorf("exit %d, %d requests: %s%s", code, arrived(engine), printed, stderr)
	}
}

// TestPlanSendsNothing proves that the default prints every request and sends none.
func TestPlanSendsNothing(t *testing.T) {
	engine, env, probe := program(t)
	for range 2 {
		code, printed, stderr := probe("-job", "42", "-pending", "43")
		if code != 0 || arrived(engine) != 0 {
			t.Errorf("exit %d, %d requests: %s", code, arrived(engine), stderr)
		}
		for _, e := range newPlan(everything, "RUN").entries {
			if !strings.Contains(printed, e.id+" ") {
				t.Errorf("the plan does not have %s", e.id)
			}
		}
		clear(env) // without a service, the plan is for all areas
	}
}

// TestUsage proves that wrong flags and variables are refused by name before anything is
// sent.
func TestUsage(t *testing.T) {
	engine, env, probe := program(t)
	for want, args := range map[string][]string{"-rate": {"-rate", "NaN"}, "arguments": {"argument"}, "-unknown": {"-unknown"}} {
		if code, _, stderr := probe(args...); code != cli.ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit %d: %s", args, code, stderr)
		}
	}
	if code, help, stderr := probe("-h"); code != 0 || stderr != "" || help != usage {
		t.Errorf("-h: exit %d, %s%s", code, stderr, help)
	}
	for _, base := range []string{"http://service.example", "https://user:secret@service.example", "ftp://service.example", ":"} {
		env["CARDDATA_BIN_URL"] = base
		code, _, stderr := probe("-read")
		if code != cli.ExitUsage || strings.Contains(stderr, "secret") || !strings.Contains(stderr, "CARDDATA_BIN_URL") {
			t.Errorf("%s: exit %d: %s", base, code, stderr)
		}
	}
	clear(env)
	if code, _, stderr := probe("-read"); code != cli.ExitUsage || !strings.Contains(stderr, "no area") || arrived(engine) != 0 {
		t.Errorf("no environment: exit %d: %s", code, stderr)
	}
}
