package refunds

import (
	"reflect"
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
		if !isText(reflect.ValueOf(v), maxTextDepth) {
			t.Errorf("%s is refused", name)
		}
	}
	endless := map[string]any{}
	endless["self"] = endless
	for name, v := range map[string]any{
		"string": record{Name: "\xff"}, "any": record{Any: "\xff"}, "list": record{List: []string{"", "\xff"}}, "array": record{Array: [1]string{"\xff"}},
		"map": record{Map: map[string]any{"k": []any{map[string]any{"k": "\xff"}}}}, "key": record{Map: map[string]any{"\xff": 1}},
		"pointer": record{Ptr: &record{Name: "\xff"}}, "half a pair": record{Name: "\xed\xa0\x80"}, "endless": endless,
	} {
		if isText(reflect.ValueOf(v), maxTextDepth) {
			t.Errorf("%s is taken", name)
		}
	}
}
