package bins_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/carddata/carddata-go/bins"
)

// A certificate that this side refuses ends the lookup at once, whoever refused it. As an
// outage it would be waited out.
func TestLookupAllEndsAtARefusedCertificate(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	pinned := errors.New("another key")
	for name, config := range map[string]*tls.Config{
		"untrusted":        {},
		"connection check": {InsecureSkipVerify: true, VerifyConnection: func(tls.ConnectionState) error { return pinned }},
		"certificate check": {InsecureSkipVerify: true, VerifyPeerCertificate: func([][]byte, [][]*x509.Certificate) error {
			return pinned
		}},
	} {
		client, err := bins.NewClient(server.URL, bins.StaticToken("k"), bins.WithTLSConfig(config))
		if err != nil {
			t.Fatal(err)
		}
		for r, err := range client.LookupAll(t.Context(), numbered(10), bins.BulkOptions{GiveUpAfter: time.Nanosecond}) {
			if r.Index != -1 && err == nil || !errors.Is(err, bins.ErrNoResponse) || errors.Is(err, bins.ErrSuspended) || errors.Is(err, pinned) != (name != "untrusted") {
				t.Fatalf("%s: %v, %v", name, r, err)
			}
		}
	}
}
