package main

import (
	"cmp"
	"context"
	"os"
	"sync"

	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/examples/internal/target"
)

// An Answer is what is joined to the rows of an identifier.
type Answer struct{ Brand, Kind, Country, Bank, Reason string }

var answerNames = []string{"brand", "type", "country", "bank"}

// Service is what travels to the workers. The credential does not: runners store
// pipelines and show them on pages. It comes from each worker's environment.
type Service struct {
	URL  string
	Rate float64 // requests a second of one worker process; 0 is no limit
}

// process has one client, however many instances of a DoFn there are: each client
// of its own would have a quota of its own. A worker serves one pipeline.
var process struct {
	sync.Once
	client *bins.Client
	err    error
}

func (s Service) client() (*bins.Client, error) {
	process.Do(func() {
		var opts []bins.Option
		if limiter != nil {
			opts = append(opts, bins.WithLimiter(limiter))
		} else if s.Rate > 0 {
			opts = append(opts, bins.WithRateLimit(rate.Limit(s.Rate), 1))
		}
		if os.Getenv("CARDDATA_INSECURE_HTTP") == "1" {
			opts = append(opts, bins.WithInsecureHTTP())
		}
		process.client, process.err = bins.NewClient(s.URL, bins.StaticToken(os.Getenv("CARDDATA_API_KEY")), opts...)
	})
	return process.client, process.err
}

// limiter, where it is set, shares the quota as it is needed: one in Redis, say. A file
// of your own sets it in its init, which every worker runs.
var limiter bins.Limiter

// lookupFn looks the identifiers of a group up, 50 in each request.
type lookupFn struct{ Service Service }

func (f *lookupFn) ProcessElement(ctx context.Context, _ string, ids func(*string) bool, emit func(string, Answer)) error {
	client, err := f.Service.client()
	if err != nil {
		return err
	}
	all := func(yield func(string) bool) {
		for id := ""; ids(&id); {
			if !yield(id) {
				return
			}
		}
	}
	for r, err := range client.LookupAll(ctx, all, bins.BulkOptions{}) {
		if r.Index < 0 {
			return err // every further request would meet it: the job fails
		}
		emit(r.Input.Reveal(), answerOf(&r.Result, err))
	}
	return nil
}

func answerOf(r *bins.Result, err error) Answer {
	var card *bins.Card
	if err == nil {
		card, err = r.Card()
	}
	if err != nil { // the service's own words, if it has any, with card numbers masked
		return Answer{Reason: target.Line(cmp.Or(r.Error, err.Error()))}
	}
	return Answer{Brand: card.CardBrand, Kind: card.Type, Country: card.Country.Alpha2, Bank: card.Bank.Name}
}
