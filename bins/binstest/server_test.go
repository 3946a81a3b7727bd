package binstest_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/bins/binstest"
)

func TestScriptInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := binstest.NewServer(t)
		fake.Script(
			binstest.Fault{Refuse: true},
			binstest.Fault{Status: 429, RetryAfter: 40 * time.Second},
			binstest.Fault{Delay: time.Second},
			binstest.Fault{Status: 403},
		)
		client := fake.Client()
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		if _, err := client.Lookup(ctx, &bins.LookupRequest{Cards: bins.Cards("411111")}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took < 41*time.Second {
			t.Errorf("took %v, less than the pause and the delay", took)
		}
		if fake.Pending() != 1 {
			t.Errorf("%d faults left, want 1", fake.Pending())
		}
		if _, err := client.Lookup(ctx, &bins.LookupRequest{Cards: bins.Cards("411111")}); !errors.Is(err, bins.ErrForbidden) {
			t.Errorf("error = %v, want the scripted status", err)
		}
	})
}

func TestWhatArrived(t *testing.T) {
	fake := binstest.NewServer(t)
	_, err := fake.Client().Lookup(t.Context(), &bins.LookupRequest{Cards: bins.Cards("4111111111111111", "4242"), Enhanced: new(true)})
	if err != nil {
		t.Fatal(err)
	}
	if cards := fake.Cards(); !slices.Equal(cards, []string{"4111111111111111", "4242"}) {
		t.Errorf("cards = %q", cards)
	}
	request := fake.Requests()[0]
	if got := request.Header.Get("Authorization"); got != "Bearer ***" || !strings.Contains(string(request.Body), `"enhanced":true`) {
		t.Errorf("the record holds the credential as %q, and %s", got, request.Body)
	}
}

func TestSetResultRaw(t *testing.T) {
	fake := binstest.NewServer(t)
	fake.SetResult("", bins.Result{Raw: json.RawMessage(`{"bin":"400000","later_member":1}`)})
	resp, err := fake.Client().Lookup(t.Context(), &bins.LookupRequest{Cards: bins.Cards("400000"), KeepRaw: true})
	if err != nil || string(resp.Cards[0].Raw) != `{"bin":"400000","later_member":1}` {
		t.Errorf("result = %s, %v", resp.Cards[0].Raw, err)
	}
}
