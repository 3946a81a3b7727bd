package bins_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"testing"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/proof/testkit"
)

func TestIdentifierMasksItself(t *testing.T) {
	for value, masked := range map[string]string{
		"":                    "",
		"411111":              "411111",
		"45717360":            "45717360", // an 8-digit BIN is no secret
		"004571":              "004571",
		"457173601":           "457173***",
		"45717360123":         "457173*****",
		"411111111111":        "411111******",
		"378282246310005":     "378282*****0005",
		"4111111111111111":    "411111******1111",
		"6011111111111111117": "601111*********1117",
		"tok_4111111111":      "****",
		"4111 1111 1111 1111": "****",
		"４１１１１１":              "****", // digits, but not ASCII's
	} {
		id := bins.NewIdentifier(value)
		if id.Reveal() != value || id.IsZero() != (value == "") {
			t.Errorf("%q reads as %q", value, id.Reveal())
		}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d", "%x", "%X", "%c", "%t"} {
			if got := fmt.Sprintf(verb, id); got != masked {
				t.Errorf("%s of %q is %q, not %q", verb, value, got, masked)
			}
		}
		if got, want := fmt.Sprintf("%q", id), `"`+masked+`"`; got != want {
			t.Errorf("%%q of %q is %s, not %s", value, got, want)
		}
		if got := id.String(); got != masked {
			t.Errorf("String of %q is %q", value, got)
		}
		if got := slog.AnyValue(id).Resolve().String(); got != masked {
			t.Errorf("slog prints %q as %q", value, got)
		}
	}
}

func TestIdentifiersAreEqualByValue(t *testing.T) {
	a, b, other := bins.NewIdentifier("4571"+"7360"), bins.NewIdentifier("45717360"), bins.NewIdentifier("45717361")
	var none bins.Identifier
	if !a.Equal(b) || !reflect.DeepEqual(a, b) || a.Equal(other) || a.Equal(none) || !none.Equal(bins.NewIdentifier("")) {
		t.Error("identifiers do not compare by value")
	}
	if reflect.TypeFor[bins.Identifier]().Comparable() {
		t.Error("== compiles, and would compare addresses")
	}
}

func TestIdentifierAsJSON(t *testing.T) {
	for _, value := range []string{"", "045717", "4111111111111111", "a \"token\" <é>"} {
		var back bins.Identifier
		if err := json.Unmarshal(testkit.Encoded(t, bins.NewIdentifier(value)), &back); err != nil || !back.Equal(bins.NewIdentifier(value)) {
			t.Errorf("%q comes back as %q, %v", value, back.Reveal(), err)
		}
	}
	id := bins.NewIdentifier("411111")
	if err := json.Unmarshal([]byte("null"), &id); err != nil || !id.IsZero() {
		t.Errorf("null reads as %q, %v", id.Reveal(), err)
	}
	for _, text := range []string{"4111111111111111", "true", "[]", "{}"} {
		if err := json.Unmarshal([]byte(text), &id); err == nil {
			t.Errorf("%s reads as %q", text, id.Reveal())
		}
	}
}
