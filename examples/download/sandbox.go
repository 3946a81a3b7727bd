package main

import (
	"cmp"
	"context"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"sync"

	"github.com/carddata/carddata-go/examples/internal/target"
	"github.com/carddata/carddata-go/internal/sandbox"
	"github.com/carddata/carddata-go/updater"
)

// prepare checks the job against the service that is to have it, and sets the
// sandbox up if it is that. It returns the service's address, and the options
// with which it is reached.
func (c *config) prepare(service *target.Target) (string, []updater.Option, error) {
	if service.Live() {
		switch {
		case c.job == "":
			return "", nil, target.Usage("download: -job is missing (-h helps)")
		case c.size > 0 || c.flaky:
			return "", nil, target.Usage("download: -size and -flaky are for the sandbox")
		}
		return service.URL, nil, nil
	}
	c.job = cmp.Or(c.job, "42")
	format := sandbox.Format(cmp.Or(c.read, "csv"))
	size := cmp.Or(c.size, 4<<10)
	if c.size > 0 || c.flaky || format != sandbox.CSV {
		content := sandbox.Synthetic(format, size)
		service.Engine.SetJob(c.job, sandbox.Job{Content: content, ContentType: contentTypes[format]})
	}
	if c.flaky {
		service.Engine.ScriptFunc(sandbox.Updater, flaky(size))
	}
	at, err := url.Parse(service.URL)
	if err != nil {
		return "", nil, err
	}
	// A partial file belongs to one address, and the sandbox has another one in every
	// run: under one that stays the same, what a run left is found by the next.
	dial := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, at.Host)
	}
	transport := &http.Transport{DialContext: dial, DisableKeepAlives: true}
	return "http://localhost", []updater.Option{updater.WithHTTPClient(&http.Client{Transport: transport})}, nil
}

var contentTypes = map[sandbox.Format]string{
	sandbox.CSV:       "text/csv; charset=utf-8",
	sandbox.NDJSON:    "application/x-ndjson",
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
			return sandbox.Fault{DropBefore: true}
		}
		return sandbox.Fault{Truncate: int(size/40 + random.Int64N(size/20+1) + 1)}
	}
}
