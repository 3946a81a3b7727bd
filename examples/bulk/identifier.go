package main

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxIdentifier = 256 // bytes; tokens are shorter
	maxDigits     = 19  // of a card number, and of the bounds of a range
)

// roundedNumber is what a spreadsheet makes of a card number.
var roundedNumber = regexp.MustCompile(`^[0-9][.,]?[0-9]*[eE]\+[0-9]+$`)

// identifier returns the identifier to ask for, or why there is none. What an
// identifier looks like is not documented, and it may be a token: only what
// cannot be one is refused here, and the service is the judge of the rest. Space
// around it is not sent; the row keeps it.
func identifier(cell string) (string, *problem) {
	card := strings.TrimSpace(cell)
	switch {
	case card == "":
		return "", &problem{"empty", "the card is empty"}
	case !utf8.ValidString(card):
		return card, &problem{"not_utf8", "the card is not valid UTF-8"}
	case strings.ContainsFunc(card, unicode.IsControl):
		return card, &problem{"control_character", "the card holds a control character"}
	case len(card) > maxDigits && strings.Trim(card, "0123456789 -") == "" && len(onlyDigits(card)) > maxDigits:
		return card, &problem{"too_many_digits", "the card has more digits than a card number can have"}
	case len(card) > maxIdentifier:
		return card, &problem{"too_long", "the card is longer than an identifier can be"}
	case strings.Contains(card, "+") && roundedNumber.MatchString(card):
		return card, &problem{"rounded", "the card was rounded to an exponent, as spreadsheets do"}
	}
	return card, nil
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// sentAs returns what BulkOptions.PrefixLength leaves of an identifier.
func sentAs(card string, prefix int) string {
	if prefix == 0 || !mayBeCardNumber(card) {
		return card
	}
	digits := onlyDigits(card)
	return digits[:min(prefix, len(digits))]
}

// mayBeCardNumber tells whether an identifier holds as many digits as a card
// number has. Such identifiers are never written to the state file.
func mayBeCardNumber(card string) bool { return len(onlyDigits(card)) >= 12 }

func onlyDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, s)
}
