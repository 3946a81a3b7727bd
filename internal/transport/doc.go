// Package transport makes a call: one operation that a user of the module asked for, with its
// attempts, the waits between them, and its log.
//
//	bins, refunds, updater      a Call: method, path, body, and whether it is a Write
//	       │         ▲
//	       ▼         │ Result: a response, or a Failure; Outcome and Evidence
//	Client.Do ───────┤                                                    call.go
//	       │         │
//	       ▼         │
//	┌ go-retryablehttp.Client.Do ◄──────────────────┐
//	│       │  rewinds the body                     │ sleeps for invocation.wait
//	│       ▼                                       │
//	│  http.Client.Do   follows redirects as        │
//	│       │           checkRedirect allows        │
//	│       ▼                                       │
//	│  invocation.RoundTrip                         │                   attempt.go
//	│       │  prepare: token, throttle, header     │    auth, limit; header.go
//	│       │  send: one exchange                   │               wire; clock.go
//	│       │  receive: bounded body, or a stream   │         buffer.go stream.go
//	│       │  verdict: how the attempt ended       │                        fault
//	│       ▼                                       │
//	└► invocation.shouldRetry ──────────────────────┘                     retry.go
//
// A call makes one invocation, which lives as long as the call. The invocation is the
// RoundTripper that makes the attempts, and also the policy that decides between them.
//
// It does not know the services: bins, refunds and updater tell it what to send and what it may
// repeat. A new operation is a Call in the package of its endpoint; nothing here has to change. An
// option is in options.go, and what is logged in log.go.
package transport
