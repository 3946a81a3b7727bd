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
// The service documents the name and the JSON type of each field, and nothing else. So allowed
// values, formats, lengths, units, languages, and how similar fields differ are not documented. The
// comments, here and on the types of the fields, infer the meaning from the name. Compare strings
// without regard to letter case.
//
// A field that the service sent as null, or left out, is "", an empty object, or an
// [Optional] without a value. Nested objects are values, so reading through them never panics.
//
// A field of another JSON type is read if that loses nothing: a number or a boolean in place
// of a string is the text that the service wrote, and an Optional reads "8", 8.0 and "true".
// Otherwise the field is not stated, and [Result.Unread] names it.
type Card struct {
	// Length of the card number. It never holds the number itself.
	Number Number `json:"number"`
	// Length of the BIN, in digits.
	BINLength Optional[int64] `json:"bin_length"`
	// Length of the service's own BIN, in digits.
	SVCBINLength Optional[int64] `json:"svc_bin_length"`
	// First number of the BIN range, a string of usually 19 digits.
	BINMin string `json:"bin_min"`
	// Last number of the BIN range, a string of usually 19 digits.
	BINMax string `json:"bin_max"`
	// May hold a full card number or a token. It is masked when printed, and empty in a
	// result from a cache.
	PANOrToken Identifier `json:"pan_or_token"`
	// Whether there is no plastic card.
	VirtualCard Optional[bool] `json:"virtual_card"`
	// Whether the card supports level 2 transaction data.
	Level2 Optional[bool] `json:"level2"`
	// Whether the card supports level 3 transaction data.
	Level3 Optional[bool] `json:"level3"`
	// The service's alm flag, with no documented meaning.
	ALM Optional[bool] `json:"alm"`
	// Whether the issuer takes part in account updater services.
	AccountUpdater Optional[bool] `json:"account_updater"`
	// Whether the card works only in the issuer's country.
	DomesticOnly Optional[bool] `json:"domestic_only"`
	// Whether the issuer blocks gambling payments.
	GamblingBlocked Optional[bool] `json:"gambling_blocked"`
	// The issuer's currency, perhaps as letters ("USD") or digits ("036"): keep leading zeros.
	IssuerCurrency string `json:"issuer_currency"`
	// Whether money can be loaded onto the card again.
	Reloadable Optional[bool] `json:"reloadable"`
	// Other brands that the card can be processed as. An element that is no object is empty.
	AdditionalCardBrands []AdditionalCardBrand `json:"additional_card_brands"`
	// Brand, such as "VISA".
	CardBrand string `json:"card_brand"`
	// Customer segment, such as consumer or commercial.
	CardSegmentType string `json:"card_segment_type"`
	// Whether the card combines credit and debit, as a string.
	ComboCard string `json:"combo_card"`
	// Card type. The service does not document whether Type or FundingSource says debit or
	// credit: both are open strings, so show both.
	Type string `json:"type"`
	// Funding source: see Type.
	FundingSource string `json:"funding_source"`
	// Whether the card is prepaid.
	Prepaid Optional[bool] `json:"prepaid"`
	// Card product.
	Product Product `json:"product"`
	// Issuer.
	Bank Bank `json:"bank"`
	// Issuer's country.
	Country Country `json:"country"`
	// Authentication requirement.
	Authentication Authentication `json:"authentication"`
	// Caps on the interchange fee.
	Cost Cost `json:"cost"`
	// The JSON as the service sent it, documented as an object; nil if it sent none.
	NetworkFees json.RawMessage `json:"networkfees"`
	// The service's correlation id. It is masked when printed, and empty in a result from a
	// cache.
	CorrelationID string `json:"correlation_id"`
	// Whether the issuer supports network tokens.
	IssuerSupportsTokenization Optional[bool] `json:"issuer_supports_tokenization"`
	// Whether the card gives access to several accounts, as a string.
	MultiAccountAccessIndicator string `json:"multi_account_access_indicator"`
	// Whether several issuers or products share the BIN.
	SharedBIN Optional[bool] `json:"shared_bin"`
	// Weeks until the service deletes the BIN.
	FlaggedForDeleteRemainingWks Optional[int64] `json:"flagged_for_delete_remaining_wks"`
}

