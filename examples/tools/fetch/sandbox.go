package main

import (
	"cmp"
	"context"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"

	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/updater"
)

// serve starts a sandbox, and returns its address and how it is reached.
func (c *config) serve() (string, updater.Option, error) {
	engine := sandbox.New()
	server, err := engine.ListenTCP("127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	format := sandbox.Format(cmp.Or(c.read, "csv"))
	size := cmp.Or(c.size, 4<<10)
	if c.size > 0 || c.flaky || format != sandbox.CSV {
		content := sandbox.Synthetic(format, size)
		engine.SetJob(c.job, sandbox.Job{Content: content, ContentType: contentTypes[format]})
	}
	if c.flaky {
		engine.ScriptFunc(sandbox.Updater, flaky(size))
	}
	// A partial file belongs to one address. The sandbox has another port in each run, so
	// it is reached under an address that stays the same.
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server.Addr().String())
	}
	transport := &http.Transport{DialContext: dial, DisableKeepAlives: true}
	return "http://localhost", updater.WithHTTPClient(&http.Client{Transport: transport}), nil
}

var contentTypes = map[sandbox.Format]string{
	sandbox.CSV:       "text/csv; charset=utf-8",
	sandbox.JSONArray: "application/json",
}

// flaky cuts every connection off after about a twentieth of the content, and
// lets one request in five fail altogether, the same ones in every run.
func flaky(size int64) func(sandbox.Request) sandbox.Fault {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(1, 2))
	return func(sandbox.Request) sandbox.Fault {
		mu.Lock()
		defer mu.Unlock()
		switch random.IntN(10) {
		case 0:
			return sandbox.Fault{Status: http.StatusServiceUnavailable}
		case 1:
			return sandbox.Fault{Drop: true}
		}
		return sandbox.Fault{Truncate: int(size/40 + random.Int64N(size/20+1) + 1)}
	}
}
