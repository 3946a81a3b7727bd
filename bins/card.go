package bins

import (
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/carddata/carddata-go/internal/mask"
)

// Data is the data object of a result item.
type Data struct {
	// Card is the card's metadata; nil when the service sent null or left it out.
	Card *Card `json:"card"`
}

// A Card is the metadata of one card: data.card of a result item.
//
// The service documents the name and the JSON type of each field, and nothing
// else. The field comments infer the meaning from the name; allowed values, formats and
// units are not documented unless a comment says otherwise.
//
// A string is "" if the service sent null or left it out. A boolean or an integer is then
// an [Optional] without a value, because "not stated" is neither false nor 0. Nested
// objects are values, so reading through them never panics. Compare strings without
// regard to letter case.
type Card struct {
	// Number describes the card number. It never holds the number itself.
	Number Number `json:"number"`
	// BINLength is the length of the BIN, in digits.
	BINLength Optional[int64] `json:"bin_length"`
	// SVCBINLength is the length of the service's own BIN, in digits. How it differs
	// from BINLength is not documented.
	SVCBINLength Optional[int64] `json:"svc_bin_length"`
	// BINMin is the first number of the BIN range, a string of digits. Its length is not
	// documented; 19 is usual.
	BINMin string `json:"bin_min"`
	// BINMax is the last number of the BIN range, a string of digits. Its length is not
	// documented; 19 is usual.
	BINMax string `json:"bin_max"`
	// PANOrToken may hold a full card number or a token; which one, and when, is not
	// documented. It is masked when printed, and "" in a result from a cache.
	PANOrToken Identifier `json:"pan_or_token"`
	// VirtualCard is whether the card is virtual: there is no plastic card.
	VirtualCard Optional[bool] `json:"virtual_card"`
	// Level2 is whether the card supports level 2 transaction data. The exact condition
	// is not documented.
	Level2 Optional[bool] `json:"level2"`
	// Level3 is whether the card supports level 3 transaction data. The exact condition
	// is not documented.
	Level3 Optional[bool] `json:"level3"`
	// ALM is the service's alm flag. Its meaning is not documented.
	ALM Optional[bool] `json:"alm"`
	// AccountUpdater is whether the issuer takes part in account updater services.
	AccountUpdater Optional[bool] `json:"account_updater"`
	// DomesticOnly is whether the card works only in the issuer's country.
	DomesticOnly Optional[bool] `json:"domestic_only"`
	// GamblingBlocked is whether the issuer blocks gambling payments.
	GamblingBlocked Optional[bool] `json:"gambling_blocked"`
	// IssuerCurrency is the issuer's currency. Whether the code is alphabetic ("USD") or
	// numeric ("036") is not documented: keep leading zeros.
	IssuerCurrency string `json:"issuer_currency"`
	// Reloadable is whether money can be loaded onto the card again.
	Reloadable Optional[bool] `json:"reloadable"`
	// AdditionalCardBrands are the other brands that the card can be processed as. It is
	// empty if there are none; how many there can be is not documented.
	AdditionalCardBrands []AdditionalCardBrand `json:"additional_card_brands"`
	// CardBrand is the card's brand, such as "VISA". Allowed values are not documented.
	CardBrand string `json:"card_brand"`
	// CardSegmentType is the customer segment, such as consumer or commercial. Allowed
	// values are not documented.
	CardSegmentType string `json:"card_segment_type"`
	// ComboCard is whether the card combines credit and debit. It is a string, not a
	// boolean; allowed values are not documented.
	ComboCard string `json:"combo_card"`
	// Type is the card type. Allowed values, and how it differs from FundingSource, are
	// not documented.
	Type string `json:"type"`
	// FundingSource is the funding source, such as credit or debit. Allowed values are
	// not documented.
	FundingSource string `json:"funding_source"`
	// Prepaid is whether the card is prepaid.
	Prepaid Optional[bool] `json:"prepaid"`
	// Product is the card product.
	Product Product `json:"product"`
	// Bank is the issuer.
	Bank Bank `json:"bank"`
	// Country is the issuer's country.
	Country Country `json:"country"`
	// Authentication is the authentication requirement.
	Authentication Authentication `json:"authentication"`
	// Cost holds the interchange caps.
	Cost Cost `json:"cost"`
	// NetworkFees is a JSON object as the service sent it; nil when null or absent. Its
	// contents are not documented.
	NetworkFees json.RawMessage `json:"networkfees"`
	// CorrelationID is the service's correlation id. Its format and scope are not
	// documented. It is masked when printed, and "" in a result from a cache.
	CorrelationID string `json:"correlation_id"`
	// IssuerSupportsTokenization is whether the issuer supports network tokens.
	IssuerSupportsTokenization Optional[bool] `json:"issuer_supports_tokenization"`
	// MultiAccountAccessIndicator is whether the card gives access to several accounts.
	// It is a string, not a boolean; allowed values are not documented.
	MultiAccountAccessIndicator string `json:"multi_account_access_indicator"`
	// SharedBIN is whether several issuers or products share the BIN. Which of the two
	// is not documented.
	SharedBIN Optional[bool] `json:"shared_bin"`
	// FlaggedForDeleteRemainingWks is the number of weeks until the service deletes the
	// BIN. What happens at 0 is not documented.
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
	// Length is the length of the card number, in digits.
	Length Optional[int64] `json:"length"`
}

