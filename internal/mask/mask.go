// Package mask holds the one form in which card identifiers are printed.
package mask

import (
	"regexp"
	"strings"
	"sync"
)

const (
	shown    = 6  // leading digits that may always be seen
	trailing = 4  // trailing digits of a card number that may be seen
	panMin   = 12 // digits that make a card number
	binMax   = 8  // digits of the longest BIN in use
)

// Identifier masks a card identifier: a BIN stays as it is, a longer run of
// digits keeps its first six, and its last four from twelve digits on; anything
// else may be a token and is hidden whole.
func Identifier(id string) string {
	switch {
	case id == "":
		return ""
	case strings.Trim(id, "0123456789") != "":
		return "****"
	case len(id) <= binMax:
		return id
	case len(id) < panMin:
		return id[:shown] + strings.Repeat("*", len(id)-shown)
	}
	return id[:shown] + strings.Repeat("*", len(id)-shown-trailing) + id[len(id)-trailing:]
}

// cardNumber matches runs of twelve digits and more, of any script and also in
// groups. Dots and slashes do not group: they stand in addresses and paths.
var cardNumber = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\p{Nd}(?:[ -]?\p{Nd}){11,}`) })

var separators = strings.NewReplacer(" ", "", "-", "")

// Text masks the card numbers inside a text.
func Text(s string) string {
	return cardNumber().ReplaceAllStringFunc(s, func(run string) string {
		return Identifier(separators.Replace(run))
	})
}
