package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// A point is a question that the contract leaves open.
type point struct {
	open    string // as in the README's table
	bears   string // the option or behavior of the library that it bears on
	entries string // the entries that show something of it
	show    func(*fact) string
}

var points = []point{
	{"order of the items, whether there is one for each card, and what bin echoes",
		"bins.LookupAll matches items to cards by bin, and by position where it has none; bins.ErrMissing",
		"lookup-several lookup-reversed lookup-repeated lookup-length-8 lookup-length-11", showItems},
	{"when an item has an error instead of data",
		"Result.Card, bins.ItemError",
		"lookup-unknown lookup-unknown-among", showItems},
	{"the number of cards outside 1 to 50", "bins refuses these before they are sent",
		"lookup-none lookup-51", showFailure},
	{"status and body of a refused credential", "WithTokenSource, CachedToken: after a 401 the token is renewed once",
		"lookup-token", showFailure},
	{"required refund members", "refunds.Submit requires RefundID alone",
		"refund-minimal", showFailure},
	{"whether the service removes duplicate refunds", "refunds.WithResubmit",
		"refund-full refund-again", func(f *fact) string {
			return showFailure(f) + map[bool]string{true: ", the same body"}[f.Repeats]
		}},
	{"status and body of a refund's response", "refunds.WithReceiptCheck, Receipt.Body; if one with a 4xx is recorded, ActionCorrect means to find out",
		"refund-full", showFailure},
	{"authentication of the refund endpoint", "refunds.WithTokenSource; these went without a credential",
		"refund-full refund-again refund-minimal", showStatus},
	{"states of a job, and the response when it is not ready", "updater.WithNotReady",
		"download-missing download-pending", showFailure},
	{"format and content of a download", "Download and DownloadFile pass it on",
		"download-job", func(f *fact) string {
			kind, length := "not JSON", "no Content-Length"
			if f.JSON {
				kind = "JSON"
			}
			if f.Length {
				length = "Content-Length"
			}
			read := fmt.Sprintf("%d bytes", f.Bytes)
			if f.Bytes == maxBody {
				read = "1 MiB and more"
			}
			return fmt.Sprintf("%s, %s, %s, %s, %s", showStatus(f), cmp.Or(f.MediaType, "no media type"), kind, read, length)
		}},
	{"ETag, Last-Modified and ranges of a download", "a broken download goes on where it was, or starts over",
		"download-job download-range download-if-range", func(f *fact) string {
			shown := slices.DeleteFunc(slices.Clone(f.Headers), func(name string) bool {
				return !slices.Contains([]string{"Etag", "Etag (weak)", "Last-Modified", "Accept-Ranges", "Content-Range", "Content-Md5", "Digest", "Repr-Digest", "Content-Digest"}, name)
			})
			return showStatus(f) + ", " + cmp.Or(strings.Join(shown, ", "), "none of these headers")
		}},
}

func showStatus(f *fact) string {
	status := "no response"
	if f.Status > 0 {
		status = fmt.Sprint(f.Status)
	}
	return status + map[bool]string{true: ", cut off"}[f.Cut]
}

// showFailure shows a response that may be an error.
func showFailure(f *fact) string {
	parts := []string{showStatus(f)}
	switch {
	case f.Status == 0:
		return parts[0]
	case f.Bytes == 0:
		parts = append(parts, "no body")
	default:
		parts = append(parts, cmp.Or(f.MediaType, "no media type"))
	}
	if f.Code != "" {
		parts = append(parts, "code "+f.Code)
	}
	if len(f.Items) > 0 {
		parts = append(parts, fmt.Sprintf("items %d", len(f.Items)))
	} else if len(f.Members) > 0 {
		parts = append(parts, showMembers(f.Members))
	}
	if len(f.Words) > 0 {
		parts = append(parts, "with the words "+strings.Join(f.Words, " "))
	}
	return strings.Join(parts, ", ")
}

// showItems shows what the items of a lookup are, in their order.
func showItems(f *fact) string {
	if f.Cards == 0 {
		return showFailure(f)
	}
	var list []string
	for _, i := range f.Items {
		text := "no bin"
		switch {
		case i.Card > 0:
			text = fmt.Sprintf("card %d by %d characters", i.Card, i.BIN)
		case i.BIN > 0:
			text = fmt.Sprintf("bin of %d characters", i.BIN)
		}
		if !i.Data {
			text += " without data"
		}
		if i.Error != "" && i.Error != "null" {
			text += " with error " + i.Error
		}
		list = append(list, text)
	}
	return fmt.Sprintf("%s, cards %d, items %d: %s", showStatus(f), f.Cards, len(f.Items), cmp.Or(strings.Join(list, "; "), "none"))
}

// showMembers lists members with the types that each was seen with.
func showMembers(members map[string]map[string]int) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(members)) {
		list = append(list, name+" "+showTypes(members[name]))
	}
	return strings.Join(list, ", ")
}

