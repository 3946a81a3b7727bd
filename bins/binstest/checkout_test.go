package binstest_test

import (
	"context"
	"testing"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/bins/binstest"
)

// A Checkout is a user's own service.
type Checkout struct{ Cards *bins.Client }

// IsDebit tells whether a card is known to be a debit card.
func (c Checkout) IsDebit(ctx context.Context, card string) (bool, error) {
	resp, err := c.Cards.Lookup(ctx, &bins.LookupRequest{Cards: bins.Cards(card)})
	if err != nil || len(resp.Cards) == 0 {
		return false, err
	}
	found, err := resp.Cards[0].Card()
	return err == nil && found.FundingSource == "debit", nil
}

// TestCheckout is how a user tests it.
func TestCheckout(t *testing.T) {
	fake := binstest.NewServer(t)
	fake.SetResult("400000", bins.Result{BIN: "400000", Data: &bins.Data{Card: &bins.Card{FundingSource: "debit"}}})
	fake.Script(binstest.Fault{DropBefore: true})
	checkout := Checkout{fake.Client(bins.WithRetryWait(0, 0))}

	debit, err := checkout.IsDebit(t.Context(), "4000001234567899")
	if !debit || err != nil {
		t.Errorf("IsDebit = %v, %v", debit, err)
	}
	if n := len(fake.Requests()); n != 2 {
		t.Errorf("%d requests, want the dropped one and another", n)
	}
}
