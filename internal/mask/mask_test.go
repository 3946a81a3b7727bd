package mask

import (
	"fmt"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "",
		"card 4111111111111111 declined": "card 411111******1111 declined",
		"card 4111111111111112 declined": "card 411111******1112 declined", // a wrong check digit
		"4111 1111-1111 1111":            "411111******1111",
		"id=378282246310005;":            "id=378282*****0005;",
		"４１１１１１１１１１１１１１１１ and ٤١١١١١١١١١١١١١١١": "**** and ****",
		"ref 12345678901, 45717360":            "ref 12345678901, 45717360",
		"127.0.0.1:8080 2026/11/21":            "127.0.0.1:8080 2026/11/21",
		"2026-11-21T10:15:30.123456Z 10.0.0.1": "2026-11-21T10:15:30.123456Z 10.0.0.1",
		"/v1/2026/11/21/job.7":                 "/v1/2026/11/21/job.7",
		"4111.1111.1111.1112":                  "411111******1112",
		"６０１１.1111.1111.1117":                  "****",
	} {
		if got := Text(text); got != want {
			t.Errorf("%q is masked as %q, want %q", text, got, want)
		}
	}
}

// A card number is found with any separator between its digits.
func TestTextWithSeparators(t *testing.T) {
	for _, card := range []string{"4929420573595709", "378282246310005", "30569309025904", "6011111111111111110", "5012345678901234"} {
		for _, separator := range []string{"", " ", "-", ".", "/", "_", "\t", "  ", "   ", "    ", " -- ", " - ", "\u00a0", "\u2009", "\u202f", "\u3000",
			"\u200b", "\u2010", "\u2013", "\u2014", "\u2212", "\u00ad", ", ", "\\", "|", "·", "\r\n"} {
			for _, size := range []int{1, 4} {
				var groups []string
				for rest := card; rest != ""; rest = rest[min(size, len(rest)):] {
					groups = append(groups, rest[:min(size, len(rest))])
				}
				text := fmt.Sprintf("the card %s is unknown", strings.Join(groups, separator))
				if got, want := Text(text), "the card "+Identifier(card)+" is unknown"; got != want {
					t.Errorf("%q is masked as %q", text, got)
				}
			}
		}
	}
}

func TestIdentifier(t *testing.T) {
	for id, want := range map[string]string{
		"": "", "411111": "411111", "45717360": "45717360", "457173601": "457173***", "41111111111": "411111*****",
		"411111111111": "411111******", "4111111111111": "411111******1", "41111111111111": "411111****1111",
		"4111111111111111": "411111******1111", "tok_1": "****", "４１１１１１": "****", "4111 1111": "****",
		"4111.1111.1111.1111": "****", "4111\t1111\t1111\t1111": "****",
	} {
		if got := Identifier(id); got != want {
			t.Errorf("%q is masked as %q, want %q", id, got, want)
		}
	}
}

func TestCheckDigit(t *testing.T) {
	for digits, want := range map[string]bool{
		"": false, "4111111111111111": true, "4111111111111112": false, "378282246310005": true, "42": false,
		"501234567890": false, "501234567896": true, "60111111111111111170": false, "４１１１": true,
	} {
		if CheckDigit(digits) != want {
			t.Errorf("%s: %v", digits, !want)
		}
	}
}
