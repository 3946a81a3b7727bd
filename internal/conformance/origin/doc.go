// Package origin proves where requests go and what they carry: redirects, cookies,
// TLS, and values that could add a header or leave their path segment.
package origin
