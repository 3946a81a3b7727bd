package bins

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
)

// failsAll tells whether every further request would meet the same failure.
func failsAll(ctx context.Context, err error) bool {
	for _, condition := range []error{
		ErrUnauthorized, ErrForbidden, ErrNotFound, ErrRedirect, ErrInvalidArgument, ErrCredential,
	} {
		if errors.Is(err, condition) {
			return true
		}
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		return true
	}
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	return untrusted || ctx.Err() != nil
}
