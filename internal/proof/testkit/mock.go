// Package testkit holds what the tests of the service packages share. Only
// tests import it.
package testkit

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"

	"github.com/jarcoal/httpmock"
)

// Base is the address of Mocks.
const Base = "https://service.example"

// A Request is one that a Mock received.
type Request struct {
	Method string
	URL    string
	Header http.Header
	Body   string
}

// A Mock is an HTTP transport that knows one method and full URL, answers there
// in turn, the last answer for good, and keeps every request, also those to
// somewhere else.
type Mock struct {
	known *httpmock.MockTransport

	mu       sync.Mutex
	requests []Request
}

// NewMock returns a Mock with its answers. Each answer is a responder, as made
// by Answer.
func NewMock(method, url string, answers ...httpmock.Responder) *Mock {
	m := &Mock{known: httpmock.NewMockTransport()}
	var next int
	m.known.RegisterResponder(method, url, func(req *http.Request) (*http.Response, error) {
		if len(answers) == 0 {
			return nil, errors.New("the mock has no answer")
		}
		m.mu.Lock()
		answer := answers[min(next, len(answers)-1)]
		next++
		m.mu.Unlock()
		return answer(req)
	})
	return m
}

// RoundTrip keeps the request and answers it.
func (m *Mock) RoundTrip(req *http.Request) (*http.Response, error) {
	kept := Request{Method: req.Method, URL: req.URL.String(), Header: req.Header.Clone()}
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		if err = errors.Join(err, req.Body.Close()); err != nil {
			return nil, err
		}
		kept.Body = string(body)
	}
	m.mu.Lock()
	m.requests = append(m.requests, kept)
	m.mu.Unlock()
	return m.known.RoundTrip(req)
}

// Client returns an http.Client that reaches nothing but the mock.
func (m *Mock) Client() *http.Client { return &http.Client{Transport: m} }

// Requests returns what arrived so far.
func (m *Mock) Requests() []Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// Answer is an answer with a status, a body, and headers as names and values.
func Answer(status int, body string, header ...string) httpmock.Responder {
	return func(req *http.Request) (*http.Response, error) {
		resp := httpmock.NewStringResponse(status, body)
		resp.Request = req
		for pair := range slices.Chunk(header, 2) {
			resp.Header.Add(pair[0], pair[1])
		}
		return resp, nil
	}
}

// Limited is the answer of a limiter that has refused a request, and asks for no wait.
var Limited = Answer(http.StatusTooManyRequests, "", "RateLimit-Remaining", "0")

// Broken is an answer. Its body ends with err after a part of it.
func Broken(status int, part string, err error) httpmock.Responder {
	return func(req *http.Request) (*http.Response, error) {
		resp := httpmock.NewStringResponse(status, "")
		resp.Request = req
		resp.Body = io.NopCloser(io.MultiReader(bytes.NewBufferString(part), failing{err}))
		return resp, nil
	}
}

// Silent is an answer that never comes.
func Silent(req *http.Request) (*http.Response, error) {
	<-req.Context().Done()
	return nil, context.Cause(req.Context())
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
