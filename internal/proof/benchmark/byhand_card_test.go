package benchmark

import "encoding/json"

// lookupRequest is the body of a lookup.
type lookupRequest struct {
	Cards []lookupCard `json:"cards"`
}

// lookupCard is one card of it.
type lookupCard struct {
	Card string `json:"card"`
}

// newLookupRequest asks for cards.
func newLookupRequest(cards []string) *lookupRequest {
	r := &lookupRequest{Cards: make([]lookupCard, len(cards))}
	for i, card := range cards {
		r.Cards[i].Card = card
	}
	return r
}

// lookupResponse is the response.
type lookupResponse struct {
	Cards []item `json:"cards"`
}

// item is one item of it.
type item struct {
	BIN   string  `json:"bin"`
	Error *string `json:"error"`
	Data  *struct {
		Card *cardData `json:"card"`
	} `json:"data"`
}

// cardData is what is known of a card. Pointers tell null from false and 0.
type cardData struct {
	Number struct {
		Length *int `json:"length"`
	} `json:"number"`
	BINLength            *int    `json:"bin_length"`
	SVCBINLength         *int    `json:"svc_bin_length"`
	BINMin               string  `json:"bin_min"`
	BINMax               string  `json:"bin_max"`
	PANOrToken           string  `json:"pan_or_token"`
	VirtualCard          *bool   `json:"virtual_card"`
	Level2               *bool   `json:"level2"`
	Level3               *bool   `json:"level3"`
	ALM                  *bool   `json:"alm"`
	AccountUpdater       *bool   `json:"account_updater"`
	DomesticOnly         *bool   `json:"domestic_only"`
	GamblingBlocked      *bool   `json:"gambling_blocked"`
	IssuerCurrency       string  `json:"issuer_currency"`
	Reloadable           *bool   `json:"reloadable"`
	AdditionalCardBrands []brand `json:"additional_card_brands"`
	CardBrand            string  `json:"card_brand"`
	CardSegmentType      string  `json:"card_segment_type"`
	ComboCard            string  `json:"combo_card"`
	Type                 string  `json:"type"`
	FundingSource        string  `json:"funding_source"`
	Prepaid              *bool   `json:"prepaid"`
	Product              struct {
		ProductID   string `json:"product_id"`
		ProductName string `json:"product_name"`
	} `json:"product"`
	Bank struct {
		Name      string `json:"name"`
		Phone     string `json:"phone"`
		URL       string `json:"url"`
		CleanName string `json:"clean_name"`
	} `json:"bank"`
	Country struct {
		Alpha2  string `json:"alpha2"`
		Numeric string `json:"numeric"`
		Name    string `json:"name"`
	} `json:"country"`
	Authentication struct {
		AuthenticationRequired *bool  `json:"authentication_required"`
		AuthenticationName     string `json:"authentication_name"`
	} `json:"authentication"`
	Cost struct {
		Interchange interchange `json:"interchange"`
	} `json:"cost"`
	NetworkFees                  json.RawMessage `json:"networkfees"`
	CorrelationID                string          `json:"correlation_id"`
	IssuerSupportsTokenization   *bool           `json:"issuer_supports_tokenization"`
	MultiAccountAccessIndicator  string          `json:"multi_account_access_indicator"`
	SharedBIN                    *bool           `json:"shared_bin"`
	FlaggedForDeleteRemainingWks *int            `json:"flagged_for_delete_remaining_wks"`
}

// brand is a further brand of a card.
type brand struct {
	CardBrand         string `json:"card_brand"`
	BINMax            string `json:"bin_max"`
	BINMin            string `json:"bin_min"`
	CardBrandProduct  string `json:"card_brand_product"`
	CardBrandBankName string `json:"card_brand_bank_name"`
	EcomEnabled       *bool  `json:"ecom_enabled"`
	BillpayEnabled    *bool  `json:"billpay_enabled"`
}

// interchange holds the caps on the interchange fee.
type interchange struct {
	Regulated     *bool  `json:"regulated"`
	RegulatedName string `json:"regulated_name"`
	Notes         string `json:"notes"`
	Domestic      feeCap `json:"domestic"`
	Inter         feeCap `json:"inter"`
	Intra         feeCap `json:"intra"`
}

// feeCap is one of them.
type feeCap struct {
	CapRegionShortname       string `json:"cap_region_shortname"`
	CapAdvaloremAmount       string `json:"cap_advalorem_amount"`
	CapTypeName              string `json:"cap_type_name"`
	CapFixedAmount           string `json:"cap_fixed_amount"`
	CapTypeQualifierCurrency string `json:"cap_type_qualifier_currency"`
	CapTypeQualifierText     string `json:"cap_type_qualifier_text"`
	CapTypeQualifierLower    string `json:"cap_type_qualifier_lower"`
	CapTypeQualifierUpper    string `json:"cap_type_qualifier_upper"`
}
