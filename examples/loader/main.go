// Loader is a service that tells a checkout the brand of a card. Lookups that arrive
// within 2 ms share one request, results are cached by the first 8 digits, and an expired
// one is served while the service fails.
//
//	go run ./examples/loader -sandbox
//	curl -d card=4571736000000000 http://127.0.0.1:8081/card
//
// CARDDATA_BIN_URL and CARDDATA_API_KEY name the service and the credential.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/carddata/carddata-go/bins"
	_ "github.com/carddata/carddata-go/internal/sandbox/demo" // the flag -sandbox: delete this line
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8081", "address to serve on")
	flag.Parse()
	client, err := bins.NewClient(os.Getenv("CARDDATA_BIN_URL"), bins.StaticToken(os.Getenv("CARDDATA_API_KEY")))
	if err != nil {
		log.Fatal("check CARDDATA_BIN_URL and CARDDATA_API_KEY: ", err)
	}
	memory := bins.NewMemoryCache(bins.CacheOptions{TTL: time.Hour, StaleFor: 24 * time.Hour})
	loader, err := bins.NewLoader(client, bins.LoaderOptions{PrefixLength: 8, Memory: memory}) // sends 8 digits
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("serving http://%s/card", listener.Addr())
	server := &http.Server{Handler: newHandler(loader), ReadTimeout: 5 * time.Second}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	go func() {
		log.Print(server.Serve(listener))
		stop()
	}()
	<-ctx.Done()
	stop()                                // a second Ctrl-C ends the program at once
	server.Shutdown(context.Background()) // waits for the requests in progress
	loader.Close()
}

func newHandler(loader *bins.Loader) http.Handler {
	mux := http.NewServeMux()
	// POST, because card numbers in a path or a query end up in access logs.
	mux.HandleFunc("POST /card", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 300*time.Millisecond)
		defer cancel() // the request to the service goes on, for later callers
		result, err := loader.Load(ctx, r.PostFormValue("card"))
		card, unknown := result.Card()
		switch {
		case errors.Is(err, bins.ErrInvalidArgument):
			http.Error(w, "no card", http.StatusBadRequest)
		case err != nil: // a checkout goes on without the brand
			log.Print(err) // holds no card number and no credential
			http.Error(w, "card data are not available", http.StatusServiceUnavailable)
		case unknown != nil:
			http.Error(w, "unknown card", http.StatusNotFound)
		default:
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(map[string]string{"brand": card.CardBrand, "type": card.Type, "country": card.Country.Alpha2})
		}
	})
	return mux
}
