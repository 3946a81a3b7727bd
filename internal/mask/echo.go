package mask

import (
	"encoding/base64"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Fold removes the differences that a service may add when it repeats a value: it may regroup
// a card number, or print a token in capitals.
func Fold(s string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s))
}

// Repeats reports whether a folded text equals or contains a credential or an id. A value of
// fewer than least bytes must match as a whole, because "1" is part of nearly any id.
func Repeats(folded, own string, least int) bool {
	part := Fold(own)
	return part != "" && (folded == part || len(own) >= least && strings.Contains(folded, part))
}

// Minimum lengths of a value to look for inside words, and to look for encoded.
const wordMin, encodedMin = 6, 8

// Readings returns the possible readings of a name or a code, folded: as it is, and with its
// hexadecimal and Base64 parts decoded.
func Readings(s string) []string {
	readings := []string{Fold(s)}
	add := func(decoded []byte, err error) {
		for text := range strings.FieldsFuncSeq(string(decoded), func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }) {
			if err == nil && len(text) >= encodedMin {
				readings = append(readings, Fold(text))
			}
		}
	}
	// The encoded part may begin anywhere, so try each offset of a group.
	for run := range strings.FieldsFuncSeq(readings[0], func(r rune) bool { return !strings.ContainsRune("0123456789abcdef", r) }) {
		for offset := 0; offset < 2 && len(run)-offset >= 2*encodedMin; offset++ {
			add(hex.DecodeString(run[offset : len(run)-(len(run)-offset)%2]))
		}
	}
	for run := range strings.FieldsFuncSeq(s, isNotBase64) {
		run = strings.NewReplacer("+", "-", "/", "_").Replace(run)
		for offset := 0; offset < 4 && len(run)-offset >= (4*encodedMin+2)/3; offset++ {
			part := run[offset:]
			if len(part)%4 == 1 {
				part = part[:len(part)-1]
			}
			add(base64.RawURLEncoding.DecodeString(part))
		}
	}
	return readings
}

func isNotBase64(r rune) bool {
	return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("+/-_", r)
}

// Holds reports whether a name, such as the name of a header, repeats a credential or an id.
// A short value counts only as a word, like 42 in job_42_missing. A longer one counts
// anywhere, and encoded.
func Holds(name, own string) bool {
	part := Fold(own)
	switch {
	case part == "":
		return false
	case len(own) < wordMin:
		return asWord(part).MatchString(name)
	case slices.ContainsFunc(Readings(name), func(reading string) bool { return Repeats(reading, own, wordMin) }):
		return true
	case len(own) < encodedMin:
		return false
	}
	// The name of a header has lost its case, so its Base64 cannot be decoded. Encode the
	// value instead, in three forms for the three possible offsets. Leave out the digits at
	// both ends that depend on neighbouring bytes.
	for before, shared := range []int{0, 2, 3} {
		digits := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("x", before) + own))
		if (before+len(own))%3 > 0 {
			digits = digits[:len(digits)-1]
		}
		if strings.Contains(Fold(name), Fold(digits[shared:])) {
			return true
		}
	}
	return false
}

// asWord matches part with any separators inside, unless it belongs to a longer word or
// number.
func asWord(part string) *regexp.Regexp {
	runes := []rune(part)
	other := func(r rune) string {
		if unicode.IsDigit(r) {
			return `\P{Nd}`
		}
		return `\P{L}`
	}
	var text strings.Builder
	for i, r := range runes {
		if i > 0 {
			text.WriteString(`[^\p{L}\p{Nd}]*`)
		}
		text.WriteString(regexp.QuoteMeta(string(r)))
	}
	return regexp.MustCompile(`(?i)(^|` + other(runes[0]) + `)` + text.String() + `($|` + other(runes[len(runes)-1]) + `)`)
}
