package main

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxIdentifier = 256 // bytes; tokens are shorter
	maxDigits     = 19  // of a card number
)

// roundedNumber is what a spreadsheet makes of a card number.
var roundedNumber = regexp.MustCompile(`^[0-9][.,]?[0-9]*[eE]\+[0-9]+$`)

// identifier returns the identifier to look up, "" for a blank cell, or why there is none. An
// identifier may be a token, and its format is not documented, so only obvious mistakes are refused.
// Spaces around it and separators between digits are not sent. The row keeps them.
func identifier(cell string) (card string, stripped bool, bad *problem) {
	card = strings.TrimSpace(cell)
	switch {
	case card == "":
		return "", false, nil
	case !utf8.ValidString(card):
		return card, false, &problem{"not_utf8", "the card is not valid UTF-8"}
	case strings.ContainsFunc(card, unicode.IsControl):
		return card, false, &problem{"control_character", "the card holds a control character"}
	}
	plain := withoutSeparators(card)
	card, stripped = plain, plain != card
	switch {
	case isDigits(card) && len(card) > maxDigits:
		return card, false, &problem{"too_many_digits", "the card has more digits than a card number can have"}
	case len(card) > maxIdentifier:
		return card, false, &problem{"too_long", "the card is longer than an identifier can be"}
	case strings.Contains(card, "+") && roundedNumber.MatchString(card):
		return card, false, &problem{"rounded", "the card was rounded to an exponent, as spreadsheets do"}
	}
	return card, stripped, nil
}

// withoutSeparators removes spaces and dashes between digits. It does not change a card
// with any other character.
func withoutSeparators(card string) string {
	if isDigits(card) || !isDigits(card[:1]) || !isDigits(card[len(card)-1:]) {
		return card
	}
	plain := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.Is(unicode.Pd, r) {
			return -1
		}
		return r
	}, card)
	if !isDigits(plain) {
		return card
	}
	return plain
}

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
