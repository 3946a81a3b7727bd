package fault

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
)

// A ProxyRefusal is the status by which a proxy refused to connect.
type ProxyRefusal int

func (ProxyRefusal) Error() string { return "the proxy refused to connect" }

// Is matches ErrNoResponse even if the condition is ErrForbidden.
func (ProxyRefusal) Is(target error) bool { return target == ErrNoResponse }

// endedVerdict says what ended the context of an attempt: its timeout, or the caller.
func endedVerdict(ctx context.Context) *Verdict {
	if context.Cause(ctx) == ErrTimeout {
		return AttemptTimedOut
	}
	return CallerEnded
}

// A Sighting is what was seen of an attempt that ended without a response.
type Sighting struct {
	Traced          bool // the HTTP transport reported its events
	Connected       bool // the request got a connection
	ResponseStarted bool
	Wrapped         bool // code of the caller stands around the transport
}

// JudgeError judges an attempt without a response, for the number of retries of a read
// and for the error's text. It must never decide whether a write is safe to retry: errors do
// not say what reached the wire. Only the evidence does.
func JudgeError(ctx context.Context, err error, seen Sighting) *Verdict {
	proxy, refusedByProxy := errors.AsType[ProxyRefusal](err)
	dns, unresolved := errors.AsType[*net.DNSError](err)
	switch {
	case ctx.Err() != nil:
		return endedVerdict(ctx)
	case errors.Is(err, ErrPassed): // by the wall clock alone
		return CallerEnded
	case errors.Is(err, ErrContextDropped):
		return contextDropped
	// Check the proxy first: its refusal looks like a failed connection.
	case refusedByProxy && proxy/100 == 4 && proxy != http.StatusRequestTimeout && proxy != http.StatusTooManyRequests:
		return proxyForbids
	case refusedByProxy:
		return proxyRefused
	case handshakeRefusal(err) != "":
		return handshakeFailed
	case unresolved && dns.IsNotFound:
		return hostNotFound
	case unresolved:
		return hostLookupFailed
	// Only the error itself explains a wrapper that fails after a response began.
	case !seen.Traced, seen.Wrapped && seen.ResponseStarted && !isBroken(err):
		return transportFailed
	case !seen.Connected:
		return connectFailed
	case seen.ResponseStarted && !isBroken(err):
		return garbledResponse
	}
	return connectionBroken
}

// handshakeRefusal says which side refused a TLS handshake, and why; "" if neither did. It
// covers the failures that another attempt would meet again: a certificate, a protocol or a
// cipher. A connection that breaks during the handshake is not one of them. The texts of TLS
// alerts are a closed list of crypto/tls. Other texts hold names, and are replaced.
func handshakeRefusal(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" {
		return "the other side refused the TLS handshake: " + strings.TrimPrefix(op.Err.Error(), "tls: ")
	}
	record, notTLS := errors.AsType[tls.RecordHeaderError](err)
	certificate, invalid := errors.AsType[x509.CertificateInvalidError](err)
	switch {
	case notTLS && string(record.RecordHeader[:]) == "HTTP/":
		return "the port speaks http and not https"
	case notTLS:
		return "the port does not speak TLS"
	case is[x509.UnknownAuthorityError](err):
		return "the certificate is not from an authority that this side trusts"
	case is[x509.HostnameError](err):
		return "the certificate is for another host name"
	case invalid && certificate.Reason == x509.Expired:
		return "the certificate has expired, or is not valid yet by this machine's clock"
	case invalid || is[*tls.CertificateVerificationError](err):
		return "the certificate was refused by this side"
	}
	return ""
}

// RefusedByCheck marks the refusal of a caller's tls.Config check as a refused certificate, which
// another attempt would meet again. The handshake returns the plain error of the check, which
// looks like any other error.
func RefusedByCheck(err error) error {
	if err == nil {
		return nil
	}
	return NewError("no response: the tls.Config's own check refused the connection, its error is the Cause", &tls.CertificateVerificationError{Err: err}, err)
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// isBroken distinguishes a connection that ended within a response from a peer that does not
// speak HTTP.
func isBroken(err error) bool {
	return is[*net.OpError](err) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET)
}
