package matrix

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/carddata/carddata-go/bins"
)

// certificates are the rows of a service that cannot be trusted. It gets no request, is
// not asked again, and the error's type tells why.
func certificates() []matrixRow {
	row := func(point string, w world, why as) matrixRow {
		return matrixRow{point, w, fail(1, errNoAnswer, why), notSent(1, errNoAnswer, why), fail(1, errNoAnswer, why)}
	}
	return []matrixRow{
		row("certificate that nobody trusts", certificate("127.0.0.1", time.Hour, false), func(err error) bool {
			_, ok := errors.AsType[x509.UnknownAuthorityError](err)
			return ok && isVerification(err)
		}),
		row("certificate of another host", certificate("other.test", time.Hour, true), func(err error) bool {
			_, ok := errors.AsType[x509.HostnameError](err)
			return ok && isVerification(err)
		}),
		row("expired certificate", certificate("127.0.0.1", -time.Minute, true), func(err error) bool {
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

// certificate is a world where the service shows a certificate of its own making.
func certificate(host string, lifetime time.Duration, trusted bool) world {
	return func(t *testing.T) site {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		until := time.Now().Add(lifetime)
		template := &x509.Certificate{
			SerialNumber: big.NewInt(1), NotBefore: until.Add(-2 * time.Hour), NotAfter: until, DNSNames: []string{host},
			IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		}
		if ip := net.ParseIP(host); ip != nil {
			template.DNSNames, template.IPAddresses = nil, []net.IP{ip}
		}
		der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		config := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
		s := connection("https", func(c *net.TCPConn) {
			tls.Server(c, config).Handshake()
			c.Close()
		})(t)
		if trusted {
			pool, parsed := x509.NewCertPool(), (*x509.Certificate)(nil)
			if parsed, err = x509.ParseCertificate(der); err != nil {
				t.Fatal(err)
			}
			pool.AddCert(parsed)
			s.opts = append(s.opts, bins.WithTLSConfig(&tls.Config{RootCAs: pool}))
		}
		return s
	}
}