func showTypes(types map[string]int) string {
	return strings.Join(slices.Sorted(maps.Keys(types)), " or ")
}

// report prints under each open point what was seen of it.
func report(w io.Writer, seen map[string]*fact) {
	for _, p := range points {
		var rows []string
		for id := range strings.FieldsSeq(p.entries) {
			if f := seen[id]; f != nil {
				rows = append(rows, id+"\t"+p.show(f))
			}
		}
		section(w, p.open, p.bears, rows)
	}
	section(w, "which members can be null, and the content of networkfees", "bins.Optional, Card.NetworkFees", memberRows(seen))
	section(w, "effect and default of enhanced", "LookupRequest.Enhanced, BulkOptions.Enhanced; only types are compared", enhancedRows(seen))
	reportService(w, seen)
}

func section(w io.Writer, open, bears string, rows []string) {
	fmt.Fprintf(w, "%s\n  bears on: %s\n", open, bears)
	if len(rows) == 0 {
		rows = []string{"not asked"}
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintf(table, "  %s\n", row)
	}
	table.Flush()
	fmt.Fprintln(w)
}

// counted lists how often each key was seen.
func counted[K cmp.Ordered](counts map[K]int, format string) string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, fmt.Sprintf(format, key, counts[key]))
	}
	return strings.Join(list, ", ")
}

// memberRows sums up the members of all items, with the count of each type.
func memberRows(seen map[string]*fact) (rows []string) {
	sum, items := map[string]map[string]int{}, 0
	for _, f := range seen {
		if f.Cards == 0 {
			continue
		}
		items += len(f.Items)
		for name, types := range f.Members {
			if sum[name] == nil {
				sum[name] = map[string]int{}
			}
			for kind, n := range types {
				sum[name][kind] += n
			}
		}
	}
	if items > 0 {
		rows = append(rows, fmt.Sprintf("%d items", items))
	}
	for _, name := range slices.Sorted(maps.Keys(sum)) {
		rows = append(rows, name+"\t"+counted(sum[name], "%s %d"))
	}
	return rows
}

// enhancedRows are the members of one card that differ in type between the three forms of
// the request.
func enhancedRows(seen map[string]*fact) (rows []string) {
	forms := []string{"lookup-one", "lookup-not-enhanced", "lookup-enhanced"}
	names := map[string]bool{}
	for _, id := range forms {
		if f := seen[id]; f != nil {
			for name := range f.Members {
				names[name] = true
			}
		}
	}
	if len(names) == 0 {
		return nil
	}
	types := func(id, name string) string {
		if f := seen[id]; f != nil {
			return cmp.Or(showTypes(f.Members[name]), "absent")
		}
		return "not asked"
	}
	rows = []string{"\tnot sent\tfalse\ttrue"}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		a, b, c := types(forms[0], name), types(forms[1], name), types(forms[2], name)
		if a != b || b != c {
			rows = append(rows, strings.Join([]string{name, a, b, c}, "\t"))
		}
	}
	if len(rows) == 1 {
		rows = append(rows, fmt.Sprintf("%d members\talike\talike\talike", len(names)))
	}
	return rows
}

// reportService shows what all endpoints have in common.
func reportService(w io.Writer, seen map[string]*fact) {
	headers, responses := map[string]int{}, 0
	times, statuses := map[string][]int64{}, map[string]map[int]int{}
	for id, f := range seen {
		area, _, _ := strings.Cut(id, "-")
		if f.Status == 0 {
			continue
		}
		responses++
		for _, name := range f.Headers {
			headers[name]++
		}
		times[area] = append(times[area], f.Millis)
		if statuses[area] == nil {
			statuses[area] = map[int]int{}
		}
		statuses[area][f.Status]++
	}
	var headerRows, statusRows, timeRows []string
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		headerRows = append(headerRows, fmt.Sprintf("%s\tin %d of %d responses", name, headers[name], responses))
	}
	for _, area := range slices.Sorted(maps.Keys(times)) {
		list := times[area]
		slices.Sort(list)
		statusRows = append(statusRows, area+"\t"+counted(statuses[area], "%d in %d"))
		timeRows = append(timeRows, fmt.Sprintf("%s\t%d responses, after %d ms in the middle and %d ms at most", area, len(list), list[len(list)/2], list[len(list)-1]))
	}
	section(w, "a header with a request id, rate limits", "Error.RequestID, WithRateLimit; refunds.WithRefusals if a 429 has neither Retry-After nor a remaining count", headerRows)
	section(w, "status codes", "bins.ErrBadRequest and the other conditions, Error.Retryable, refunds.Outcome", statusRows)
	section(w, "timeouts", "WithAttemptTimeout; refunds use connections that were made ahead", timeRows)
}
