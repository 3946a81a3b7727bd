package main

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/examples/tools/internal/cli"
)

const defaultColumns = "card_brand,type,funding_source,prepaid,product.product_name,bank.name,country.alpha2,authentication.authentication_required,error"

// A column is a member of the card that each row of the output gets.
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
			return nil, cli.Usage("enrich: %s belongs to one request and not to a card, it cannot be a column", path)
		case !ok:
			return nil, cli.Usage("enrich: the service's card object has no member %q (-columns)", path)
		case name == "" || slices.ContainsFunc(columns, func(c column) bool { return c.name == name }):
			return nil, cli.Usage("enrich: -columns names the column %q twice, or one not at all", name)
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

// values returns the columns' values. Without a card, all are nil except for the error.
func values(columns []column, card *bins.Card, message string) []any {
	all := make([]any, len(columns))
	for i, c := range columns {
		switch {
		case c.path == errorPath && message != "":
			all[i] = cli.Line(message) // the service may quote the card in it
		case c.path != errorPath && card != nil:
			all[i] = reflect.ValueOf(card).Elem().FieldByIndex(c.index).Interface()
		}
	}
	return all
}

// cellText returns a value as the text of a CSV cell. Null is empty, and an object or a
// list is JSON.
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
