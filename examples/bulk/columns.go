package main

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/examples/internal/target"
)

const defaultColumns = "card_brand,type,funding_source,prepaid,product.product_name,bank.name,country.alpha2,error"

// A column is something about a card that a row gets.
type column struct {
	name  string // in the output
	path  string // in the service's card object; errorPath: the item's error
	index []int  // of the field in a bins.Card
}

const errorPath = "error"

// parseColumns reads the -columns flag.
func parseColumns(list string) ([]column, error) {
	known := map[string][]int{errorPath: nil}
	addMembers(known, reflect.TypeFor[bins.Card](), "", nil)
	var columns []column
	for part := range strings.SplitSeq(list, ",") {
		name, path, renamed := strings.Cut(strings.TrimSpace(part), "=")
		if !renamed {
			path = name
		}
		index, ok := known[path]
		switch {
		case path == "pan_or_token" || path == "correlation_id":
			return nil, target.Usage("bulk: %s belongs to one request and not to a card, it cannot be a column", path)
		case !ok:
			return nil, target.Usage("bulk: the service's card object has no member %q (-columns)", path)
		case name == "" || slices.ContainsFunc(columns, func(c column) bool { return c.name == name }):
			return nil, target.Usage("bulk: -columns names the column %q twice, or one not at all", name)
		}
		columns = append(columns, column{name, path, index})
	}
	return columns, nil
}

// addMembers finds the members of an object, and those of the objects in it.
func addMembers(known map[string][]int, object reflect.Type, prefix string, index []int) {
	for i := range object.NumField() {
		field := object.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		path, own := prefix+name, append(slices.Clone(index), i)
		known[path] = own
		if field.Type.Kind() == reflect.Struct && !field.Type.Implements(reflect.TypeFor[json.Marshaler]()) {
			addMembers(known, field.Type, path+".", own)
		}
	}
}

// value returns the column's value. Without a card, only its error has one.
func (c *column) value(card *bins.Card, message string) any {
	switch {
	case c.path == errorPath && message != "":
		return message
	case c.path == errorPath || card == nil:
		return nil
	}
	return reflect.ValueOf(card).Elem().FieldByIndex(c.index).Interface()
}

// values returns what a row gets from an answer. That the service does not know
// a card is an answer too.
func values(columns []column, r *bins.Result) []any {
	card, _ := r.Card()
	all := make([]any, len(columns))
	for i := range columns {
		// The service's words may quote the card.
		all[i] = columns[i].value(card, target.Line(r.Error))
	}
	return all
}

// unanswered returns what a row gets that has no answer and stays in the output:
// the reason as its error, and nothing else.
func unanswered(columns []column, p *problem) []any {
	all := make([]any, len(columns))
	for i := range columns {
		all[i] = columns[i].value(nil, "failed: "+p.kind+": "+target.Line(p.text))
	}
	return all
}

// cellText is a value in a CSV cell: empty where the service does not state it,
// and JSON if it is an object or a list.
func cellText(value any) (string, error) {
	if text, ok := value.(string); ok {
		return text, nil
	}
	encoded, err := json.Marshal(value)
	if err != nil || string(encoded) == "null" {
		return "", err
	}
	return string(encoded), nil
}

// cut returns the members of a card that the columns need, as nested as they
// are in the service's answers.
func cut(columns []column, card *bins.Card) map[string]any {
	kept := map[string]any{"bin_min": card.BINMin, "bin_max": card.BINMax}
	for i := range columns {
		if columns[i].path == errorPath {
			continue
		}
		object, names := kept, strings.Split(columns[i].path, ".")
		for _, name := range names[:len(names)-1] {
			inner, ok := object[name].(map[string]any)
			if !ok && object[name] == nil {
				inner = map[string]any{}
				object[name] = inner
			}
			object = inner
		}
		if object != nil { // or another column keeps the whole
			object[names[len(names)-1]] = columns[i].value(card, "")
		}
	}
	return kept
}
