package sandbox

import (
	"fmt"
	"net/http"
	"sync"
)

// TB is the part of testing.TB that a fake needs.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
}

// A Fake is the common part of the public fakes: one area in memory.
type Fake struct {
	*Engine
	tb     TB
	area   Area
	memory *Server

	mu     sync.Mutex
	tcp    *Server // nil before the first call of URL
	closed bool
}

// noTest is the TB of a fake outside a test.
type noTest struct{}

func (noTest) Helper()                           {}
func (noTest) Cleanup(func())                    {}
func (noTest) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// NewFake starts a fake that ends with the test. With a nil tb it ends with Close, and panics
// where it would fail the test.
func NewFake(tb TB, area Area) *Fake {
	if tb == nil {
		tb = noTest{}
	}
	tb.Helper()
	f := &Fake{Engine: New(), tb: tb, area: area}
	f.memory = f.Start(area)
	tb.Cleanup(f.Close)
	return f
}

// Close ends the fake. Later calls do nothing.
func (f *Fake) Close() {
	f.mu.Lock()
	tcp := f.tcp
	f.tcp, f.closed = nil, true
	f.mu.Unlock()
	if tcp != nil {
		tcp.Close()
	}
	f.memory.Close()
}

// BaseURL is an address for clients that go through HTTPClient.
const BaseURL = "https://sandbox.invalid"

// HTTPClient returns a client that reaches the fake in memory.
func (f *Fake) HTTPClient() *http.Client { return &http.Client{Transport: f.memory.Transport} }

// URL returns a loopback address at which the fake can be reached too. The
// first call opens it.
func (f *Fake) URL() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		f.tb.Fatalf("the fake is closed")
	}
	if f.tcp == nil {
		server, err := f.ListenTCP("127.0.0.1:0")
		f.Must(err)
		f.tcp = server
	}
	return f.tcp.URL()
}

// Script adds faults to the fake's area.
func (f *Fake) Script(faults ...Fault) { f.Engine.Script(f.area, faults...) }

// ScriptFor makes fault the one of each request that carries text.
func (f *Fake) ScriptFor(text string, fault Fault) { f.Engine.ScriptFor(f.area, text, fault) }

// ScriptFunc chooses the faults of requests for which the script has none.
func (f *Fake) ScriptFunc(choose func(Request) Fault) { f.Engine.ScriptFunc(f.area, choose) }

// Pending counts the faults that no request has taken yet.
func (f *Fake) Pending() int { return f.Engine.Pending(f.area) }

// Requests returns the requests that arrived.
func (f *Fake) Requests() []Request { return f.Engine.Requests(f.area) }

// Must fails the test on an error of its setup.
func (f *Fake) Must(err error) {
	f.tb.Helper()
	if err != nil {
		f.tb.Fatalf("%v", err)
	}
}
