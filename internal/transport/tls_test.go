package transport

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
)

// If the caller's tls.Config has a certificate or a check of certificates, each connection
// makes a full handshake: since the last one, a pin may have been revoked, or the client
// certificate renewed. Otherwise a connection resumes the session of the one before.
func TestSessionsAreResumed(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		if r.TLS.DidResume {
			w.Header().Set("X-Request-Id", "resumed")
		}
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	server.Config.ErrorLog = quiet
	server.StartTLS()
	defer server.Close()
	pinned, shown := true, 0
	check := func([][]byte, [][]*x509.Certificate) error {
		if !pinned {
			return errors.New("revoked")
		}
		return nil
	}
	certificate := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		shown++
		return &server.TLS.Certificates[0], nil
	}
	for name, test := range map[string]struct {
		config  *tls.Config
		resumes bool
	}{
		"no opinion":                           {&tls.Config{}, true},
		"a check that also runs on resumption": {&tls.Config{VerifyConnection: func(tls.ConnectionState) error { return nil }}, true},
		"a check":                              {&tls.Config{VerifyPeerCertificate: check}, false},
		"a certificate":                        {&tls.Config{Certificates: server.TLS.Certificates}, false},
		"a renewed certificate":                {&tls.Config{GetClientCertificate: certificate}, false},
		"a cache of the caller's":              {&tls.Config{VerifyPeerCertificate: check, ClientSessionCache: tls.NewLRUClientSessionCache(1)}, true},
	} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			test.config.InsecureSkipVerify, test.config.MaxVersion = true, version
			c, err := New(testService(), server.URL, []Option{WithTLSConfig(test.config), WithMaxRetries(0)})
			if err != nil {
				t.Fatal(err)
			}
			pinned, shown = true, 0
			var last Result
			for range 3 {
				if last = c.get(t.Context()); last.Failure != nil {
					t.Fatal(name, last.err())
				}
			}
			if resumed := last.RequestID == "resumed"; resumed != test.resumes {
				t.Errorf("%s, version %x: resumed %t", name, version, resumed)
			}
			if name == "a renewed certificate" && shown != 3 {
				t.Errorf("version %x: the certificate was asked for %d times", version, shown)
			}
			pinned = false
			if refused := c.get(t.Context()).Failure != nil; refused != (name == "a check") {
				t.Errorf("%s, version %x: a revoked pin is refused: %t", name, version, refused)
			}
		}
	}
}
