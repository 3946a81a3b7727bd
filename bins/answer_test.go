package bins

import (
	"reflect"
	"runtime"
	"testing"
	"weak"
)

// TestAnswerAtRest: an answer that was laid to rest says the same as before, and
// keeps nothing of the item that it came with.
func TestAnswerAtRest(t *testing.T) {
	store := newAnswerStore("test", nil, 100, nil, false)
	resp, err := decode(syntheticAnswer(), false, MaxCards)
	if err != nil {
		t.Fatal(err)
	}
	id := resp.Cards[0].BIN
	a := store.pack(id, resp.Cards[0])
	before, item := resp.Cards[0].clone(), weak.Make(resp.Cards[0].Data)
	a.rest()
	if a.isWhole() || !reflect.DeepEqual(a.result(id), before) || !reflect.DeepEqual(a.take(id), before) {
		t.Errorf("%v is at rest %v", before, a.result(id))
	}
	resp = nil
	runtime.GC()
	if item.Value() != nil {
		t.Error("an answer at rest keeps its item in memory")
	}
	runtime.KeepAlive(a)
}

// TestAnswerIsTakenAsItCame by the first receiver alone.
func TestAnswerIsTakenAsItCame(t *testing.T) {
	store := newAnswerStore("test", nil, 100, nil, false)
	resp, err := decode(syntheticAnswer(), false, MaxCards)
	if err != nil {
		t.Fatal(err)
	}
	came := resp.Cards[0]
	a := store.pack(came.BIN, came)
	first, second := a.take(came.BIN), a.take(came.BIN)
	if first.Data != came.Data || second.Data == came.Data || !reflect.DeepEqual(first, second) {
		t.Errorf("%v, and then %v", first, second)
	}
}
