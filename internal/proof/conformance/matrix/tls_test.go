package matrix

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/carddata/carddata-go/internal/proof/testkit/options"
)

// certificates are the rows of a service that cannot be trusted. It gets no request, is
// not asked again, and the error's type tells why.
func certificates() []matrixRow {
	row := func(point string, w world, why as) matrixRow {
		return matrixRow{point, w, fail(1, errNoAnswer, why), notSent(1, errNoAnswer, why), fail(1, errNoAnswer, why)}
	}
	return []matrixRow{
		row("certificate that nobody trusts", certificate("127.0.0.1", false, 0), func(err error) bool {
			_, ok := errors.AsType[x509.UnknownAuthorityError](err)
			return ok && isVerification(err)
		}),
		row("certificate of another host", certificate("localhost", true, 0), func(err error) bool {
			_, ok := errors.AsType[x509.HostnameError](err)
			return ok && isVerification(err)
		}),
		row("expired certificate", certificate("127.0.0.1", true, 100*365*24*time.Hour), func(err error) bool {
			invalid, ok := errors.AsType[x509.CertificateInvalidError](err)
			return ok && invalid.Reason == x509.Expired && isVerification(err)
		}),
	}
}

func isVerification(err error) bool {
	_, ok := errors.AsType[*tls.CertificateVerificationError](err)
	return ok
}

// An as is among what an error matches, by its type.
type as func(error) bool

func (as) Error() string { return "its type" }

// certificate is a world where the service shows the certificate of httptest, which is for
// 127.0.0.1, to a client whose clock is ahead.
func certificate(host string, trusted bool, ahead time.Duration) world {
	return func(t *testing.T) site {
		var connections atomic.Int64
		server := httptest.NewUnstartedServer(http.NotFoundHandler())
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				connections.Add(1)
			}
		}
		server.StartTLS()
		t.Cleanup(server.Close)
		config := &tls.Config{Time: func() time.Time { return time.Now().Add(ahead) }}
		if trusted {
			config.RootCAs = x509.NewCertPool()
			config.RootCAs.AddCert(server.Certificate())
		}
		_, port, err := net.SplitHostPort(server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		return site{base: "https://" + host + ":" + port, opts: []options.Option{options.WithTLSConfig(config)}, seen: func() int { return int(connections.Load()) }}
	}
}
