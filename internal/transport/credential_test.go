package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

var unusableTokens = map[string]string{
	"empty": "", "space": " ", "leading space": " secret", "trailing space": "secret ", "inner space": "sec ret", "tab": "sec\tret",
	"CR": "secret\r", "LF": "secret\nX: y", "NUL": "secret\x00", "DEL": "secret\x7f", "non-ASCII": "sécret", "no UTF-8": "secret\xff",
	"beyond 8 KiB": "secret" + strings.Repeat("a", maxToken),
}

func TestUnusableCredential(t *testing.T) {
	for name, token := range unusableTokens {
		_, err := New(kind(), "https://service.test", []Option{WithTokenSource(StaticToken(token))})
		if !errors.Is(err, ErrInvalidArgument) || strings.Contains(fmt.Sprintf("%+v", err), "secret") {
			t.Errorf("%s: %v", name, err)
		}
		network := serve(status(200))
		c := newClient(t, network, WithTokenSource(TokenFunc(func(context.Context) (string, error) { return token, nil })))
		r := c.get(t.Context())
		check(t, r.err(), ErrCredential)
		if text := Describe("test", r.Failure); strings.Contains(text, "secret") || !strings.Contains(text, "token source") {
			t.Errorf("%s from a source: %s", name, text)
		}
		if network.requests() != 0 || r.Outcome != OutcomeNotSent {
			t.Errorf("%s was sent: %v", name, r.Outcome)
		}
	}
}

func TestFailingSource(t *testing.T) {
	cause := errors.New("secret of the vault")
	c := newClient(t, serve(status(200)), WithTokenSource(TokenFunc(func(context.Context) (string, error) { return "", cause })))
	r := c.Do(t.Context(), write(), nil)
	check(t, r.err(), ErrCredential, cause)
	attempts(t, r, 0)
	if text := Describe("test", r.Failure); strings.Contains(text, "secret") {
		t.Error(text)
	}
}

func TestMerchantID(t *testing.T) {
	for _, id := range []string{"m", "m-1_2.3:4", strings.Repeat("m", maxMerchantID), "0"} {
		if err := CheckMerchantID(id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}
	for name, id := range unusableTokens {
		if err := CheckMerchantID(id); !errors.Is(err, ErrInvalidArgument) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, id := range []string{"a,b", strings.Repeat("m", maxMerchantID+1)} {
		if err := CheckMerchantID(id); !errors.Is(err, ErrInvalidArgument) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

// FuzzCredential proves that what is accepted arrives byte for byte, in one
// header of one value.
func FuzzCredential(f *testing.F) {
	for _, token := range unusableTokens {
		f.Add(token)
	}
	f.Add("secret")
	f.Add(strings.Repeat("a", maxToken))
	arrived := make(chan []string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { arrived <- r.Header["Authorization"] }))
	f.Cleanup(server.Close)
	f.Fuzz(func(t *testing.T, token string) {
		c, err := New(kind(), server.URL, []Option{WithTokenSource(StaticToken(token)), WithHTTPClient(server.Client())})
		if err != nil {
			return
		}
		if r := c.get(t.Context()); r.Failure != nil {
			t.Fatal(Describe("test", r.Failure))
		}
		if got := <-arrived; len(got) != 1 || got[0] != "Bearer "+token {
			t.Errorf("%q arrived as %q", token, got)
		}
	})
}

// TestSecretsHide proves that fmt cannot reach what sources and options hold.
func TestSecretsHide(t *testing.T) {
	for name, v := range map[string]any{
		"token": StaticToken("secret"), "option": WithTokenSource(StaticToken("secret")), "header": WithHeader("X-Key", "secret"),
		"client": newClient(t, serve(status(200)), WithTokenSource(StaticToken("secret")), WithHeader("X-Key", "secret")),
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
			if text := fmt.Sprintf(verb, v); strings.Contains(text, "secret") {
				t.Errorf("%s with %s: %s", name, verb, text)
			}
		}
	}
	if token, err := StaticToken("secret").Token(t.Context()); token != "secret" || err != nil {
		t.Errorf("%q, %v", token, err)
	}
	if _, err := TokenFunc(func(context.Context) (string, error) { return "", io.EOF }).Token(t.Context()); err != io.EOF {
		t.Error(err)
	}
}
