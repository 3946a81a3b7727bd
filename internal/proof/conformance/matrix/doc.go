// Package matrix proves, for everything that can become of a request, how often each
// operation sends it, what its error says, and what is known of a refund.
package matrix
