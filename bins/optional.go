package bins

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// An Optional is a boolean or an integer that the service may state, or leave
// null or out. "Not stated" is a third answer: it must not be taken for false
// or 0, which route payments differently. The zero value is "not stated", and
// no method panics.
//
//	if prepaid, stated := card.Prepaid.Get(); stated && prepaid { … }
//	length := card.Number.Length.Or(16)
type Optional[T bool | int64] struct {
	value  T
	stated bool
}

// Stated returns an Optional that states a value, for tests and fakes.
func Stated[T bool | int64](value T) Optional[T] { return Optional[T]{value, true} }

// Get returns the value and whether the service stated one.
func (o Optional[T]) Get() (value T, stated bool) { return o.value, o.stated }

// Or returns the value, or what to take it for where the service stated none.
func (o Optional[T]) Or(unstated T) T {
	if !o.stated {
		return unstated
	}
	return o.value
}

// IsStated tells whether the service stated a value.
func (o Optional[T]) IsStated() bool { return o.stated }

// Equal tells whether both state the same value, or both none, as == does.
func (o Optional[T]) Equal(other Optional[T]) bool { return o == other }

// String returns the value, or "not stated".
func (o Optional[T]) String() string {
	if !o.stated {
		return "not stated"
	}
	return fmt.Sprint(o.value)
}

// MarshalJSON writes the value, or null where none is stated.
func (o Optional[T]) MarshalJSON() ([]byte, error) {
	if !o.stated {
		return []byte("null"), nil
	}
	return json.Marshal(o.value)
}

// UnmarshalJSON reads a value or null. Integers are also read from strings of
// digits, as "16"; an empty string states nothing.
func (o *Optional[T]) UnmarshalJSON(data []byte) error {
	*o = Optional[T]{}
	if string(data) == "null" || string(data) == `""` {
		return nil
	}
	if _, integer := any(o.value).(int64); integer {
		if digits, err := strconv.Unquote(string(data)); err == nil {
			// Anything else stays a string, and is refused as one.
			if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
				data = strconv.AppendInt(nil, n, 10)
			}
		}
	}
	if err := json.Unmarshal(data, &o.value); err != nil {
		if mismatch, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			// It quotes a number that does not fit, which may be a card's.
			mismatch.Value, _, _ = strings.Cut(mismatch.Value, " ")
		}
		return err
	}
	o.stated = true
	return nil
}
