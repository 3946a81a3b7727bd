package main

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"golang.org/x/sync/errgroup"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/benchmark/process"
	"github.com/carddata/carddata-go/internal/benchmark/service"
)

// trusted is the file with the certificate of this process's server, if it has one.
var trusted string

// forget removes that file, and no other that SSL_CERT_FILE may name.
func forget() {
	if trusted != "" {
		os.Remove(trusted)
	}
}

// start starts a server, whose certificate this process then trusts.
func start(o process.ServerOptions) (*process.Server, error) {
	worker, err := os.Executable()
	if err != nil {
		return nil, err
	}
	server, err := process.Serve(worker, o)
	if err != nil || !o.TLS {
		return server, err
	}
	// By the system's roots, which are read when first needed: the transport that
	// the library makes is the one to be measured.
	file, err := os.CreateTemp("", "certificate")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := file.Write(server.Certificate); err != nil {
		return nil, err
	}
	trusted = file.Name()
	return server, os.Setenv("SSL_CERT_FILE", trusted)
}

// wide is the default transport with room for as many idle connections as there
// are requests.
func wide() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, 1024
	return t
}

// transports are ways to the network; what is not named is the library's own.
var transports = map[string]func() *http.Client{
	"http.DefaultTransport":        func() *http.Client { return &http.Client{} },
	"1,024 idle connections":       func() *http.Client { return &http.Client{Transport: wide()} },
	"go-retryablehttp's transport": func() *http.Client { return retryablehttp.NewClient().HTTPClient },
}

func transport(job process.Job) *http.Client {
	if open := transports[job.Transport]; open != nil {
		return open()
	}
	return nil
}

// connections counts those that lookups make.
func connections(job process.Job) (process.Sample, error) {
	server, err := start(process.ServerOptions{Short: true, Latency: latency})
	if err != nil {
		return nil, err
	}
	defer server.Close()
	look, err := newBulkLookup(job.Contestant, server.URL, transport(job), bins.BulkOptions{Concurrency: job.Concurrency})
	if err != nil {
		return nil, err
	}
	if err := look.all(0, job.Size*bins.MaxCards); err != nil {
		return nil, err
	}
	n, err := server.Connections(http.DefaultClient)
	return process.Sample{"connections": float64(n)}, err
}

// timeouts gives one lookup in 20 no more than 5 ms, over TLS and with new
// connections that take 60 ms longer.
func timeouts(job process.Job) (process.Sample, error) {
	server, err := start(process.ServerOptions{TLS: true, Short: true, Latency: latency, ConnectionDelay: 60 * time.Millisecond})
	if err != nil {
		return nil, err
	}
	defer server.Close()
	defer forget()
	look, err := newLookup(job.Contestant, server.URL, transport(job))
	if err != nil {
		return nil, err
	}
	var failed atomic.Int64
	group, number := errgroup.Group{}, 0
	group.SetLimit(job.Concurrency)
	began := time.Now()
	for batch := range batches(job.Size) {
		number++
		late := number%20 == 0
		group.Go(func() error {
			limit := time.Minute
			if late {
				limit = 5 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(context.Background(), limit)
			defer cancel()
			if _, err := look(ctx, batch); late {
				failed.Add(1)
			} else if err != nil {
				return err
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	took := time.Since(began)
	if failed.Load() != int64(job.Size/20) {
		return nil, fmt.Errorf("%d lookups of %d timed out", failed.Load(), job.Size)
	}
	n, err := server.Connections(&http.Client{Transport: wide()})
	bound := latency * time.Duration(job.Size) / time.Duration(job.Concurrency)
	return process.Sample{
		"% of the bound": 100 * bound.Seconds() / took.Seconds(),
		"connections":    float64(n),
	}, err
}

// batches yields the cards of so many requests.
func batches(requests int) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for i := range requests {
			if !yield(service.Cards(i*bins.MaxCards, bins.MaxCards)) {
				return
			}
		}
	}
}
