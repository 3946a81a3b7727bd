package binstest_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
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
			binstest.Fault{HeaderDelay: time.Second},
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
	lookups := fake.Lookups()
	if len(lookups) != 1 || !*lookups[0].Enhanced {
		t.Errorf("lookups = %+v", lookups)
	}
	if cards := fake.Cards(); !slices.Equal(cards, []string{"4111111111111111", "4242"}) {
		t.Errorf("cards = %q", cards)
	}
	request := fake.Requests()[0]
	if got := request.Header.Get("Authorization"); got != "Bearer ***" {
		t.Errorf("the record holds the credential as %q", got)
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

func TestURL(t *testing.T) {
	fake := binstest.NewServer(t)
	client, err := bins.NewClient(fake.URL(), bins.StaticToken("k"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Lookup(t.Context(), &bins.LookupRequest{Cards: bins.Cards("411111")}); err != nil {
		t.Fatal(err)
	}
	// The same fake without the library, as a program in another language sees it.
	resp, err := http.Post(fake.URL()+"/bins/multiple", "application/json", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized || len(fake.Requests()) != 2 {
		t.Errorf("status %d, %d requests", resp.StatusCode, len(fake.Requests()))
	}
}

func TestUnusableSetUpPanicsOutsideATest(t *testing.T) {
	fake := binstest.Start()
	defer fake.Close()
	defer func() {
		if recover() == nil {
			t.Error("an unusable option was taken")
		}
	}()
	fake.Client(bins.WithMaxRetries(-1))
}

func TestCloseEndsAFake(t *testing.T) {
	fake := binstest.Start()
	client, url := fake.Client(bins.WithMaxRetries(0)), fake.URL()
	request := &bins.LookupRequest{Cards: bins.Cards("411111")}
	if _, err := client.Lookup(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	fake.Close()
	fake.Close()
	if _, err := client.Lookup(t.Context(), request); !errors.Is(err, bins.ErrNoResponse) {
		t.Errorf("a closed fake: %v", err)
	}
	if resp, err := http.Get(url); err == nil {
		resp.Body.Close()
		t.Error("the address of a closed fake is open")
	}
}

// TestScriptFuncNil proves that nil ends a script, and fails no request.
func TestScriptFuncNil(t *testing.T) {
	fake := binstest.NewServer(t)
	fake.ScriptFunc(func(binstest.Request) binstest.Fault { return binstest.Fault{Status: 400} })
	fake.ScriptFunc(nil)
	if _, err := fake.Client().Lookup(t.Context(), &bins.LookupRequest{Cards: bins.Cards("411111")}); err != nil {
		t.Error(err)
	}
}
