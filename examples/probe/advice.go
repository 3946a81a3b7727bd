package main

import (
	"fmt"
	"go/format"
	"slices"
	"strings"

	"github.com/carddata/carddata-go/internal/probe"
)

// An assumption is what the library does about a point, and when that holds.
type assumption struct {
	open    string // what the README says is not documented
	assumed string
	holds   func(answer []string) bool // nil: nothing is assumed
}

func is(words ...string) func([]string) bool {
	return func(answer []string) bool {
		return !slices.ContainsFunc(answer, func(a string) bool { return !slices.Contains(words, a) })
	}
}

var assumptions = map[string]assumption{
	"lookup.order":        {"order of the items", "bulk calls match items by what they name", nil},
	"lookup.items":        {"whether there is one item for each card", "a card without an item is ErrMissing", nil},
	"lookup.duplicates":   {"whether there is one item for each card", "bulk calls send each card once", nil},
	"lookup.echo":         {"order of the items", "an item names its card by bin, whole or cut", is("whole", "prefix 6", "prefix 7", "prefix 8", "prefix 9", "prefix 10")},
	"lookup.unknown":      {"when an item has an error instead of data", "an unknown card does not fail the request", is("error item", "null data", "left out")},
	"lookup.nulls":        {"which members can be null", "any may be", nil},
	"lookup.enhanced":     {"effect and default of enhanced", "a nil Enhanced is not sent", nil},
	"lookup.bounds":       {"status codes", "never sent: 1 to 50 cards", nil},
	"lookup.unauthorized": {"status codes", "a 401 is retried once with another token", is("401")},
	"lookup.error":        {"error bodies of lookup and refund", "the documented object, message, or code", is("documented object", "message", "code", "empty")},
	"download.missing":    {"states of a job", "NotReady is yours", nil},
	"download.pending":    {"the response when a job is not ready", "NotReady is yours", nil},
	"download.content":    {"format and content of a download", "it is streamed", nil},
	"download.resume":     {"ETag, Last-Modified, ranges and length of a download", "If-Range is heeded where there is only a date", func(a []string) bool { return !slices.Contains(a, "ignored") || !slices.Contains(a, "date") }},
	"refund.required":     {"required refund members", "it asks for RefundID alone", nil},
	"refund.duplicate":    {"whether the service removes duplicate refunds", "WithResubmit is your word that it does", nil},
	"refund.response":     {"body of a refund's response", "it is kept in the Receipt", nil},
	"refund.credential":   {"authentication of the refund endpoint", "none is sent", is("accepted without")},
	"service.request_id":  {"a header with a request id", "X-Request-Id, X-Correlation-Id, Request-Id", is("X-Request-Id", "X-Correlation-Id", "Request-Id", "none")},
	"service.quota":       {"rate limits", "", nil},
	"service.idle": {"timeouts", "longer than 2 s after a lookup", func(a []string) bool {
		return !slices.Contains(a, "closed after 1 s") && !slices.Contains(a, "closed after 2 s")
	}},
}

// held says whether what the library assumes held.
func held(p probe.Point) string {
	a := assumptions[p.ID]
	switch {
	case a.holds == nil:
		return "nothing is assumed"
	case p.State == probe.NotAnswerable || p.State == probe.NotTried:
		return "open"
	case a.holds(p.Answer):
		return "held"
	}
	return "did not hold"
}

// accepted are the statuses of a refund that was accepted, and of its duplicate if that
// was too.
func accepted(ledger *probe.Ledger) (statuses []int) {
	for _, entry := range []string{"refund-full", "refund-duplicate"} {
		if fact := ledger.Seen()[entry]; fact != nil && !fact.Cut && fact.Status/100 == 2 {
			statuses = append(statuses, fact.Status)
		}
	}
	return slices.Compact(statuses)
}

