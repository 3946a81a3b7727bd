package faults

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
)

// The rows of the retry policy, as the log tells them apart: by the status of a
// response that is one, or by how the result begins.
var policyRows = []struct {
	name     string
	statuses []int
	result   string
}{
	{"success", nil, "success"},
	{"limiter refused", nil, "the local rate limiter"},
	{"no credential", nil, "no credential"},
	{"caller ended", nil, "the caller's context ended"},
	{"host not found", nil, "no response: the host name does not exist"},
	{"host lookup failed", nil, "no response: the host name could not"},
	{"connect failed", nil, "no response: no connection"},
	{"handshake failed", nil, "no response: the TLS"},
	{"proxy refused", nil, "no response: the proxy could"},
	{"proxy forbids", nil, "no response: the proxy forbids"},
	{"connection broken", nil, "no response: the connection broke"},
	{"transport failed", nil, "no response: the HTTP transport failed"},
	{"attempt timed out", nil, "no response within"},
	{"not HTTP", nil, "the response is not HTTP"},
	{"unexpected status", nil, "unexpected status"},
	{"HTML", nil, "the response is an HTML page"},
	{"before the request", nil, "the response came before"},
	{"error object", nil, "the response is an error object"},
	{"check refused", nil, "the caller's check"},
	{"encoded", nil, "the response has a content encoding"},
	{"too large", nil, "the response exceeds"},
	{"cut off", nil, "the response was cut off"},
	{"malformed", nil, "the response is not the documented"},
	{"301 302 303", []int{301, 302, 303}, ""},
	{"307 308", []int{307, 308}, ""},
	{"401", []int{401}, ""},
	{"403", []int{403}, ""},
	{"404 410", []int{404, 410}, ""},
	{"408", []int{408}, ""},
	{"409", []int{409}, ""},
	{"413 414 431", []int{413, 414, 431}, ""},
	{"421", []int{421}, ""},
	{"425", []int{425}, ""},
	{"429", []int{429}, ""},
	{"501 505", []int{501, 505}, ""},
	{"502 503 504", []int{502, 503, 504}, ""},
	{"other 5xx", []int{500, 599}, ""},
	{"other 4xx", []int{400, 405, 415, 422, 451}, ""},
}

// unreached are the rows that no schedule can reach, and why. The tests of
// internal/transport reach them.
var unreached = []struct{ row, service, protocol, why string }{ // "" is any
	{"limiter refused", "", "later", "a call that could not be repeated ends with the response that it has"},
	{"no credential", "", "later", "a call that could not be repeated ends with the response that it has"},
	{"handshake failed", "", "", "the network in memory has no TLS"},
	{"proxy refused", "", "", "and no proxy"},
	{"proxy forbids", "", "", "and no proxy"},
	{"before the request", "", "", "the requests fit into one write, which has ended when the service reads them"},
	{"check refused", "", "", "no caller gives a check"},
	{"not HTTP", "", "HTTP/2", "what is no frame breaks the connection"},
	{"no credential", "refunds", "", "the service takes refunds without a token"},
	{"401", "refunds", "", "the service takes refunds without a token"},
	{"malformed", "refunds", "", "a receipt is not decoded"},
	{"malformed", "updater", "", "a content is not decoded"},
	{"cut off", "updater", "", "a content that breaks is resumed by another call"},
	{"too large", "updater", "", "a content is measured while it is read, after the attempt"},
}

// seen counts the attempts that ended in each row.
type seen struct{ w *world }

func (seen) Enabled(context.Context, slog.Level) bool { return true }
func (h seen) WithAttrs([]slog.Attr) slog.Handler     { return h }
func (h seen) WithGroup(string) slog.Handler          { return h }

func (h seen) Handle(ctx context.Context, r slog.Record) error {
	if h.w.misbehave(ctx, logger, true) == fails {
		return errThrown
	}
	values := map[string]slog.Value{}
	r.Attrs(func(a slog.Attr) bool { values[a.Key] = a.Value; return true })
	n, sent := int64(0), r.Message == "attempt"
	switch {
	case sent:
		n = values["attempt"].Int64()
	case r.Message == "call":
		n = values["attempts"].Int64() + 1 // the one that was not sent
	default:
		return nil
	}
	row := rowOf(values["result"].String(), int(values["status"].Int64()))
	if !sent && row != "limiter refused" && row != "no credential" {
		return nil
	}
	h.w.count(cell(row, values["service"].String(), protocolOf(h.w.settings.http2), n > 1))
	return nil
}

func rowOf(result string, status int) string {
	for _, row := range policyRows {
		if row.result != "" && strings.HasPrefix(result, row.result) || row.result == "" && slices.Contains(row.statuses, status) {
			return row.name
		}
	}
	return "none: " + result
}

func protocolOf(http2 bool) string {
	if http2 {
		return "HTTP/2"
	}
	return "HTTP/1.1"
}

// cell names a cell of the table, in a tally.
func cell(row, service, protocol string, later bool) string {
	return fmt.Sprintf("row/%s/%s/%s/%t", row, service, protocol, later)
}

// reachesAll prints how often each row was reached, by service and protocol, as
// the first attempt of a call and as a later one, and fails if one was not.
func reachesAll(t *testing.T, sum tally) {
	var b strings.Builder
	lines := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	services, protocols := []string{"bins", "refunds", "updater"}, []string{"HTTP/1.1", "HTTP/2"}
	fmt.Fprint(lines, "first+later\t")
	for _, service := range services {
		for _, protocol := range protocols {
			fmt.Fprintf(lines, "%s %s\t", service, protocol)
		}
	}
	fmt.Fprintln(lines)
	for _, row := range policyRows {
		fmt.Fprintf(lines, "%s\t", row.name)
		for _, service := range services {
			for _, protocol := range protocols {
				first, later := sum[cell(row.name, service, protocol, false)], sum[cell(row.name, service, protocol, true)]
				why := whyUnreached(row.name, service, protocol)
				switch {
				case why != "":
					fmt.Fprint(lines, "-\t")
				default:
					fmt.Fprintf(lines, "%d+%d\t", first, later)
				}
				switch reached := first > 0 && (later > 0 || !needsLater(row.name)); {
				case why == "" && !reached:
					t.Errorf("%s, %s over %s: reached %d times as the first attempt and %d as a later one", row.name, service, protocol, first, later)
				case why != "" && first+later > 0:
					t.Errorf("%s, %s over %s was reached, although %s", row.name, service, protocol, why)
				}
			}
		}
		fmt.Fprintln(lines)
	}
	lines.Flush()
	t.Logf("attempts by the row of the retry policy in which they ended:\n%s", b.String())
}

func whyUnreached(row, service, protocol string) string {
	for _, u := range unreached {
		if u.row == row && (u.service == "" || u.service == service) && (u.protocol == "" || u.protocol == protocol) {
			return u.why
		}
	}
	return ""
}

// needsLater tells whether a row can be that of a later attempt.
func needsLater(row string) bool { return whyUnreached(row, "", "later") == "" }