// Format prints the card, with its number and its correlation id masked.
func (c Card) Format(state fmt.State, verb rune) {
	type plain Card
	p := plain(c)
	p.CorrelationID = mask.Text(p.CorrelationID)
	fmt.Fprintf(state, fmt.FormatString(state, verb), p)
}

// LogValue logs the masked number and the brand. Do not log the JSON of a Card: it
// holds everything unmasked.
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
	CardBrand         string         `json:"card_brand"`           // brand
	BINMax            string         `json:"bin_max"`              // last number of the brand's BIN range, as digits
	BINMin            string         `json:"bin_min"`              // first number of the brand's BIN range, as digits
	CardBrandProduct  string         `json:"card_brand_product"`   // product
	CardBrandBankName string         `json:"card_brand_bank_name"` // issuer's name
	EcomEnabled       Optional[bool] `json:"ecom_enabled"`         // whether the brand can be used for e-commerce
	BillpayEnabled    Optional[bool] `json:"billpay_enabled"`      // whether the brand can be used for bill payment
}

// Product is the card product: data.card.product.
type Product struct {
	ProductID   string `json:"product_id"`   // id
	ProductName string `json:"product_name"` // name
}

// Bank is the issuer: data.card.bank.
type Bank struct {
	Name      string `json:"name"`       // name
	Phone     string `json:"phone"`      // phone number
	URL       string `json:"url"`        // web address: check it before you link to it
	CleanName string `json:"clean_name"` // a normalized form of Name
}

// Country is the issuer's country: data.card.country. The names of the fields are those of
// ISO 3166-1.
type Country struct {
	Alpha2  string `json:"alpha2"`  // two-letter code, such as "US"
	Numeric string `json:"numeric"` // numeric code, such as "036": keep leading zeros
	Name    string `json:"name"`    // name
}

// Authentication is the authentication requirement: data.card.authentication.
type Authentication struct {
	AuthenticationRequired Optional[bool] `json:"authentication_required"` // whether payments must be authenticated
	AuthenticationName     string         `json:"authentication_name"`     // name of the requirement
}

// Cost holds what accepting the card costs: data.card.cost.
type Cost struct {
	Interchange Interchange `json:"interchange"` // caps on the interchange fee
}

// Interchange holds the caps on the interchange fee: data.card.cost.interchange.
type Interchange struct {
	Regulated     Optional[bool] `json:"regulated"`      // whether the fee is regulated
	RegulatedName string         `json:"regulated_name"` // name of the regulation
	Notes         string         `json:"notes"`          // free text
	Domestic      InterchangeCap `json:"domestic"`       // cap called domestic
	Inter         InterchangeCap `json:"inter"`          // cap called inter
	Intra         InterchangeCap `json:"intra"`          // cap called intra
}

// An InterchangeCap is one cap on the interchange fee. Amounts are strings, and their units
// and formats are not documented: do not compute with them before you know both.
type InterchangeCap struct {
	CapRegionShortname       string `json:"cap_region_shortname"`        // short name of the region where the cap applies
	CapAdvaloremAmount       string `json:"cap_advalorem_amount"`        // part of the cap that is proportional to the payment
	CapTypeName              string `json:"cap_type_name"`               // name of the cap's type
	CapFixedAmount           string `json:"cap_fixed_amount"`            // fixed part of the cap
	CapTypeQualifierCurrency string `json:"cap_type_qualifier_currency"` // currency of the qualifier, which narrows the type
	CapTypeQualifierText     string `json:"cap_type_qualifier_text"`     // text of the qualifier
	CapTypeQualifierLower    string `json:"cap_type_qualifier_lower"`    // lower bound of the qualifier
	CapTypeQualifierUpper    string `json:"cap_type_qualifier_upper"`    // upper bound of the qualifier
}

// An Optional is a boolean or an integer that the service may send as null, or leave out. It
// is then "not stated", which is neither false nor 0. So is a value that cannot be read, such
// as 8.5 for an integer or "maybe" for a boolean, and the zero value. Optionals compare with ==.
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

// UnmarshalJSON reads a value or null. It also reads what loses nothing: true from "true", and
// 16 from "16", 16.0, "016" and 1.6e1. It takes "" for null, and refuses what is none of these.
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
