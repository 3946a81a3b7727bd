package service

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/sandbox"
)

// A Service responds to lookups in memory.
type Service struct {
	Latency     time.Duration // of each response
	RefuseEvery int           // every so many-th request with 503; 0: none
	Response    Response
	Arrived     func() // called for every request, if set

	requests atomic.Int64
}

// A Response is what a Service knows of its cards.
type Response int

const (
	Full      Response = iota // some 2.3 KB for each card
	Synthetic                 // the sandbox's own card, with the range that the sandbox gives it
	Short                     // its brand
	Tiny                      // an error, of one item
)

var template = func() func(items int) *responseTemplate {
	var made [bins.MaxCards + 1]func() *responseTemplate
	for items := range made {
		made[items] = sync.OnceValue(func() *responseTemplate { return newResponseTemplate(items) })
	}
	return func(items int) *responseTemplate { return made[items]() }
}()

var jsonHeader = http.Header{"Content-Type": {"application/json"}}

const tiny = `{"cards":[{"bin":"400000","data":null,"error":"unknown"}]}`

// RoundTrip makes the Service an http.RoundTripper.
func (s *Service) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.Arrived != nil {
		s.Arrived()
	}
	var request bytes.Buffer
	if s.Response != Tiny {
		if _, err := request.ReadFrom(r.Body); err != nil {
			return nil, err
		}
	} else if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return nil, err
	}
	r.Body.Close()
	if s.Latency > 0 {
		time.Sleep(s.Latency)
	}
	resp := &http.Response{
		StatusCode: http.StatusOK, Status: "200 OK", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: jsonHeader, Request: r,
	}
	if n := s.requests.Add(1); s.RefuseEvery > 0 && n%int64(s.RefuseEvery) == 0 {
		resp.StatusCode, resp.Status, resp.Body = http.StatusServiceUnavailable, "503 Service Unavailable", http.NoBody
		return resp, nil
	}
	resp.Body, resp.ContentLength = s.response(request.Bytes())
	return resp, nil
}

func (s *Service) response(request []byte) (io.ReadCloser, int64) {
	switch s.Response {
	case Tiny:
		return io.NopCloser(strings.NewReader(tiny)), int64(len(tiny))
	case Short, Synthetic:
		body := []byte(`{"cards":[`)
		for i, card := range requested(request) {
			if i > 0 {
				body = append(body, ',')
			}
			if s.Response == Short {
				body = fmt.Appendf(body, `{"bin":%q,"error":null,"data":{"card":{"card_brand":"VISA"}}}`, card)
			} else {
				body = append(body, sandbox.SyntheticCard(card)...)
			}
		}
		body = append(body, "]}"...)
		return io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	cards := requested(request)
	t := template(len(cards))
	return &response{responseTemplate: t, cards: cards}, int64(len(t.text))
}
