package bins_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/proof/testkit"
)

func TestOptional(t *testing.T) {
	var flag bins.Optional[bool]
	var count bins.Optional[int64]
	if value, stated := flag.Get(); value || stated || !flag.Or(true) || flag.Or(false) || flag.String() != "not stated" {
		t.Errorf("the zero value reads as %s", flag)
	}
	if value, stated := count.Get(); value != 0 || stated || count.Or(16) != 16 || fmt.Sprint(count) != "not stated" {
		t.Errorf("the zero value reads as %s", count)
	}
	flag, count = bins.Stated(false), bins.Stated[int64](0)
	if value, stated := flag.Get(); value || !stated || flag.Or(true) || flag.String() != "false" {
		t.Errorf("false reads as %s", flag)
	}
	if value, stated := count.Get(); value != 0 || !stated || count.Or(16) != 0 || count.String() != "0" {
		t.Errorf("0 reads as %s", count)
	}
	if value, _ := bins.Stated(true).Get(); !value || flag == (bins.Optional[bool]{}) || flag == bins.Stated(true) || flag != bins.Stated(false) {
		t.Error("not stated, false and true are not told apart")
	}
}

func testOptionalJSON[T bool | int64](t *testing.T, text string, want bins.Optional[T], back string) {
	t.Helper()
	// The value before must not remain.
	got := bins.Stated(*new(T))
	if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
		t.Errorf("%s reads as %s, %v", text, got, err)
	}
	if text := string(testkit.Encoded(t, got)); text != back {
		t.Errorf("%s is written as %s", got, text)
	}
}

func TestOptionalAsJSON(t *testing.T) {
	testOptionalJSON(t, "true", bins.Stated(true), "true")
	testOptionalJSON(t, "false", bins.Stated(false), "false")
	testOptionalJSON(t, "null", bins.Optional[bool]{}, "null")
	testOptionalJSON(t, `""`, bins.Optional[bool]{}, "null")
	testOptionalJSON(t, "16", bins.Stated[int64](16), "16")
	testOptionalJSON(t, "0", bins.Stated[int64](0), "0")
	testOptionalJSON(t, "-9223372036854775808", bins.Stated[int64](math.MinInt64), "-9223372036854775808")
	testOptionalJSON(t, `"9223372036854775807"`, bins.Stated[int64](math.MaxInt64), "9223372036854775807")
	testOptionalJSON(t, `"016"`, bins.Stated[int64](16), "16")
	testOptionalJSON(t, `"-\u0031"`, bins.Stated[int64](-1), "-1")
	testOptionalJSON(t, `"true"`, bins.Stated(true), "true")
	testOptionalJSON(t, `"\u0066alse"`, bins.Stated(false), "false")
	for _, eight := range []string{"8.0", "8e0", "8E+00", "0.8e1", "80e-1", "8.000000000000000000000000", `"8"`, `"8.0"`, `"8e0"`} {
		testOptionalJSON(t, eight, bins.Stated[int64](8), "8")
	}
	testOptionalJSON(t, "1e2", bins.Stated[int64](100), "100")
	testOptionalJSON(t, "-0.0", bins.Stated[int64](0), "0")
	testOptionalJSON(t, "9007199254740993.0", bins.Stated[int64](9007199254740993), "9007199254740993") // no float64
	testOptionalJSON(t, "9.223372036854775807e18", bins.Stated[int64](math.MaxInt64), "9223372036854775807")
	testOptionalJSON(t, "null", bins.Optional[int64]{}, "null")
	testOptionalJSON(t, `""`, bins.Optional[int64]{}, "null")
}

func TestOptionalRefusesOtherTypes(t *testing.T) {
	for _, text := range []string{`"True"`, `"yes"`, `"1"`, "0", "1", "{}", "[]", `"null"`, `" "`} {
		flag := bins.Stated(true)
		if err := json.Unmarshal([]byte(text), &flag); err == nil || flag != (bins.Optional[bool]{}) {
			t.Errorf("%s reads as %s, %v", text, flag, err)
		}
	}
	for _, text := range []string{"16.5", "8.00000000000000000001", "1e-1", "1e19", "1e999999999999", "1e-999999999999", `"e1"`, `".e1"`, `"8."`, `"true"`, "true", "{}", `"sixteen"`, `"16 "`, `"1_6"`, `"0x10"`, `"null"`, "9223372036854775808", `"9223372036854775808"`, "9.223372036854775808e18"} {
		count := bins.Stated[int64](1)
		if err := json.Unmarshal([]byte(text), &count); err == nil || count != (bins.Optional[int64]{}) || strings.Contains(err.Error(), "9223") {
			t.Errorf("%s reads as %s, %v", text, count, err)
		}
	}
}

func TestCardIsPrintedMasked(t *testing.T) {
	card := bins.Card{CorrelationID: "4111111111111111", CardBrand: "FIRST BRAND"}
	for _, text := range []string{fmt.Sprintf("%+v", card), fmt.Sprintf("%v", &card), fmt.Sprintf("%s", bins.Data{Card: &card})} {
		testkit.NoSecret(t, "a card", text, "4111111111111111")
		if !strings.Contains(text, "FIRST BRAND") {
			t.Error(text)
		}
	}
}
