package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/carddata/carddata-go/internal/mask"
	"github.com/carddata/carddata-go/internal/sandbox"
)

// A view lists the members of a JSON value that are shown, by their paths. All others are
// hidden, and their names too, because a name may be data.
type view map[string]visibility

type visibility int

const (
	hidden     visibility = iota
	shown                 // card numbers masked
	identifier            // hidden unless it is a card number or BIN, which is masked
	all                   // shown, with everything in it
)

var errorObject = map[string]visibility{"error": all}

var requestViews = map[sandbox.Area]view{
	sandbox.Bins: {"cards.card": identifier, "enhanced": shown},
	sandbox.Refunds: {
		"refund_id":            shown,
		"amount":               shown,
		"currency":             shown,
		"created":              shown,
		"transaction_id":       shown,
		"transaction_order_id": shown,
		"payment_method_details.payment_method_type":            shown,
		"payment_method_details.card.attributes.network":        shown,
		"payment_method_details.card.attributes.type":           shown,
		"payment_method_details.card.attributes.bin":            identifier,
		"payment_method_details.card.attributes.issuer_bank":    shown,
		"payment_method_details.card.attributes.issuer_country": shown,
		"refund_response.status":                                shown,
		"refund_response.processor_response_code":               shown,
		"refund_response.reason":                                hidden,
		"additional_data.merchant_account_id":                   shown,
		"additional_data.order_id":                              shown,
		"additional_data.acquirer_reference_number":             shown,
		"additional_data.description":                           hidden,
		"additional_data.metadata":                              hidden,
		"svc_codes.svc_refund_status":                           shown,
	},
}

var responseViews = map[sandbox.Area]view{
	sandbox.Bins:    {"error": all, "cards.bin": identifier, "cards.data": all, "cards.error": shown},
	sandbox.Refunds: errorObject,
	sandbox.Updater: errorObject,
	"":              errorObject,
}

const (
	maxText = 16 << 10
	hides   = "****"
)

// show sets the part of body that v shows. A body that is not JSON is not shown, except
// for CSV.
func (m *message) show(body []byte, v view) {
	body = bytes.TrimSpace(body)
	switch {
	case len(body) == 0:
	case body[0] == '{' || body[0] == '[':
		w := walker{in: json.NewDecoder(bytes.NewReader(body)), view: v}
		w.in.UseNumber()
		err := w.value("", hidden)
		if err == nil {
			if _, err = w.in.Token(); err == io.EOF {
				m.Body = w.out.Bytes()
				return
			}
		}
		m.Text, m.Cut = w.out.String(), true
	case strings.HasPrefix(m.Header["Content-Type"], "text/csv"):
		m.Text = maskPart(string(body))
	default:
		m.Cut = true
	}
}

// A walker copies what a view shows of a JSON value that may be incomplete.
type walker struct {
	in     *json.Decoder
	view   view
	out    bytes.Buffer
	indent string
}

var errLong = errors.New("too long to be shown")

func (w *walker) value(path string, inherited visibility) error {
	if w.out.Len() > maxText {
		return errLong
	}
	token, err := w.in.Token()
	if err != nil {
		return err
	}
	k := inherited
	if k != all {
		k = w.view[path]
	}
	switch token := token.(type) {
	case json.Delim:
		if path == "" || k == all || w.leads(path) {
			return w.members(path, k, token)
		}
		w.write(hides)
		end := w.out.Len()
		defer func() { w.out.Truncate(end) }()
		return w.members(path, k, token)
	case string:
		switch k {
		case hidden:
			w.write(hides)
		case identifier:
			w.write(mask.Identifier(token))
		default:
			w.write(text(token))
		}
	case json.Number:
		// It may be a card number.
		if k == hidden || k == identifier || mask.Text(token.String()) != token.String() {
			w.write(hides)
		} else {
			w.out.WriteString(token.String())
		}
	default:
		w.write(token)
	}
	return nil
}

