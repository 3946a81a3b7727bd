// Package outside compares what the library says of refunds with the journal of a service
// behind real proxies: nginx and haproxy, as they come and with a rate limit. It holds
// tests only, which are skipped where these programs are not installed:
//
//	go test ./internal/proof/outside -v
package outside
