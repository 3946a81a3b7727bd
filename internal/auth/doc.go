// Package auth knows where a bearer token comes from, and what a usable one is.
//
//   - source.go: a [Source] is static, a function, or an own type of the caller. [NewSource]
//     asks it one call at a time. [Ask] gets a token from it, or the verdict on a source that
//     fails.
//   - cached.go: [Cached] keeps a token, renews it before it expires, and drops one that was
//     refused.
//
// It knows no request: whether a token is sent, and whether a 401 is retried with another one,
// is decided in transport.
package auth
