package origin_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/conformance/operations"
	"github.com/carddata/carddata-go/refunds"
)

// selfSigned makes a certificate of a host, valid until a time.
func selfSigned(t *testing.T, host string, until time.Time) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: until.Add(-time.Hour), NotAfter: until, DNSNames: []string{host},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	if ip := net.ParseIP(host); ip != nil {
		template.DNSNames, template.IPAddresses = nil, []net.IP{ip}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// serveTLS counts connections and the requests that got through.
func serveTLS(t *testing.T, config *tls.Config) (base string, connections, requests *atomic.Int64) {
	connections, requests = new(atomic.Int64), new(atomic.Int64)
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		io.WriteString(w, `{"cards":[]}`)
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	s.TLS = config
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL, connections, requests
}

// TestTLS proves that a service which cannot be trusted gets no request, is not
// asked again, and can be told by the error's type.
func TestTLS(t *testing.T) {
	const here = "127.0.0.1"
	valid := time.Now().Add(time.Hour)
	is := func(target func(error) bool) func(error) bool {
		return func(err error) bool {
			_, verification := errors.AsType[*tls.CertificateVerificationError](err)
			return verification && target(err)
		}
	}
	for _, c := range []struct {
		name    string
		host    string
		until   time.Time
		trusted bool // the client trusts who signed
		config  *tls.Config
		is      func(error) bool
	}{
		{"untrusted", here, valid, false, &tls.Config{}, is(func(err error) bool {
			_, ok := errors.AsType[x509.UnknownAuthorityError](err)
			return ok
		})},
		{"wrong host name", "other.test", valid, true, &tls.Config{}, is(func(err error) bool {
			_, ok := errors.AsType[x509.HostnameError](err)
			return ok
		})},
		{"expired", here, time.Now().Add(-time.Minute), true, &tls.Config{}, is(func(err error) bool {
			invalid, ok := errors.AsType[x509.CertificateInvalidError](err)
			return ok && invalid.Reason == x509.Expired
		})},
		{"TLS 1.1", here, valid, true, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, func(err error) bool {
			alert, ok := errors.AsType[*net.OpError](err)
			return ok && alert.Op == "remote error"
		}},
		{"good", here, valid, true, &tls.Config{}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			pair, pool := selfSigned(t, c.host, c.until)
			c.config.Certificates = []tls.Certificate{pair}
			base, connections, requests := serveTLS(t, c.config)
			own := &http.Transport{TLSClientConfig: &tls.Config{}}
			if c.trusted {
				own.TLSClientConfig.RootCAs = pool
			}
			t.Cleanup(own.CloseIdleConnections)
			over := map[string][]bins.Option{
				"the caller's transport": {bins.WithRetryWait(0, 0), bins.WithHTTPClient(&http.Client{Transport: own})},
				// It trusts none of the certificates, but that is found out last.
				"its own transport": {bins.WithRetryWait(0, 0)},
			}
			if c.is == nil {
				delete(over, "its own transport")
			}
			for name, opts := range over {
				list, err := operations.New(base, operations.Plain(), opts...)
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range list {
					before := connections.Load()
					_, err := e.Call(t.Context())
					if c.is == nil {
						if err != nil {
							t.Errorf("%s over %s: %v", e.Name, name, err)
						}
						continue
					}
					if !errors.Is(err, bins.ErrNoResponse) || !c.is(err) {
						t.Errorf("%s over %s: %v does not tell the reason", e.Name, name, err)
					}
					if e.Name == "refund" && !errors.Is(err, refunds.ErrNotSent) {
						t.Errorf("%s over %s: %v, want ErrNotSent", e.Name, name, err)
					}
					if n := connections.Load() - before; n > 1 {
						t.Errorf("%s over %s connected %d times", e.Name, name, n)
					}
				}
			}
			if n := requests.Load(); n > 0 && c.is != nil || n == 0 && c.is == nil {
				t.Errorf("%d requests arrived", n)
			}
		})
	}
}
