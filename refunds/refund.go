package refunds

import (
	"fmt"
	"log/slog"

	"github.com/carddata/carddata-go/internal/transport"
)

// A Refund is a refund record (interface, "Refund record"). Which members the
// service requires is not documented: strings that are empty, objects whose
// members are all unset, and a nil Amount or Metadata are left out, and anything
// else is sent as it is.
//
// Printing a Refund shows its id, amount and currency. Its JSON is the record
// whole, as it is sent, also where slog's JSON handler encodes a list: log one
// refund at a time.
type Refund struct {
	// RefundID identifies the record: a refund that is submitted again keeps it. The
	// library requires it, because without it nobody could find out what became of
	// a refund whose outcome is unknown.
	RefundID string `json:"refund_id,omitzero"`

	// Amount is an integer whose unit is not documented; elsewhere it is minor
	// units, as 10150 for 101.50 USD. Nil leaves it out, which is not zero. Set it
	// with new(int64(10150)).
	Amount *int64 `json:"amount,omitzero"`

	// Currency is passed on as it is. Its format is not documented; elsewhere it
	// is ISO 4217, as "USD".
	Currency string `json:"currency,omitzero"`

	// Created is passed on as it is. Its format is not documented; elsewhere it is
	// RFC 3339 in UTC, as time.Now().UTC().Format(time.RFC3339) writes it.
	Created string `json:"created,omitzero"`

	TransactionID        string               `json:"transaction_id,omitzero"`
	TransactionOrderID   string               `json:"transaction_order_id,omitzero"`
	PaymentMethodDetails PaymentMethodDetails `json:"payment_method_details,omitzero"`
	RefundResponse       RefundResponse       `json:"refund_response,omitzero"`
	AdditionalData       AdditionalData       `json:"additional_data,omitzero"`
	SVCCodes             SVCCodes             `json:"svc_codes,omitzero"`
}

// PaymentMethodDetails describes what the payment was made with.
type PaymentMethodDetails struct {
	PaymentMethodType string            `json:"payment_method_type,omitzero"`
	Card              PaymentMethodCard `json:"card,omitzero"`
}

// PaymentMethodCard describes the card.
type PaymentMethodCard struct {
	Attributes CardAttributes `json:"attributes,omitzero"`
}

// CardAttributes are what is known of the card. BIN takes a BIN: never put a
// card number here.
type CardAttributes struct {
	Network       string `json:"network,omitzero"`
	Type          string `json:"type,omitzero"`
	BIN           string `json:"bin,omitzero"`
	IssuerBank    string `json:"issuer_bank,omitzero"`
	IssuerCountry string `json:"issuer_country,omitzero"`
}

// RefundResponse is what the processor answered to the refund. Its code is a
// string, in which leading zeros matter.
type RefundResponse struct {
	Status                string `json:"status,omitzero"`
	ProcessorResponseCode string `json:"processor_response_code,omitzero"`
	Reason                string `json:"reason,omitzero"`
}

// AdditionalData is further data of the refund.
type AdditionalData struct {
	MerchantAccountID       string `json:"merchant_account_id,omitzero"`
	OrderID                 string `json:"order_id,omitzero"`
	Description             string `json:"description,omitzero"`
	AcquirerReferenceNumber string `json:"acquirer_reference_number,omitzero"` // ARN

	// Metadata is free-form. Nil leaves it out; an empty map is sent as {}. When
	// records are read from JSON, decode them with UseNumber to keep numbers
	// beyond 2^53 exact.
	Metadata map[string]any `json:"metadata,omitzero"`
}

// Format prints no more than the order, whatever the verb: description and
// metadata may hold anything.
func (a AdditionalData) Format(state fmt.State, verb rune) {
	transport.Format(state, verb, "additional data of order "+a.OrderID)
}

// LogValue logs the order.
func (a AdditionalData) LogValue() slog.Value {
	return slog.GroupValue(slog.String("order_id", a.OrderID))
}

// SVCCodes holds the codes that the service defines.
type SVCCodes struct {
	// SVCRefundStatus is a refund status code, such as "amount_too_high". The
	// other values are not documented, and any is passed on.
	SVCRefundStatus string `json:"svc_refund_status,omitzero"`
}

func (r Refund) summary() string {
	amount := "unset"
	if r.Amount != nil {
		amount = fmt.Sprint(*r.Amount)
	}
	return fmt.Sprintf("refund %s, amount %s %s", r.RefundID, amount, r.Currency)
}

// Format prints id, amount and currency, whatever the verb.
func (r Refund) Format(state fmt.State, verb rune) {
	transport.Format(state, verb, r.summary())
}

// LogValue logs id, amount and currency.
func (r Refund) LogValue() slog.Value { return slog.StringValue(r.summary()) }
