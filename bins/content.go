package bins

import "encoding/binary"

// appendContent appends all that a card holds but what is its own, so that
// different cards append different bytes.
func (c *Card) appendContent(b []byte) []byte {
	b = appendIntegers(b, c.Number.Length, c.BINLength, c.SVCBINLength, c.FlaggedForDeleteRemainingWks)
	b = appendBooleans(b, c.VirtualCard, c.Level2, c.Level3, c.ALM, c.AccountUpdater, c.DomesticOnly, c.GamblingBlocked,
		c.Reloadable, c.Prepaid, c.Authentication.AuthenticationRequired, c.Cost.Interchange.Regulated,
		c.IssuerSupportsTokenization, c.SharedBIN)
	b = appendTexts(b, c.IssuerCurrency, c.CardBrand, c.CardSegmentType, c.ComboCard, c.Type, c.FundingSource,
		c.Product.ProductID, c.Product.ProductName, c.Bank.Name, c.Bank.Phone, c.Bank.URL, c.Bank.CleanName,
		c.Country.Alpha2, c.Country.Numeric, c.Country.Name, c.Authentication.AuthenticationName,
		c.Cost.Interchange.RegulatedName, c.Cost.Interchange.Notes, c.MultiAccountAccessIndicator, string(c.NetworkFees))
	for _, limit := range [...]*InterchangeCap{&c.Cost.Interchange.Domestic, &c.Cost.Interchange.Inter, &c.Cost.Interchange.Intra} {
		b = appendTexts(b, limit.CapRegionShortname, limit.CapAdvaloremAmount, limit.CapTypeName, limit.CapFixedAmount,
			limit.CapTypeQualifierCurrency, limit.CapTypeQualifierText, limit.CapTypeQualifierLower, limit.CapTypeQualifierUpper)
	}
	// Nil and empty are two answers.
	if c.AdditionalCardBrands != nil {
		b = binary.AppendUvarint(b, 1+uint64(len(c.AdditionalCardBrands)))
	}
	for i := range c.AdditionalCardBrands {
		brand := &c.AdditionalCardBrands[i]
		b = appendTexts(b, brand.CardBrand, brand.BINMax, brand.BINMin, brand.CardBrandProduct, brand.CardBrandBankName)
		b = appendBooleans(b, brand.EcomEnabled, brand.BillpayEnabled)
	}
	if c.NetworkFees == nil {
		b = append(b, 0)
	}
	return b
}

func appendTexts(b []byte, texts ...string) []byte {
	for _, text := range texts {
		b = append(binary.AppendUvarint(b, uint64(len(text))), text...)
	}
	return b
}

func appendBooleans(b []byte, values ...Optional[bool]) []byte {
	for _, o := range values {
		switch {
		case !o.stated:
			b = append(b, '?')
		case o.value:
			b = append(b, 't')
		default:
			b = append(b, 'f')
		}
	}
	return b
}

func appendIntegers(b []byte, values ...Optional[int64]) []byte {
	for _, o := range values {
		if o.stated {
			b = binary.AppendVarint(append(b, 'n'), o.value)
		} else {
			b = append(b, '?')
		}
	}
	return b
}
