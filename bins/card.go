package bins

import (
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/carddata/carddata-go/internal/mask"
)

// Data is the data of a result item.
type Data struct {
	Card *Card `json:"card"` // nil when null or absent
}

// A Card is what the service knows of a card (interface, "Fields of data.card").
//
// Strings are "" when the service left them null or out; their allowed values
// are not documented and their letter case varies. Booleans and integers are
// [Optional], because "not stated" is neither false nor 0. Nested objects are
// values, so that reading through them never panics.
type Card struct {
	Number                       Number                `json:"number"`
	BINLength                    Optional[int64]       `json:"bin_length"`     // digits
	SVCBINLength                 Optional[int64]       `json:"svc_bin_length"` // digits
	BINMin                       string                `json:"bin_min"`        // the range's first number, usually 19 digits
	BINMax                       string                `json:"bin_max"`        // the range's last number, usually 19 digits
	PANOrToken                   Identifier            `json:"pan_or_token"`   // masked when printed
	VirtualCard                  Optional[bool]        `json:"virtual_card"`
	Level2                       Optional[bool]        `json:"level2"`
	Level3                       Optional[bool]        `json:"level3"`
	ALM                          Optional[bool]        `json:"alm"`
	AccountUpdater               Optional[bool]        `json:"account_updater"`
	DomesticOnly                 Optional[bool]        `json:"domestic_only"`
	GamblingBlocked              Optional[bool]        `json:"gambling_blocked"`
	IssuerCurrency               string                `json:"issuer_currency"` // alphabetic or numeric; leading zeros matter
	Reloadable                   Optional[bool]        `json:"reloadable"`
	AdditionalCardBrands         []AdditionalCardBrand `json:"additional_card_brands"`
	CardBrand                    string                `json:"card_brand"`
	CardSegmentType              string                `json:"card_segment_type"`
	ComboCard                    string                `json:"combo_card"`
	Type                         string                `json:"type"`
	FundingSource                string                `json:"funding_source"`
	Prepaid                      Optional[bool]        `json:"prepaid"`
	Product                      Product               `json:"product"`
	Bank                         Bank                  `json:"bank"`
	Country                      Country               `json:"country"`
	Authentication               Authentication        `json:"authentication"`
	Cost                         Cost                  `json:"cost"`
	NetworkFees                  json.RawMessage       `json:"networkfees"` // an object of undocumented content; nil when null or absent
	CorrelationID                string                `json:"correlation_id"`
	IssuerSupportsTokenization   Optional[bool]        `json:"issuer_supports_tokenization"`
	MultiAccountAccessIndicator  string                `json:"multi_account_access_indicator"`
	SharedBIN                    Optional[bool]        `json:"shared_bin"`
	FlaggedForDeleteRemainingWks Optional[int64]       `json:"flagged_for_delete_remaining_wks"` // weeks
}

// Format prints the card, with its number and its correlation id masked.
func (c Card) Format(state fmt.State, verb rune) {
	type plain Card
	p := plain(c)
	p.CorrelationID = mask.Text(p.CorrelationID)
	fmt.Fprintf(state, fmt.FormatString(state, verb), p)
}

// LogValue logs the card's number masked and its brand. JSON of a Card, which a
// log would hold otherwise, is the data whole.
func (c Card) LogValue() slog.Value {
	return slog.GroupValue(slog.Any("pan_or_token", c.PANOrToken), slog.String("card_brand", c.CardBrand))
}

// LogValue logs the card.
func (d Data) LogValue() slog.Value {
	if d.Card == nil {
		return slog.GroupValue()
	}
	return d.Card.LogValue()
}

// Number describes the card number.
type Number struct {
	Length Optional[int64] `json:"length"` // digits
}

// An AdditionalCardBrand is a further brand that the card can be processed as.
type AdditionalCardBrand struct {
	CardBrand         string         `json:"card_brand"`
	BINMax            string         `json:"bin_max"`
	BINMin            string         `json:"bin_min"`
	CardBrandProduct  string         `json:"card_brand_product"`
	CardBrandBankName string         `json:"card_brand_bank_name"`
	EcomEnabled       Optional[bool] `json:"ecom_enabled"`
	BillpayEnabled    Optional[bool] `json:"billpay_enabled"`
}

// Product is the card product.
type Product struct {
	ProductID   string `json:"product_id"`
	ProductName string `json:"product_name"`
}

// Bank is the issuer.
type Bank struct {
	Name      string `json:"name"`
	Phone     string `json:"phone"`
	URL       string `json:"url"`
	CleanName string `json:"clean_name"`
}

// Country is the issuer's country.
type Country struct {
	Alpha2  string `json:"alpha2"`
	Numeric string `json:"numeric"` // leading zeros matter
	Name    string `json:"name"`
}

// Authentication is the requirement of strong customer authentication.
type Authentication struct {
	AuthenticationRequired Optional[bool] `json:"authentication_required"`
	AuthenticationName     string         `json:"authentication_name"`
}

// Cost is what accepting the card costs.
type Cost struct {
	Interchange Interchange `json:"interchange"`
}

// Interchange holds the caps on the interchange fee.
type Interchange struct {
	Regulated     Optional[bool] `json:"regulated"`
	RegulatedName string         `json:"regulated_name"`
	Notes         string         `json:"notes"`
	Domestic      InterchangeCap `json:"domestic"`
	Inter         InterchangeCap `json:"inter"`
	Intra         InterchangeCap `json:"intra"`
}

// An InterchangeCap is one cap. Amounts are strings in the contract, of a unit
// that is not documented.
type InterchangeCap struct {
	CapRegionShortname       string `json:"cap_region_shortname"`
	CapAdvaloremAmount       string `json:"cap_advalorem_amount"`
	CapTypeName              string `json:"cap_type_name"`
	CapFixedAmount           string `json:"cap_fixed_amount"`
	CapTypeQualifierCurrency string `json:"cap_type_qualifier_currency"`
	CapTypeQualifierText     string `json:"cap_type_qualifier_text"`
	CapTypeQualifierLower    string `json:"cap_type_qualifier_lower"`
	CapTypeQualifierUpper    string `json:"cap_type_qualifier_upper"`
}
