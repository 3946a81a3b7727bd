package bins

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strconv"
	"strings"

	"github.com/carddata/carddata-go/internal/mask"
)

// Data is the data object of a result item.
type Data struct {
	Card *Card `json:"card"` // nil if the service sent none
}

// A Card is the metadata of one card: data.card of a result item.
//
// The service documents the name and the JSON type of each field, and nothing else: no values,
// formats, units or languages, nor how similar fields differ. The comments infer the meaning
// from the name. Compare strings without regard to letter case.
//
// A field that is null or left out is "", an empty object, or an [Optional] without a value. A field
// of another JSON type is read if that loses nothing, such as "8" for 8. Otherwise it is not
// stated, and [Result.Unread] names it.
type Card struct {
	Number                       Number                `json:"number"`                           // its length; never the number itself
	BINLength                    Optional[int64]       `json:"bin_length"`                       // in digits
	SVCBINLength                 Optional[int64]       `json:"svc_bin_length"`                   // in digits, of the service's own BIN
	BINMin                       string                `json:"bin_min"`                          // first number of the BIN range, usually 19 digits
	BINMax                       string                `json:"bin_max"`                          // last number of the BIN range, usually 19 digits
	PANOrToken                   Identifier            `json:"pan_or_token"`                     // may be a full card number: masked when printed; empty in a result from a cache
	VirtualCard                  Optional[bool]        `json:"virtual_card"`                     // there is no plastic card
	Level2                       Optional[bool]        `json:"level2"`                           // the card supports level 2 transaction data
	Level3                       Optional[bool]        `json:"level3"`                           // the card supports level 3 transaction data
	ALM                          Optional[bool]        `json:"alm"`                              // no documented meaning
	AccountUpdater               Optional[bool]        `json:"account_updater"`                  // the issuer takes part in account updater services
	DomesticOnly                 Optional[bool]        `json:"domestic_only"`                    // the card works only in the issuer's country
	GamblingBlocked              Optional[bool]        `json:"gambling_blocked"`                 // the issuer blocks gambling payments
	IssuerCurrency               string                `json:"issuer_currency"`                  // letters ("USD") or digits ("036": keep the zero)
	Reloadable                   Optional[bool]        `json:"reloadable"`                       // money can be loaded onto the card again
	AdditionalCardBrands         []AdditionalCardBrand `json:"additional_card_brands"`           // an element that is no object is empty
	CardBrand                    string                `json:"card_brand"`                       // such as "VISA"
	CardSegmentType              string                `json:"card_segment_type"`                // such as consumer or commercial
	ComboCard                    string                `json:"combo_card"`                       // whether the card combines credit and debit
	Type                         string                `json:"type"`                             // says debit or credit, or FundingSource does: show both
	FundingSource                string                `json:"funding_source"`                   // see Type
	Prepaid                      Optional[bool]        `json:"prepaid"`                          // the card is prepaid
	Product                      Product               `json:"product"`                          // card product
	Bank                         Bank                  `json:"bank"`                             // issuer
	Country                      Country               `json:"country"`                          // of the issuer
	Authentication               Authentication        `json:"authentication"`                   // whether payments must be authenticated
	Cost                         Cost                  `json:"cost"`                             // caps on the interchange fee
	NetworkFees                  json.RawMessage       `json:"networkfees"`                      // JSON as it was sent, documented as an object; or nil
	CorrelationID                string                `json:"correlation_id"`                   // masked when printed; "" in a result from a cache
	IssuerSupportsTokenization   Optional[bool]        `json:"issuer_supports_tokenization"`     // network tokens
	MultiAccountAccessIndicator  string                `json:"multi_account_access_indicator"`   // whether the card gives access to several accounts
	SharedBIN                    Optional[bool]        `json:"shared_bin"`                       // several issuers or products share the BIN
	FlaggedForDeleteRemainingWks Optional[int64]       `json:"flagged_for_delete_remaining_wks"` // weeks until the service deletes the BIN
}

// Format prints the card, with its number and its correlation id masked.
func (c Card) Format(state fmt.State, verb rune) {
	type plain Card
	p := plain(c)
	p.CorrelationID = mask.Text(p.CorrelationID)
	fmt.Fprintf(state, fmt.FormatString(state, verb), p)
}

// LogValue logs the masked number and the brand. The JSON of a Card is not masked.
func (c Card) LogValue() slog.Value {
	return slog.GroupValue(slog.Any("pan_or_token", c.PANOrToken), slog.String("card_brand", c.CardBrand))
}

// LogValue logs what [Card.LogValue] logs, or nothing without a card.
func (d Data) LogValue() slog.Value {
	if d.Card == nil {
		return slog.GroupValue()
	}
	return d.Card.LogValue()
}

// Number describes the card number: data.card.number.
type Number struct {
	Length Optional[int64] `json:"length"` // in digits
}

// An AdditionalCardBrand is another brand that the card can be processed as: an element
// of data.card.additional_card_brands.
type AdditionalCardBrand struct {
	CardBrand         string         `json:"card_brand"`
	BINMax            string         `json:"bin_max"` // last number of the brand's BIN range
	BINMin            string         `json:"bin_min"` // first number of the brand's BIN range
	CardBrandProduct  string         `json:"card_brand_product"`
	CardBrandBankName string         `json:"card_brand_bank_name"`
	EcomEnabled       Optional[bool] `json:"ecom_enabled"`    // whether the brand can be used for e-commerce
	BillpayEnabled    Optional[bool] `json:"billpay_enabled"` // whether the brand can be used for bill payment
}

