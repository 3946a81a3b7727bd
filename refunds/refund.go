package refunds

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"unicode/utf8"

	"github.com/carddata/carddata-go/internal/fault"
)

// A Refund is a refund record. Empty strings, objects without a set field, and a nil Amount or Metadata
// are left out. Everything else is sent unchanged.
//
// Printing a Refund shows its id, amount and currency. Its JSON is the whole record, also for slog's JSON
// handler in a list of refunds: log one at a time.
type Refund struct {
	// RefundID identifies the record, and is required here: without it nobody can find out what became of
	// the refund. Keep it when you submit the refund again.
	RefundID string `json:"refund_id,omitzero"`

	// Amount is in a unit that is not documented; minor units are common, such as new(int64(10150)) for
	// 101.50 USD. Zero is sent.
	Amount *int64 `json:"amount,omitzero"`

	// Currency is that of Amount. ISO 4217 is common, such as "USD".
	Currency string `json:"currency,omitzero"`

	// Created is when the refund was made. RFC 3339 in UTC is common.
	Created string `json:"created,omitzero"`

	// TransactionID and TransactionOrderID are of the transaction that is refunded. How the latter differs
	// from AdditionalData.OrderID is not documented.
	TransactionID        string               `json:"transaction_id,omitzero"`
	TransactionOrderID   string               `json:"transaction_order_id,omitzero"`
	PaymentMethodDetails PaymentMethodDetails `json:"payment_method_details,omitzero"`
	RefundResponse       RefundResponse       `json:"refund_response,omitzero"`
	AdditionalData       AdditionalData       `json:"additional_data,omitzero"`
	SVCCodes             SVCCodes             `json:"svc_codes,omitzero"`
}

// PaymentMethodDetails describes the payment method of the payment.
type PaymentMethodDetails struct {
	PaymentMethodType string            `json:"payment_method_type,omitzero"` // such as "card"
	Card              PaymentMethodCard `json:"card,omitzero"`
}

// PaymentMethodCard describes the card of the payment.
type PaymentMethodCard struct {
	Attributes CardAttributes `json:"attributes,omitzero"`
}

// CardAttributes are the attributes of the card.
type CardAttributes struct {
	Network string `json:"network,omitzero"` // such as "visa"
	Type    string `json:"type,omitzero"`    // such as "credit"
	// BIN is the first six to eight digits of the card number. A card number would be sent, too: never put
	// one here.
	BIN string `json:"bin,omitzero"`
	// IssuerBank is the name of the issuer, and IssuerCountry its country, as a code or a name.
	IssuerBank    string `json:"issuer_bank,omitzero"`
	IssuerCountry string `json:"issuer_country,omitzero"`
}

// RefundResponse is the processor's response: part of the record that you send.
type RefundResponse struct {
	// Status of the refund, such as "approved".
	Status string `json:"status,omitzero"`
	// ProcessorResponseCode, such as "00". It is text: keep leading zeros.
	ProcessorResponseCode string `json:"processor_response_code,omitzero"`
	// Reason is the processor's text or code.
	Reason string `json:"reason,omitzero"`
}

// AdditionalData holds further ids of the refund, and metadata.
type AdditionalData struct {
	// MerchantAccountID is the merchant's account. How it differs from the account id of the path is not
	// documented.
	MerchantAccountID string `json:"merchant_account_id,omitzero"`
	OrderID           string `json:"order_id,omitzero"`
	Description       string `json:"description,omitzero"`
	// AcquirerReferenceNumber is the ARN, usually of 23 digits.
	AcquirerReferenceNumber string `json:"acquirer_reference_number,omitzero"`

	// Metadata is what encoding/json can encode. An empty map is sent as {}. If you decode it from JSON,
	// json.Decoder.UseNumber keeps numbers beyond 2^53 exact.
	Metadata map[string]any `json:"metadata,omitzero"`
}

// Format prints the order id alone, under any verb.
func (a AdditionalData) Format(state fmt.State, verb rune) {
	fault.Format(state, verb, "additional data of order "+a.OrderID)
}

// LogValue logs the order id.
func (a AdditionalData) LogValue() slog.Value {
	return slog.GroupValue(slog.String("order_id", a.OrderID))
}

// SVCCodes holds codes that the service defines.
type SVCCodes struct {
	// SVCRefundStatus is a refund status code. Of its values only "amount_too_high" is documented; any is
	// sent.
	SVCRefundStatus string `json:"svc_refund_status,omitzero"`
}

func (r *Refund) summary() string {
	if r == nil {
		return "no refund"
	}
	amount := "unset"
	if r.Amount != nil {
		amount = fmt.Sprint(*r.Amount)
	}
	return fmt.Sprintf("refund %s, amount %s %s", r.RefundID, amount, cmp.Or(r.Currency, "(currency unset)"))
}

// Format prints id, amount and currency, under any verb but %w and %p. Package fmt ignores it in an
// unexported field.
func (r Refund) Format(state fmt.State, verb rune) {
	fault.Format(state, verb, r.summary())
}

// LogValue logs id, amount and currency.
func (r Refund) LogValue() slog.Value { return slog.StringValue(r.summary()) }

// encode returns the JSON of a record, or why it cannot be sent as it is.
func (r *Refund) encode() ([]byte, error) {
	body, err := json.Marshal(r)
	// encoding/json replaces invalid UTF-8 by U+FFFD, which valid text may hold too.
	replaced := bytes.Contains(body, []byte(`\ufffd`)) || bytes.ContainsRune(body, utf8.RuneError)
	switch {
	case r == nil:
		return nil, fault.Invalid("the refund is nil")
	case r.RefundID == "":
		return nil, fault.Invalid("the refund has no RefundID")
	case err != nil:
		return nil, fault.Invalid("the metadata cannot be encoded as JSON")
	case replaced && !isText(reflect.ValueOf(*r), maxTextDepth):
		return nil, fault.Invalid("the refund holds text that is not valid UTF-8, or is nested too deeply")
	case !utf8.Valid(body): // a json.RawMessage is copied as it is
		return nil, fault.Invalid("the metadata holds JSON that is not valid UTF-8")
	}
	return body, nil
}

// maxTextDepth ends the walk of a value that contains itself.
const maxTextDepth = 1000

// isText reports whether every string of a value is valid UTF-8: encoding/json would
// replace the bytes of any other, and other data would be sent.
func isText(v reflect.Value, depth int) bool {
	if depth == 0 {
		return false
	}
	switch v.Kind() {
	case reflect.String:
		return utf8.ValidString(v.String())
	case reflect.Pointer, reflect.Interface:
		return v.IsNil() || isText(v.Elem(), depth-1)
	case reflect.Struct:
		for _, field := range v.Fields() {
			if !isText(field, depth-1) {
				return false
			}
		}
	case reflect.Slice, reflect.Array, reflect.Map:
		for key, element := range v.Seq2() {
			if !isText(key, depth-1) || !isText(element, depth-1) {
				return false
			}
		}
	}
	return true
}
