package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/carddata/carddata-go/refunds"
)

// members are the members of a refund record by their dotted JSON path, with the
// way to them in a refunds.Refund. The type is the only list of them.
var members = func() map[string][]int {
	found := make(map[string][]int)
	var walk func(t reflect.Type, path string, way []int)
	walk = func(t reflect.Type, path string, way []int) {
		for i := range t.NumField() {
			field := t.Field(i)
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			name, at := path+name, append(way[:len(way):len(way)], i)
			if field.Type.Kind() == reflect.Struct {
				walk(field.Type, name+".", at)
			} else {
				found[name] = at
			}
		}
	}
	walk(reflect.TypeFor[refunds.Refund](), "", nil)
	return found
}()

// isObject tells whether a path is that of an object with members of its own.
func isObject(path string) bool {
	for member := range members {
		if strings.HasPrefix(member, path+".") {
			return true
		}
	}
	return false
}

var errAmount = errors.New("amount must be an integer of at most 64 bits, without fraction, exponent and quotes")

// An integer is written in one way, as in JSON.
var integer = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

// set sets a member. Its text is a string, the digits of an amount, or the JSON
// of metadata. Errors quote nothing of it.
func set(record *refunds.Refund, path, text string) error {
	field := reflect.ValueOf(record).Elem().FieldByIndex(members[path])
	switch field.Interface().(type) {
	case string:
		// Encoding would replace the one, and PostgreSQL refuses the other.
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return fmt.Errorf("%s holds what is no text", path)
		}
		field.SetString(text)
	case *int64:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || !integer.MatchString(text) {
			return errAmount
		}
		field.Set(reflect.ValueOf(&n))
	default:
		var metadata map[string]any
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber() // a float64 would round
		if err := decoder.Decode(&metadata); err != nil || decoder.InputOffset() != int64(len(text)) || metadata == nil {
			return fmt.Errorf("%s must be an object", path)
		}
		if loneSurrogate(text) {
			return errSurrogate
		}
		if !unique(json.NewDecoder(strings.NewReader(text))) {
			return fmt.Errorf("a member of %s stands there twice", path)
		}
		field.Set(reflect.ValueOf(metadata))
	}
	return nil
}

// maxIndexed bounds what stands in an index, where PostgreSQL takes no more than
// about 2,700 bytes a row.
const maxIndexed = 512

// gatekeeper is a client that sends nothing: it knows what the library refuses.
var gatekeeper = sync.OnceValues(func() (*refunds.Client, error) {
	nowhere := roundTripper(func(*http.Request) (*http.Response, error) { return nil, errors.ErrUnsupported })
	return refunds.NewClient("https://localhost", refunds.WithHTTPClient(&http.Client{Transport: nowhere}))
})

// acceptable tells whether a record can be stored, and later be sent.
func acceptable(account string, record *refunds.Refund) error {
	client, err := gatekeeper()
	if err != nil {
		return err
	}
	if record != nil {
		if err := complete(record); err != nil {
			return err
		}
	}
	if len(account) > maxIndexed {
		return fmt.Errorf("the account is longer than %d bytes", maxIndexed)
	}
	if _, err = client.Submit(context.Background(), account, record, refunds.WithMaxRetries(0)); errors.Is(err, refunds.ErrInvalidArgument) {
		return err
	}
	return nil
}

// complete tells whether a record that was read can be enqueued.
func complete(record *refunds.Refund) error {
	if strings.TrimSpace(record.RefundID) == "" {
		return errors.New("refund_id is missing")
	}
	if len(record.RefundID) > maxIndexed {
		return fmt.Errorf("refund_id is longer than %d bytes", maxIndexed)
	}
	return nil
}

// parseJSON reads a record. It is strict where encoding/json is not: a member in
// another case, or twice, could be money that is not what was meant.
func parseJSON(text []byte) (*refunds.Refund, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("the line is not UTF-8")
	}
	record, seen := new(refunds.Refund), make(map[string]bool)
	var object func(raw json.RawMessage, path string) error
	object = func(raw json.RawMessage, path string) error {
		decoder := json.NewDecoder(bytes.NewReader(raw))
		if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
			return errors.New(cmp.Or(strings.TrimSuffix(path, "."), "the line") + " must be an object")
		}
		for decoder.More() {
			token, err := decoder.Token()
			if err != nil {
				return err
			}
			var value json.RawMessage
			if err := decoder.Decode(&value); err != nil {
				return err
			}
			name := path + token.(string)
			if seen[name] {
				return fmt.Errorf("%s stands there twice", name)
			}
			seen[name] = true
			way, known := members[name]
			switch {
			case string(value) == "null" && (known || isObject(name)): // as if it was left out
			case isObject(name):
				err = object(value, name+".")
			case !known:
				err = errors.New("a refund record has no such member: " + printable(name))
			case reflect.TypeFor[refunds.Refund]().FieldByIndex(way).Type.Kind() == reflect.String:
				var s string
				if json.Unmarshal(value, &s) != nil {
					return fmt.Errorf("%s must be a string", name)
				}
				err = set(record, name, s)
			default:
				err = set(record, name, string(value))
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	if !json.Valid(text) {
		return nil, errors.New("the line is not one JSON value")
	}
	if loneSurrogate(string(text)) {
		return nil, errSurrogate
	}
	if err := object(text, ""); err != nil {
		return nil, err
	}
	return record, complete(record)
}

// unique tells whether no object of the value that comes next has a member twice.
func unique(decoder *json.Decoder) bool {
	opening, err := decoder.Token()
	if _, nested := opening.(json.Delim); err != nil || !nested {
		return err == nil
	}
	seen := make(map[string]bool)
	for decoder.More() {
		if opening == json.Delim('{') {
			name, err := decoder.Token()
			if text, ok := name.(string); err != nil || !ok || seen[text] {
				return false
			} else {
				seen[text] = true
			}
		}
		if !unique(decoder) {
			return false
		}
	}
	_, err = decoder.Token()
	return err == nil
}

var errSurrogate = errors.New("an escape in the line is half of a character")

var escape = regexp.MustCompile(`\\(u[0-9a-fA-F]{4}|.)`)

// loneSurrogate tells whether JSON has an escape that encoding/json would replace:
// one half of a pair.
func loneSurrogate(text string) bool {
	wanted := -1 // where the second half has to begin
	for _, at := range escape.FindAllStringSubmatchIndex(text, -1) {
		unit, err := strconv.ParseUint(text[at[2]+1:at[3]], 16, 16)
		high, low := err == nil && unit&0xfc00 == 0xd800, err == nil && unit&0xfc00 == 0xdc00
		if low != (at[0] == wanted) {
			return true
		}
		if wanted = -1; high {
			wanted = at[1]
		}
	}
	return wanted >= 0
}