// Product is the card product: data.card.product.
type Product struct {
	ProductID   string `json:"product_id"`
	ProductName string `json:"product_name"`
}

// Bank is the issuer: data.card.bank.
type Bank struct {
	Name      string `json:"name"`
	Phone     string `json:"phone"`
	URL       string `json:"url"`        // check it before you link to it
	CleanName string `json:"clean_name"` // a normalized form of Name
}

// Country is the issuer's country: data.card.country. The names are those of ISO 3166-1.
type Country struct {
	Alpha2  string `json:"alpha2"`  // such as "US"
	Numeric string `json:"numeric"` // such as "036": keep the zero
	Name    string `json:"name"`
}

// Authentication is the authentication requirement: data.card.authentication.
type Authentication struct {
	AuthenticationRequired Optional[bool] `json:"authentication_required"` // of payments
	AuthenticationName     string         `json:"authentication_name"`     // of the requirement
}

// Cost is data.card.cost.
type Cost struct {
	Interchange Interchange `json:"interchange"`
}

// Interchange holds the caps on the interchange fee: data.card.cost.interchange.
type Interchange struct {
	Regulated     Optional[bool] `json:"regulated"`
	RegulatedName string         `json:"regulated_name"` // of the regulation
	Notes         string         `json:"notes"`          // free text
	Domestic      InterchangeCap `json:"domestic"`
	Inter         InterchangeCap `json:"inter"`
	Intra         InterchangeCap `json:"intra"`
}

// An InterchangeCap is one cap on the interchange fee. Units and formats of the amounts are not
// documented: do not compute with them before you know both.
type InterchangeCap struct {
	CapRegionShortname       string `json:"cap_region_shortname"` // where the cap applies
	CapAdvaloremAmount       string `json:"cap_advalorem_amount"` // proportional to the payment
	CapTypeName              string `json:"cap_type_name"`
	CapFixedAmount           string `json:"cap_fixed_amount"`            // for each payment
	CapTypeQualifierCurrency string `json:"cap_type_qualifier_currency"` // the qualifier narrows the type
	CapTypeQualifierText     string `json:"cap_type_qualifier_text"`
	CapTypeQualifierLower    string `json:"cap_type_qualifier_lower"` // lower bound
	CapTypeQualifierUpper    string `json:"cap_type_qualifier_upper"` // upper bound
}

// An Optional is a boolean or an integer that the service may send as null, or leave out. It is then
// "not stated", which is neither false nor 0. So is a value that cannot be read, such as 8.5 or
// "maybe", and the zero value. Optionals compare with ==.
//
//	if prepaid, stated := card.Prepaid.Get(); stated && prepaid { … }
//	length := card.Number.Length.Or(16)
type Optional[T bool | int64] struct {
	value  T
	stated bool
}

// Stated returns an Optional with a value, for tests and fakes.
func Stated[T bool | int64](value T) Optional[T] { return Optional[T]{value, true} }

// Get returns the value and true, or zero and false if none is stated.
func (o Optional[T]) Get() (value T, stated bool) { return o.value, o.stated }

// Or returns the value, or unstated if none is stated.
func (o Optional[T]) Or(unstated T) T {
	if !o.stated {
		return unstated
	}
	return o.value
}

// String returns the value, or "not stated".
func (o Optional[T]) String() string {
	if !o.stated {
		return "not stated"
	}
	return fmt.Sprint(o.value)
}

// MarshalJSON writes the value, or null if none is stated.
func (o Optional[T]) MarshalJSON() ([]byte, error) {
	if !o.stated {
		return []byte("null"), nil
	}
	return json.Marshal(o.value)
}

// UnmarshalJSON reads a value, null, or what loses nothing: "true", "16", 16.0, "016" and 1.6e1, and ""
// for null. It refuses anything else.
func (o *Optional[T]) UnmarshalJSON(data []byte) error {
	*o = Optional[T]{}
	text, isScalar := scalar(data)
	if isScalar && text == "" {
		return nil
	}
	var ok bool
	switch v := any(&o.value).(type) {
	case *bool:
		*v, ok = text == "true", text == "true" || text == "false"
	case *int64:
		*v, ok = integerOf(text)
	}
	if !ok {
		// The error of encoding/json quotes a number that does not fit, which may be a card's.
		return &json.UnmarshalTypeError{Value: "another value", Type: reflect.TypeFor[T]()}
	}
	o.stated = true
	return nil
}

// integerOf reads digits, or a JSON number such as 8.0 or 8e0, if it is an integer.
func integerOf(text string) (n int64, ok bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil {
		return n, true
	}
	if !json.Valid([]byte(text)) {
		return 0, false
	}
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimRight(whole+fraction, "0")
	power, err := strconv.Atoi(cmp.Or(exponent, "0"))
	const most = 18 // 10 to the 19th is no int64
	if power += len(whole) - len(digits); err != nil || power < 0 || power > most {
		return 0, false
	}
	n, err = strconv.ParseInt(digits+strings.Repeat("0", power), 10, 64)
	if err != nil {
		return 0, false
	}
	return n, true
}
