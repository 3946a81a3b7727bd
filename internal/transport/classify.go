package transport

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"syscall"
)

// failurePoint places an attempt that ended without an answer. It steers
// repetition and wording only: whether anything was sent is the evidence's to
// say.
func failurePoint(err error, e *Evidence, flooded bool) point {
	if proxy, ok := errors.AsType[*proxyRefusal](err); ok {
		if proxy.status == 407 {
			return proxyWantsLogin
		}
		return proxyRefused
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return hostNotFound
		}
		return hostLookupFailed
	}
	switch {
	case isCertificateError(err):
		return certificateRefused
	case !e.Traced:
		return transportFailed
	case !e.Connected:
		return connectFailed
	case flooded:
		return headerTooLarge
	case e.ResponseStarted && !isBroken(err):
		return answerGarbled
	}
	return connectionBroken
}

// isCertificateError finds the handshake failures that no repetition mends.
func isCertificateError(err error) bool {
	var (
		verification *tls.CertificateVerificationError
		record       tls.RecordHeaderError
		op           *net.OpError
		hostname     x509.HostnameError
		authority    x509.UnknownAuthorityError
		certificate  x509.CertificateInvalidError
	)
	return errors.As(err, &verification) || errors.As(err, &record) || errors.As(err, &op) && op.Op == "remote error" ||
		errors.As(err, &hostname) || errors.As(err, &authority) || errors.As(err, &certificate)
}

func isBroken(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET)
}
