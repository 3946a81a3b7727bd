package testkit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
)

// Generic reads JSON without a type, and without rounding numbers.
func Generic(t testing.TB, text []byte) any {
	t.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return v
}

// Encoded is v as JSON.
func Encoded(t testing.TB, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// SameJSON fails the test when two texts do not hold the same values.
func SameJSON(t testing.TB, name string, got, want []byte) {
	t.Helper()
	if a, b := Generic(t, got), Generic(t, want); !reflect.DeepEqual(a, b) {
		t.Errorf("%s is\n%s\nand not\n%s", name, Encoded(t, a), Encoded(t, b))
	}
}

// Unset returns the paths of v's leaves that have no value.
func Unset(v any) []string {
	var paths []string
	unset("", reflect.ValueOf(v), &paths)
	return paths
}

func unset(path string, v reflect.Value, paths *[]string) {
	switch {
	case v.IsZero():
		*paths = append(*paths, path)
	case v.Kind() == reflect.Pointer:
		unset(path, v.Elem(), paths)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		for i := range v.Len() {
			unset(fmt.Sprintf("%s[%d]", path, i), v.Index(i), paths)
		}
	case v.Kind() == reflect.Struct && v.Type().Field(0).IsExported():
		for field, value := range v.Fields() {
			unset(path+"."+field.Name, value, paths)
		}
	}
}
