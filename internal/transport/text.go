package transport

import (
	"reflect"
	"unicode/utf8"
)

// CheckText refuses a value that holds a string which is not valid UTF-8:
// encoding/json would replace its bytes, and other data would be sent. name is
// how the error calls the value.
func CheckText(name string, value any) error {
	if !isText(reflect.ValueOf(value), maxTextDepth) {
		return Invalid("the %s holds text that is not valid UTF-8, or is nested too deeply", name)
	}
	return nil
}

// maxTextDepth ends the walk of a value that contains itself.
const maxTextDepth = 1000

func isText(v reflect.Value, depth int) bool {
	if depth == 0 {
		return false
	}
	switch v.Kind() {
	case reflect.String:
		return utf8.ValidString(v.String())
	case reflect.Pointer, reflect.Interface:
		return v.IsNil() || isText(v.Elem(), depth-1)
	case reflect.Struct:
		for _, field := range v.Fields() {
			if !isText(field, depth-1) {
				return false
			}
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			if !isText(v.Index(i), depth-1) {
				return false
			}
		}
	case reflect.Map:
		for key, element := range v.Seq2() {
			if !isText(key, depth-1) || !isText(element, depth-1) {
				return false
			}
		}
	}
	return true
}
