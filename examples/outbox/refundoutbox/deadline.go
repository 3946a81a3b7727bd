package refundoutbox

import (
	"context"
	"net/http/httptrace"
	"time"
)

// withDeadline ends a request at the deadline, and keeps one that is late from
// leaving. A process can be frozen between the commit of its marker and the first byte
// of the request, for so long that others take it for dead, and somebody decides. So
// the last step before the network looks at the deadline once more: a timer may not
// have fired yet, and none does while the machine is suspended. It closes the
// connection of a request that is late, to which nothing was written then; the
// library counts the bytes of a connection, and reports the refund as not sent.
func withDeadline(ctx context.Context, deadline time.Time) (context.Context, context.CancelFunc) {
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			if now := time.Now(); late(deadline, now, now.Round(0)) {
				info.Conn.Close()
			}
		},
	})
	return context.WithDeadline(ctx, deadline)
}

// late goes by both clocks: the monotonic one stands still while the machine is
// suspended, and the wall clock can be set back.
func late(deadline, monotonic, wall time.Time) bool {
	return !monotonic.Before(deadline) || !wall.Before(deadline)
}
