package mask

import "unicode"

// Digits returns the digits of a text in ASCII. It counts the decimal digits of every script,
// and also characters such as ⑦, ₇, Ⅶ and 七.
func Digits(s string) string {
	var digits []byte
	for _, r := range s {
		if d := digit(r); d >= 0 {
			digits = append(digits, byte('0'+d))
		}
	}
	return string(digits)
}

// CountDigits returns the number of digits in a text, of the kinds that [Digits] knows.
func CountDigits(s string) (n int) {
	for _, r := range s {
		if digit(r) >= 0 {
			n++
		}
	}
	return n
}

// digit returns the value of a digit, and -1 for any other character.
func digit(r rune) int {
	switch {
	case r < 0x80:
		if '0' <= r && r <= '9' {
			return int(r - '0')
		}
		return -1
	case unicode.Is(unicode.Nd, r):
		// The digits of a script are ten in a row, and so are the digits of its styles.
		for _, in := range unicode.Nd.R16 {
			if rune(in.Lo) <= r && r <= rune(in.Hi) {
				return int(r-rune(in.Lo)) % 10
			}
		}
		for _, in := range unicode.Nd.R32 {
			if rune(in.Lo) <= r && r <= rune(in.Hi) {
				return int(r-rune(in.Lo)) % 10
			}
		}
	}
	for _, row := range rows {
		if row.first <= r && r < row.first+row.count {
			return int(r-row.first) + row.value
		}
	}
	if value, ok := single[r]; ok {
		return value
	}
	return -1
}

// rows are sequences of other characters that stand for digits.
var rows = []struct {
	first, count rune
	value        int // of the first character
}{
	{0x2074, 6, 4}, {0x2080, 10, 0}, // superscripts and subscripts
	{0x2160, 9, 1}, {0x2170, 9, 1}, // Roman
	{0x2460, 9, 1}, {0x2474, 9, 1}, {0x2488, 9, 1}, {0x24F5, 9, 1}, // in circles, brackets, with a stop
	{0x2776, 9, 1}, {0x2780, 9, 1}, {0x278A, 9, 1},
	{0x1F101, 10, 0},                               // with a comma
	{0x3021, 9, 1}, {0x3220, 9, 1}, {0x3280, 9, 1}, // Suzhou, Han in brackets and circles
	{0x1369, 9, 1}, {0x10107, 9, 1}, {0x10E60, 9, 1}, // Ethiopic, Aegean, Rumi
	{0x10A40, 4, 1}, {0x11052, 9, 1}, {0x1D360, 9, 1}, // Kharosthi, Brahmi, counting rods
}

// single are the other characters, one by one.
var single = func() map[rune]int {
	values := map[rune]int{
		'⁰': 0, '¹': 1, '²': 2, '³': 3, '⓪': 0, '⓿': 0, '\U0001F100': 0, '\U0001F10B': 0, '\U0001F10C': 0, '᧚': 1,
		'○': 0, '〇': 0, '零': 0, '两': 2, '兩': 2, '弐': 2, '贰': 2, '參': 3, '叁': 3, '参': 3, '弎': 3, '陆': 6, '壱': 1,
	}
	for _, digits := range []string{"一二三四五六七八九", "壹貳叄肆伍陸柒捌玖", "幺"} {
		for i, r := range []rune(digits) {
			values[r] = i + 1
		}
	}
	return values
}()
