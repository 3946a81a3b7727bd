package main

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxIdentifier = 256 // bytes; tokens are shorter
	minCardNumber = 12  // digits
	maxDigits     = 19  // of a card number, and of the bounds of a range
)

// roundedNumber is what a spreadsheet makes of a card number.
var roundedNumber = regexp.MustCompile(`^[0-9][.,]?[0-9]*[eE]\+[0-9]+$`)

// identifier returns the identifier to ask for, or why there is none. What an
// identifier looks like is not documented, and it may be a token: only what
// cannot be one is refused here, and the service is the judge of the rest. Space
// around it is not sent, and of digits with separators, the separators are not,
// unless they are to be kept. The row keeps them all.
func identifier(cell string, keepSeparators bool) (card string, stripped bool, bad *problem) {
	card = strings.TrimSpace(cell)
	switch {
	case card == "":
		return "", false, &problem{kind: "empty", text: "the card is empty"}
	case !utf8.ValidString(card):
		return card, false, &problem{kind: "not_utf8", text: "the card is not valid UTF-8"}
	case strings.ContainsFunc(card, unicode.IsControl):
		return card, false, &problem{kind: "control_character", text: "the card holds a control character"}
	}
	plain := withoutSeparators(card)
	if !keepSeparators {
		card, stripped = plain, plain != card
	}
	switch {
	case isDigits(plain) && len(plain) > maxDigits:
		return card, false, &problem{kind: "too_many_digits", text: "the card has more digits than a card number can have"}
	case len(card) > maxIdentifier:
		return card, false, &problem{kind: "too_long", text: "the card is longer than an identifier can be"}
	case strings.Contains(card, "+") && roundedNumber.MatchString(card):
		return card, false, &problem{kind: "rounded", text: "the card was rounded to an exponent, as spreadsheets do"}
	case mayBeCardNumber(card) && countDigits(card) > len(onlyDigits(card)):
		// Neither -prefix nor a mask, here or at the service, need know them.
		return card, false, &problem{kind: "other_digits", text: "the card holds digits other than 0 to 9"}
	}
	return card, stripped, nil
}

// withoutSeparators takes spaces and dashes from between digits, if there is
// nothing else.
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

// sentAs returns what BulkOptions.PrefixLength leaves of an identifier.
func sentAs(card string, prefix int) string {
	if prefix == 0 || !mayBeCardNumber(card) {
		return card
	}
	digits := onlyDigits(card)
	return digits[:min(prefix, len(digits))]
}

// mayBeCardNumber tells whether an identifier holds as many digits, of any
// script, as a card number has. Such identifiers are never written to the state
// file.
func mayBeCardNumber(card string) bool { return countDigits(card) >= minCardNumber }

func countDigits(s string) (n int) {
	for _, r := range s {
		if unicode.IsDigit(r) {
			n++
		}
	}
	return n
}

func onlyDigits(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, s)
}
