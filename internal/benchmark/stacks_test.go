package main

import (
	"net/http"
	"testing"

	"github.com/carddata/carddata-go/internal/benchmark/service"
)

// TestStacksDoTheSame: every stack gets every item, and tells a failure.
func TestStacksDoTheSame(t *testing.T) {
	for _, s := range stacks {
		for name, test := range map[string]struct {
			service *service.Service
			items   int
		}{
			"full": {&service.Service{}, 50},
			"tiny": {&service.Service{Response: service.Tiny}, 1},
		} {
			look, err := s.open("https://bin.example", test.service)
			if err != nil {
				t.Fatal(s.name, err)
			}
			if n, err := look(t.Context(), service.Cards(0, 50)); err != nil || n != test.items {
				t.Errorf("%s, %s: %d items, %v", s.name, name, n, err)
			}
		}
		look, err := s.open("https://bin.example", refusing{})
		if err != nil {
			t.Fatal(s.name, err)
		}
		if _, err := look(t.Context(), service.Cards(0, 1)); err == nil {
			t.Errorf("%s does not tell that it was refused", s.name)
		}
	}
}

type refusing struct{}

func (refusing) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 403, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}