// An AdditionalCardBrand is another brand that the card can be processed as: an element
// of data.card.additional_card_brands.
type AdditionalCardBrand struct {
	// CardBrand is the brand. Allowed values are not documented.
	CardBrand string `json:"card_brand"`
	// BINMax is the last number of this brand's BIN range, a string of digits. Its length
	// is not documented.
	BINMax string `json:"bin_max"`
	// BINMin is the first number of this brand's BIN range, a string of digits. Its length
	// is not documented.
	BINMin string `json:"bin_min"`
	// CardBrandProduct is this brand's product. Whether it is an id or a name is not
	// documented.
	CardBrandProduct string `json:"card_brand_product"`
	// CardBrandBankName is the issuer's name at this brand. How it differs from
	// [Bank.Name] is not documented.
	CardBrandBankName string `json:"card_brand_bank_name"`
	// EcomEnabled is whether this brand can be used for e-commerce.
	EcomEnabled Optional[bool] `json:"ecom_enabled"`
	// BillpayEnabled is whether this brand can be used for bill payment.
	BillpayEnabled Optional[bool] `json:"billpay_enabled"`
}

// Product is the card product: data.card.product. Allowed values are not documented.
type Product struct {
	// ProductID is the product's id. Whose id it is, the brand's or the service's, is
	// not documented.
	ProductID string `json:"product_id"`
	// ProductName is the product's name.
	ProductName string `json:"product_name"`
}

// Bank is the issuer: data.card.bank.
type Bank struct {
	// Name is the issuer's name. Its language is not documented.
	Name string `json:"name"`
	// Phone is the issuer's phone number. Its format is not documented.
	Phone string `json:"phone"`
	// URL is the issuer's web address. Its format is not documented: check it before
	// you link to it.
	URL string `json:"url"`
	// CleanName is a normalized form of Name. The rules are not documented.
	CleanName string `json:"clean_name"`
}

// Country is the issuer's country: data.card.country. The standard behind the codes is
// not documented; the field names are those of ISO 3166-1.
type Country struct {
	// Alpha2 is the two-letter code, such as "US".
	Alpha2 string `json:"alpha2"`
	// Numeric is the numeric code as a string, such as "036": keep leading zeros.
	Numeric string `json:"numeric"`
	// Name is the country's name. Its language is not documented.
	Name string `json:"name"`
}

// Authentication is the authentication requirement: data.card.authentication.
type Authentication struct {
	// AuthenticationRequired is whether payments with the card must be authenticated.
	AuthenticationRequired Optional[bool] `json:"authentication_required"`
	// AuthenticationName names the requirement. Allowed values are not documented.
	AuthenticationName string `json:"authentication_name"`
}

// Cost holds what accepting the card costs: data.card.cost.
type Cost struct {
	// Interchange holds the caps on the interchange fee.
	Interchange Interchange `json:"interchange"`
}

// Interchange holds the caps on the interchange fee: data.card.cost.interchange.
type Interchange struct {
	// Regulated is whether the interchange fee is regulated.
	Regulated Optional[bool] `json:"regulated"`
	// RegulatedName names the regulation. Allowed values are not documented.
	RegulatedName string `json:"regulated_name"`
	// Notes is free text. Its language and length are not documented.
	Notes string `json:"notes"`
	// Domestic is the cap called domestic. Which payments it covers is not documented.
	Domestic InterchangeCap `json:"domestic"`
	// Inter is the cap called inter. Which payments it covers, such as inter-regional
	// ones, is not documented.
	Inter InterchangeCap `json:"inter"`
	// Intra is the cap called intra. Which payments it covers, such as intra-regional
	// ones, is not documented.
	Intra InterchangeCap `json:"intra"`
}

// An InterchangeCap is one cap on the interchange fee. Every field is a string, amounts
// too; their units and formats are not documented, so do not compute with them before you
// know both. Allowed values are not documented either.
type InterchangeCap struct {
	// CapRegionShortname is the short name of the region where the cap applies.
	CapRegionShortname string `json:"cap_region_shortname"`
	// CapAdvaloremAmount is the part of the cap that is proportional to the payment.
	// Its unit, such as percent or basis points, is not documented.
	CapAdvaloremAmount string `json:"cap_advalorem_amount"`
	// CapTypeName is the name of the cap's type.
	CapTypeName string `json:"cap_type_name"`
	// CapFixedAmount is the fixed part of the cap. Neither its unit, such as minor units,
	// nor its currency is documented.
	CapFixedAmount string `json:"cap_fixed_amount"`
	// CapTypeQualifierCurrency is the currency of the qualifier. Its format is not
	// documented.
	CapTypeQualifierCurrency string `json:"cap_type_qualifier_currency"`
	// CapTypeQualifierText is the text of the qualifier, which narrows the cap's type.
	CapTypeQualifierText string `json:"cap_type_qualifier_text"`
	// CapTypeQualifierLower is the lower bound of the qualifier. Its unit is not
	// documented.
	CapTypeQualifierLower string `json:"cap_type_qualifier_lower"`
	// CapTypeQualifierUpper is the upper bound of the qualifier. Its unit is not
	// documented.
	CapTypeQualifierUpper string `json:"cap_type_qualifier_upper"`
}
