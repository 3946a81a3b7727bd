// Package scale holds the tests of what the library promises at size: requests
// needed, memory, pace. With CI_ALL=1 each runs at a size that suits every change; with
//
//	CI_ALL=1 go test ./internal/proof/scale -v -timeout 30m -args -full
//
// they run at full size and print what they measured.
package scale
