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
	"sync"
	"unicode/utf8"

	"github.com/carddata/carddata-go/internal/mask"
	"github.com/carddata/carddata-go/internal/sandbox"
)

// A view says by the paths of its members what may be seen of a JSON value.
// Everything else is hidden, its name included, which may be data.
type view map[string]visibility

type visibility int

const (
	hidden     visibility = iota
	shown                 // card numbers masked
	identifier            // may be a token
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
	maxText = 64 << 10
	hides   = "****"
)

// show sets what may be seen of body. A body that is not JSON may be anything,
// and is not shown, except for the result of a job.
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

// A walker copies a JSON value as far as it goes.
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
		if path != "" && k != all && !w.leads(path) {
			w.write(hides)
			return w.skip()
		}
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
		// A card number may come as a number.
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

// leads tells whether there is something to be seen below path.
func (w *walker) leads(path string) bool {
	for known := range w.view {
		if strings.HasPrefix(known, path+".") {
			return true
		}
	}
	return false
}

var plain = strings.NewReplacer("_", "", "-", "", " ", "")

// misspells tells whether name is one of the interface but for case and
// separators, as in refundId, which is worth seeing.
func (w *walker) misspells(name string) bool {
	for known := range w.view {
		for part := range strings.SplitSeq(known, ".") {
			if strings.EqualFold(plain.Replace(part), plain.Replace(name)) {
				return true
			}
		}
	}
	return false
}

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
			if _, documented := w.view[below]; !documented && k != all && !w.leads(below) && !w.misspells(name) {
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

// skip reads to the end of the object or array that has begun.
func (w *walker) skip() error {
	for depth := 1; depth > 0; {
		token, err := w.in.Token()
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
	return nil
}

func (w *walker) write(v any) {
	b, _ := json.Marshal(v)
	w.out.Write(b)
}

const maxLine = 200

// text is for what may be seen: card numbers masked, and not endless.
func text(s string) string {
	s = mask.Text(s)
	if len(s) <= maxLine {
		return s
	}
	// After the mask, which must see a number whole.
	end := maxLine
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

var documented = strings.Fields(`GET POST PUT PATCH DELETE HEAD OPTIONS
	bins multiple v1 refunds updater inquiries jobs download`)

// word shows the words of the interface. Others may be data.
func word(s string) string {
	if slices.Contains(documented, s) {
		return s
	}
	return hides
}

// maskPath keeps the identifiers of the documented paths only.
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

// maskHeader shows what the service reads, and of credentials that they are
// there.
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

// maskFinding hides the name of a member that the interface does not have, which
// may be data, unless it is made of the interface's own words, or nearly is one.
func maskFinding(f *sandbox.Finding) {
	if f.Unknown != "" && !isFamiliar(f.Unknown) {
		f.Path = strings.TrimSuffix(f.Path, f.Unknown) + hides
	}
}

var (
	wordsOf = regexp.MustCompile(`[A-Z]?[a-z]+|[A-Z]+|[0-9]+`)
	// knownWords are those of the names that the interface has.
	knownWords = sync.OnceValue(func() map[string]bool {
		words := make(map[string]bool)
		for _, name := range sandbox.MemberNames() {
			for _, word := range wordsOf.FindAllString(name, -1) {
				words[strings.ToLower(word)] = true
			}
		}
		return words
	})
)

func isFamiliar(name string) bool {
	words := wordsOf.FindAllString(name, -1)
	rest := strings.Trim(wordsOf.ReplaceAllString(name, ""), "_- ")
	return len(words) > 0 && rest == "" && !slices.ContainsFunc(words, func(word string) bool {
		word = strings.ToLower(word)
		for known := range knownWords() {
			if word == known || len(word) > 3 && isTypo(word, known) {
				return false
			}
		}
		return true
	})
}

// isTypo tells whether one letter is missing, too many, another one, or has
// changed places with the next.
func isTypo(word, known string) bool {
	for len(word) > 0 && len(known) > 0 && word[0] == known[0] {
		word, known = word[1:], known[1:]
	}
	for len(word) > 0 && len(known) > 0 && word[len(word)-1] == known[len(known)-1] {
		word, known = word[:len(word)-1], known[:len(known)-1]
	}
	return len(word)+len(known) == 1 || len(word) == 1 && len(known) == 1 ||
		len(word) == 2 && len(known) == 2 && word[0] == known[1] && word[1] == known[0]
}

var edges = regexp.MustCompile(`^[0-9 -]+|[0-9 -]+$`)

// maskPart is for a part of a text, whose edges may be parts of card numbers.
func maskPart(s string) string {
	return mask.Text(edges.ReplaceAllString(s, hides))
}