// leads reports whether the view shows a member below path.
func (w *walker) leads(path string) bool {
	for known := range w.view {
		if strings.HasPrefix(known, path+".") {
			return true
		}
	}
	return false
}

// isName reports whether to show the name of a member that the interface does not have. A
// misspelled name such as refundId helps, but a name may also be a token or a card.
var isName = regexp.MustCompile(`^[A-Za-z][A-Za-z_]{0,39}$`).MatchString

func (w *walker) members(path string, k visibility, open json.Delim) error {
	outer := w.indent
	w.indent += "  "
	w.out.WriteRune(rune(open))
	empty := true
	for w.in.More() {
		if !empty {
			w.out.WriteByte(',')
		}
		empty = false
		w.out.WriteString("\n" + w.indent)
		below := path
		if open == '{' {
			token, err := w.in.Token()
			if err != nil {
				return err
			}
			name, _ := token.(string)
			below = strings.TrimPrefix(path+"."+name, ".")
			if _, documented := w.view[below]; !documented && k != all && !w.leads(below) && !isName(name) {
				name = hides
			}
			w.write(text(name))
			w.out.WriteString(": ")
		}
		if err := w.value(below, k); err != nil {
			return err
		}
	}
	end, err := w.in.Token()
	if err != nil {
		return err
	}
	w.indent = outer
	if !empty {
		w.out.WriteString("\n" + w.indent)
	}
	w.out.WriteRune(rune(end.(json.Delim)))
	return nil
}

func (w *walker) write(v any) {
	b, _ := json.Marshal(v)
	w.out.Write(b)
}

const maxLine = 200

// text masks card numbers and cuts long text.
func text(s string) string {
	s = mask.Text(s)
	if len(s) <= maxLine {
		return s
	}
	// Cut after masking: a part of a card number would not be masked.
	end := maxLine
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

var documented = strings.Fields(`GET POST PUT PATCH DELETE HEAD OPTIONS
	bins multiple v1 refunds updater inquiries jobs download`)

// word shows words of the interface only. Others may be data.
func word(s string) string {
	if slices.Contains(documented, s) {
		return s
	}
	return hides
}

// maskPath shows the identifiers in documented paths only.
func maskPath(path []string) string {
	id := -1
	switch {
	case len(path) == 3 && path[0] == "v1" && path[2] == "refunds":
		id = 1
	case len(path) == 5 && path[0] == "updater" && path[2] == "jobs" && path[4] == "download":
		id = 3
	}
	masked := make([]string, len(path))
	for i, segment := range path {
		switch {
		case i == id:
			masked[i] = text(segment)
		case segment != "":
			masked[i] = word(segment)
		}
	}
	return "/" + strings.Join(masked, "/")
}

var shownHeaders = []string{
	"Accept", "Accept-Ranges", "Allow", "Content-Length", "Content-Range", "Content-Type", "Etag", "If-Range", "Range", "Retry-After", "User-Agent",
}

// maskHeader shows the header fields that matter, and that credentials are there.
func maskHeader(h http.Header) map[string]string {
	masked := make(map[string]string)
	for _, name := range shownHeaders {
		if value := h.Get(name); value != "" {
			masked[name] = text(value)
		}
	}
	if value := h.Get("Authorization"); value != "" {
		masked["Authorization"] = hides
		if strings.HasPrefix(value, "Bearer ") {
			masked["Authorization"] = "Bearer " + hides
		}
	}
	if h.Get("X-Merchant-Id") != "" {
		masked["X-Merchant-Id"] = hides
	}
	return masked
}

// maskFinding hides the name of a member that may be data.
func maskFinding(f *sandbox.Finding) {
	if f.Unknown != "" && !isName(f.Unknown) {
		f.Path = strings.TrimSuffix(f.Path, f.Unknown) + hides
	}
}

var edges = regexp.MustCompile(`^[0-9 -]+|[0-9 -]+$`)

// maskPart masks a part of a text that may begin and end inside a card number.
func maskPart(s string) string {
	return mask.Text(edges.ReplaceAllString(s, hides))
}
