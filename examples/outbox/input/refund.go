package input

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/carddata/carddata-go/examples/outbox/refundoutbox"
	"github.com/carddata/carddata-go/refunds"
)

// Refunds is the format of refund records.
var Refunds = Format{
	Raw:   []string{"amount", "additional_data.metadata"},
	Key:   "refund_id",
	Check: func(object []byte) error { return decode(object, new(refunds.Refund), json.RejectUnknownMembers(true)) },
}

// ParseRefund reads a record. It is strict: a member in another case, or twice,
// could be money that is not what was meant.
func ParseRefund(text []byte) (*refunds.Refund, error) {
	record := new(refunds.Refund)
	if err := decode(text, record, json.RejectUnknownMembers(true)); err != nil {
		return nil, err
	}
	if strings.TrimSpace(record.RefundID) == "" {
		return nil, errors.New("refund_id is missing")
	}
	return record, nil
}

// Report is the format of a service's report.
var Report = Format{Raw: []string{"amount"}, Key: "refund_id"}

// ParseReport reads a row of the service's report. It may have other members.
func ParseReport(r Row) (row refundoutbox.ReportRow) {
	row.Line, row.Err = r.Line, r.Err
	if row.Err != nil {
		return row
	}
	var in struct {
		Account  string `json:"account"`
		RefundID string `json:"refund_id"`
		Amount   *int64 `json:"amount"`
		Currency string `json:"currency"`
	}
	row.Err = decode(r.JSON, &in)
	row.Account, row.RefundID, row.Amount, row.Currency = in.Account, in.RefundID, in.Amount, in.Currency
	switch {
	case row.Err != nil:
	case in.RefundID == "":
		row.Err = errors.New("refund_id is missing")
	case in.Account == "":
		row.Err = errors.New("account is missing")
	}
	return row
}

// exactNumbers keeps the numbers of metadata as they are written: a float64 would
// round.
var exactNumbers = json.WithUnmarshalers(json.UnmarshalFromFunc(func(d *jsontext.Decoder, value *any) error {
	if d.PeekKind() != '0' {
		return json.SkipFunc
	}
	text, err := d.ReadValue()
	*value = stdjson.Number(text)
	return err
}))

// decode quotes nothing but names in its errors.
func decode(text []byte, into any, options ...json.Options) error {
	err := json.Unmarshal(text, into, append(options, exactNumbers)...)
	if err == nil && jsontext.Value(text).Kind() != '{' {
		return errors.New("the line must be an object")
	}
	if err == nil {
		return nil
	}
	wrong, _ := errors.AsType[*json.SemanticError](err)
	syntax, _ := errors.AsType[*jsontext.SyntacticError](err)
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return fmt.Errorf("%s appears twice", path(syntax.JSONPointer))
	case errors.Is(err, json.ErrUnknownName):
		return fmt.Errorf("a refund record has no such member: %s", path(wrong.JSONPointer))
	case syntax != nil && strings.Contains(syntax.Error(), "UTF-8"):
		return errors.New("the line is not UTF-8")
	case syntax != nil && strings.Contains(syntax.Error(), "surrogate"):
		return errors.New("an escape in the line is half of a character")
	case wrong == nil || wrong.GoType == nil:
		return errors.New("the line is not one JSON value")
	}
	name := path(wrong.JSONPointer)
	switch wrong.GoType.Kind() {
	case reflect.String:
		return fmt.Errorf("%s must be a string", name)
	case reflect.Int64, reflect.Pointer:
		return fmt.Errorf("%s must be an integer of at most 64 bits, without fraction, exponent and quotes", name)
	}
	return fmt.Errorf("%s must be an object", name)
}

func path(p jsontext.Pointer) string {
	if names := slices.Collect(p.Tokens()); len(names) > 0 {
		return strings.Join(names, ".")
	}
	return "the line"
}