// options is a Go file with the options that the answers recommend, and the statuses
// with which refunds were accepted.
func options(points []probe.Point, accepted []int) string {
	answers := map[string][]string{}
	for _, p := range points {
		if p.State == probe.Observed {
			answers[p.ID] = p.Answer
		}
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("// Package carddata holds what a probe of the service recommends.")
	line("package carddata\n")
	line("import (\n\"net/http\"\n\n\"github.com/carddata/carddata-go/bins\"\n\"github.com/carddata/carddata-go/refunds\"\n\"github.com/carddata/carddata-go/updater\"\n)\n")
	line("// BinsOptions are for bins.NewClient.\nfunc BinsOptions() []bins.Option {\nreturn []bins.Option{")
	if words := answers["service.quota"]; len(words) > 0 && words[0] != "none" {
		line("// The service tells its quota in %s.", strings.Join(words, ", "))
	} else {
		line("// The service tells no quota: this finds it.")
	}
	line("bins.WithAdaptiveRate(bins.AdaptiveRate{Start: 1, Max: 50}),\n}\n}\n")
	line("// RefundsOptions are for refunds.NewClient.\nfunc RefundsOptions() []refunds.Option {\nreturn []refunds.Option{")
	if len(accepted) > 0 {
		line("// Refunds were accepted with status %s: any other 2xx is an unknown outcome.", strings.ReplaceAll(strings.Trim(fmt.Sprint(accepted), "[]"), " ", " and "))
		var others []string
		for _, status := range accepted {
			others = append(others, fmt.Sprintf("r.StatusCode != %d", status))
		}
		line("refunds.WithReceiptCheck(func(r *refunds.Receipt) error {\nif %s {\nreturn errUnexpected\n}\nreturn nil\n}),", strings.Join(others, " && "))
	}
	if words := answers["refund.credential"]; len(words) > 0 && strings.HasPrefix(words[0], "refused") {
		line("// The service wants a credential: refunds.WithTokenSource(source).")
	}
	line("}\n}\n")
	if len(accepted) > 0 {
		line("type unexpected struct{}\n\nfunc (unexpected) Error() string { return \"not the status of an acceptance\" }\n\nvar errUnexpected unexpected\n")
	}
	line("// UpdaterOptions are for updater.NewClient.\nfunc UpdaterOptions() []updater.Option {\nreturn nil\n}\n")
	line("// NotReady is for updater.WaitOptions.")
	line("func NotReady(e *updater.Error) bool {")
	if words := answers["download.pending"]; len(words) > 0 {
		status, code, _ := strings.Cut(words[0], " ")
		missing := strings.Join(answers["download.missing"], "")
		missingStatus, missingCode, _ := strings.Cut(missing, " ")
		condition := "e.StatusCode == " + status
		if code != "" {
			condition += fmt.Sprintf(" && e.Code == %q", code)
		}
		switch {
		case missing == "":
			line("// The response for a job that does not exist was not observed, and may be the same.")
		case missing == words[0]:
			line("// A job that does not exist looks the same: a mistyped id is waited for until the deadline.")
		case code == "" && missingStatus == status:
			condition += fmt.Sprintf(" && e.Code != %q", missingCode)
		}
		line("return %s", condition)
	} else {
		line("return e.StatusCode == http.StatusConflict // not observed: ask the service's operator")
	}
	line("}\n\nvar _ = http.StatusOK")
	text, err := format.Source([]byte(b.String()))
	if err != nil {
		return b.String()
	}
	return string(text)
}

// letter is what to ask the service's operator: what nobody can see from outside.
func letter(plan *probe.Plan, points []probe.Point) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Subject: questions about the Card Data Service interface\n\nHello,\n\nwe integrate your service and could not find these answers in its interface, nor from outside:\n")
	n, written := 0, 0
	ask := func(format string, args ...any) {
		n++
		fmt.Fprintf(&b, "\n%d. "+format+"\n", append([]any{n}, args...)...)
	}
	for _, p := range points {
		switch p.ID {
		case "refund.required":
			written += p.Requests
		case "refund.duplicate":
			written += min(1, p.Requests) // the second has the id of the first
		}
		switch {
		case p.ID == "refund.duplicate" && p.Requests > 1:
			ask("Refunds with one refund_id: we sent %s twice with equal content. Is it recorded once or twice? May we\n   submit a refund again under its refund_id when we do not know whether the first request arrived?", plan.RefundIDs()[0])
		case p.State == probe.Contradicted:
			ask("%s (%s): we saw %s. Which is right?", p.ID, assumptions[p.ID].open, p.Bound)
		case p.State == probe.NotAnswerable && p.Requests > 0:
			ask("%s: %s", p.ID, assumptions[p.ID].open)
		}
	}
	ask("Which requests are limited to which rate, and what does a refusal say?")
	if written > 0 {
		fmt.Fprintf(&b, "\nThe test records to look at, and to remove, by their refund_id or their description:\n  %s\n",
			strings.Join(plan.RefundIDs()[:written], "\n  "))
	}
	fmt.Fprintf(&b, "\nThank you.\n")
	return b.String()
}
