package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/carddata/carddata-go/refunds"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"
)

// The recipes of the README for a token endpoint, with x/oauth2.

// clientCredentials fetches with an id and a secret. Config.TokenSource would
// keep a token that was revoked.
func clientCredentials(config *clientcredentials.Config) refunds.TokenSource {
	return refunds.CachedToken(func(ctx context.Context) (string, time.Time, error) {
		token, err := config.Token(ctx)
		if err != nil {
			return "", time.Time{}, err
		}
		return token.AccessToken, token.Expiry, nil
	})
}

// refreshToken fetches with a refresh token, which each fetch may replace. It needs
// no lock, as there is one fetch at a time.
func refreshToken(config *oauth2.Config, refresh string) refunds.TokenSource {
	return refunds.CachedToken(func(ctx context.Context) (string, time.Time, error) {
		token, err := config.TokenSource(ctx, &oauth2.Token{RefreshToken: refresh}).Token()
		if err != nil {
			return "", time.Time{}, err
		}
		refresh = token.RefreshToken
		return token.AccessToken, token.Expiry, nil
	})
}

// An issuer is a token endpoint whose tokens can be revoked, and a service that
// accepts the last one alone.
type issuer struct {
	mu       sync.Mutex
	issued   int
	lifetime int           // in seconds
	rotating bool          // a refresh token can be used once
	hang     chan struct{} // set: it never responds, and says here that its caller has gone
	revoked  bool
}

func (i *issuer) token(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if gone := i.hang; gone != nil {
		i.mu.Unlock()
		r.FormValue("") // the server notices who leaves once the body is read
		<-r.Context().Done()
		close(gone)
		i.mu.Lock()
		return
	}
	if refresh := r.FormValue("refresh_token"); i.rotating && refresh != fmt.Sprint("refresh-", i.issued) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error":"invalid_grant"}`)
		return
	}
	i.issued++
	i.revoked = false
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(map[string]any{
		"access_token": fmt.Sprint("access-", i.issued), "token_type": "Bearer", "expires_in": i.lifetime, "refresh_token": fmt.Sprint("refresh-", i.issued),
	})
}

func (i *issuer) submit(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.revoked || r.Header.Get("Authorization") != fmt.Sprint("Bearer access-", i.issued) {
		w.WriteHeader(http.StatusUnauthorized)
	}
}

func (i *issuer) set(change func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change()
}

// TestTokenRecipes proves that they recover from a token that is revoked, expires
// or rotates, and that an endpoint which hangs holds no call beyond its deadline.
func TestTokenRecipes(t *testing.T) {
	for name, rotating := range map[string]bool{"client credentials": false, "refresh token": true} {
		t.Run(name, func(t *testing.T) {
			i := &issuer{lifetime: 3600, rotating: rotating}
			mux := http.NewServeMux()
			mux.HandleFunc("POST /token", i.token)
			mux.HandleFunc("POST /v1/{account}/refunds", i.submit)
			server := httptest.NewServer(mux)
			defer server.Close()
			source := clientCredentials(&clientcredentials.Config{ClientID: "id", ClientSecret: "secret", TokenURL: server.URL + "/token"})
			if rotating {
				endpoint := oauth2.Endpoint{TokenURL: server.URL + "/token", AuthStyle: oauth2.AuthStyleInParams}
				source = refreshToken(&oauth2.Config{ClientID: "id", Endpoint: endpoint}, "refresh-0")
			}
			client, err := refunds.NewClient(server.URL, refunds.WithTokenSource(source))
			if err != nil {
				t.Fatal(err)
			}
			submit := func(ctx context.Context) (attempts int, err error) {
				receipt, err := client.Submit(ctx, "acct-7", &refunds.Refund{RefundID: "re-1"})
				if err != nil {
					return 0, err
				}
				return receipt.Attempts, nil
			}
			many := func(issued, attempts int) {
				t.Helper()
				var calls sync.WaitGroup
				for range 10 {
					calls.Go(func() {
						if n, err := submit(t.Context()); err != nil || n > attempts {
							t.Errorf("%d attempts: %v", n, err)
						}
					})
				}
				calls.Wait()
				i.set(func() {
					if i.issued != issued {
						t.Errorf("%d tokens issued, want %d", i.issued, issued)
					}
				})
			}
			many(1, 1)
			i.set(func() { i.revoked = true })
			many(2, 2)

			i.set(func() { i.revoked, i.lifetime = true, -1 }) // the next one has expired when it comes
			if _, err := submit(t.Context()); err != nil {
				t.Error(err)
			}
			i.set(func() { i.lifetime = 3600 })
			many(4, 1)

			i.set(func() { i.revoked, i.hang = true, make(chan struct{}) })
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if _, err := submit(ctx); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, refunds.ErrRejected) {
				t.Errorf("while the endpoint hangs: %v", err)
			}
			<-i.hang
			i.set(func() { i.hang = nil })
			if _, err := submit(t.Context()); err != nil {
				t.Errorf("when it is back: %v", err)
			}
		})
	}
}
