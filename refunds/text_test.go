package refunds

import (
	"errors"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	type record struct {
		Name  string
		Any   any
		List  []string
		Array [1]string
		Map   map[string]any
		Ptr   *record
		N     int
	}
	for name, v := range map[string]any{
		"nothing": record{}, "text": record{Name: "é\x00", Any: "日", List: []string{"a"}, Map: map[string]any{"k": []any{1, nil, true, "v"}}, Ptr: &record{}},
	} {
		if err := checkText("record", v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	endless := map[string]any{}
	endless["self"] = endless
	for name, v := range map[string]any{
		"string": record{Name: "secret\xff"}, "any": record{Any: "secret\xff"}, "list": record{List: []string{"", "\xff"}}, "array": record{Array: [1]string{"\xff"}},
		"map": record{Map: map[string]any{"k": []any{map[string]any{"k": "\xff"}}}}, "key": record{Map: map[string]any{"\xff": 1}},
		"pointer": record{Ptr: &record{Name: "\xff"}}, "half a pair": record{Name: "\xed\xa0\x80"}, "endless": endless,
	} {
		err := checkText("record", v)
		if !errors.Is(err, ErrInvalidArgument) || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "record") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
