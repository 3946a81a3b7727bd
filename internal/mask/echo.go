package mask

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"unicode"
)

// Echoes returns a function that reports whether a name or a code of the service repeats a
// credential or an id of the caller: as it is, regrouped, in other case, or encoded. A value
// of fewer than least bytes must match as a whole, because "1" is part of nearly any id.
func Echoes(said string) func(own string, least int) bool {
	readings := readings(said)
	return func(own string, least int) bool {
		part := fold(own)
		return part != "" && slices.ContainsFunc(readings, func(reading string) bool {
			return reading == part || len(own) >= least && strings.Contains(reading, part)
		})
	}
}

// fold removes the differences that a service may add when it repeats a value: it may regroup
// a card number, or print a token in capitals.
func fold(s string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s))
}

// encodedMin is the length of a value to look for encoded.
const encodedMin = 8

// readings returns the possible readings of a name or a code, folded: as it is, and with its
// hexadecimal and Base64 parts decoded.
func readings(s string) []string {
	readings := []string{fold(s)}
	add := func(decoded []byte, err error) {
		for text := range strings.FieldsFuncSeq(string(decoded), func(r rune) bool { return r == unicode.ReplacementChar || !unicode.IsPrint(r) }) {
			if err == nil && len(text) >= encodedMin {
				readings = append(readings, fold(text))
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
