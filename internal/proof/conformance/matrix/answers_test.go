package matrix

import (
	"context"
	"io"
	"net"
	"strconv"
	"strings"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/fault"
	"github.com/carddata/carddata-go/internal/proof/testkit/options"
	"github.com/carddata/carddata-go/updater"
)

const (
	head    = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	chunked = head + "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"car\r\n"
	page    = "<!doctype html><html><body>Sign in</body></html>"
)

// answers are the rows of answers that say more than a status. A refund with a
// 2xx status is accepted, also where its body broke off.
var answers = []matrixRow{
	{"200", wire(answer(200, cardsJSON)), ok(1), accepted(1), ok(1)},
	{"200 after 1xx", wire(oneByOne("HTTP/1.1 100 Continue\r\n\r\n", "HTTP/1.1 102 Processing\r\n\r\n", early, head+"Content-Length: "+length(cardsJSON)+"\r\n\r\n", cardsJSON)), ok(1), accepted(1), ok(1)},
	{"201", wire(answer(201, cardsJSON)), ok(1), accepted(1), fail(1, errBadResponse)},
	{"204", wire(say("HTTP/1.1 204 No Content\r\n\r\n")), fail(2, errBadResponse), accepted(1), fail(1, updater.ErrNotReady)},
	{"206 that was not asked for", wire(answer(206, cardsJSON)), ok(1), accepted(1), fail(1, errBadResponse)},
	{"101", wire(say("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")), fail(1, errBadResponse), unknown(1, errBadResponse), fail(1, errBadResponse)},

	{"body shorter than announced", wire(sayAndClose(head + "Content-Length: 500\r\n\r\n{\"car")),
		fail(4, errBadResponse, io.ErrUnexpectedEOF), accepted(1, errBadResponse, io.ErrUnexpectedEOF), fail(1, errBadResponse, io.ErrUnexpectedEOF)},
	{"chunks without an end", wire(sayAndClose(chunked)),
		fail(4, errBadResponse, io.ErrUnexpectedEOF), accepted(1, errBadResponse, io.ErrUnexpectedEOF), fail(1, errBadResponse, io.ErrUnexpectedEOF)},
	{"chunk that is no chunk", wire(sayAndClose(chunked + "zz\r\n")), fail(4, errBadResponse), accepted(1, errBadResponse), fail(1, errBadResponse)},
	{"body ended by the connection", wire(sayAndClose(head + "\r\n" + cardsJSON)), ok(1), accepted(1), ok(1)},
	{"body cut by the connection", wire(sayAndClose(head + "\r\n" + cardsJSON[:20])), fail(2, errBadResponse), accepted(1), ok(1)},
	{"body longer than announced", wire(sayAndClose(head + "Connection: close\r\nContent-Length: " + length(cardsJSON) + "\r\n\r\n" + cardsJSON + "}}}")),
		ok(1), accepted(1), ok(1)},

	{"not JSON", wire(answer(200, "cards: none")), fail(2, errBadResponse), accepted(1), ok(1)},
	{"JSON of another type", wire(answer(200, `{"cards":{}}`)), fail(2, errBadResponse), accepted(1), ok(1)},
	{"not JSON, then JSON", wire(in(answer(200, "{"), answer(200, cardsJSON))), ok(2), accepted(1), ok(1)},
	{"HTML", wire(answer(200, page)), fail(1, errBadResponse), unknown(1, errBadResponse), fail(1, errBadResponse)},
	{"body of more than 8 MiB", wire(answer(200, cardsJSON+strings.Repeat(" ", 8<<20))), fail(1, errBadResponse), accepted(1, errBadResponse), ok(1)},

	// Only lookups ask for a content encoding.
	{"gzip", wire(answer(200, zipped(cardsJSON), "Content-Encoding: gzip")), ok(1), accepted(1, errBadResponse), fail(1, errBadResponse)},
	{"gzip, cut off", wire(answer(200, zipped(cardsJSON)[:40], "Content-Encoding: gzip")),
		fail(4, errBadResponse, io.ErrUnexpectedEOF), accepted(1, errBadResponse), fail(1, errBadResponse)},
	{"gzip, corrupt", wire(answer(200, corrupted(zipped(cardsJSON)), "Content-Encoding: gzip")), fail(2, errBadResponse), accepted(1, errBadResponse), fail(1, errBadResponse)},
	{"unknown encoding", wire(answer(200, cardsJSON, "Content-Encoding: br")), fail(1, errBadResponse), accepted(1, errBadResponse), fail(1, errBadResponse)},

	// A lookup and a refund follow no redirect, a download one within its origin. A refund may have been processed where a
	// redirect leads to another path.
	{"302 within the origin", wire(in(answer(302, "", "Location: /moved"), answer(200, cardsJSON))), fail(1, fault.ErrRedirect), unknown(1, fault.ErrRedirect), ok(2)},
	{"302 to another host", status(302, "Location: http://other.test/"), fail(1, fault.ErrRedirect), unknown(1, fault.ErrRedirect), fail(1, fault.ErrRedirect)},
	{"307 to another path", wire(in(answer(307, "", "Location: /moved"), answer(200, cardsJSON))), fail(1, fault.ErrRedirect), unknown(1, fault.ErrRedirect), ok(2)},
	{"307 to nowhere", status(307), fail(1, fault.ErrRedirect), rejected(1, fault.ErrRedirect), fail(1, fault.ErrRedirect)},
	{"redirects in a circle", status(302, "Location: /moved"), fail(1, fault.ErrRedirect), unknown(1, fault.ErrRedirect), fail(6, fault.ErrRedirect)},

	{"401, then accepted", wire(in(answer(401, ""), answer(200, cardsJSON)), renewing), ok(2), accepted(2), ok(2)},
	{"401 for ever", wire(answer(401, ""), renewing), fail(2, bins.ErrUnauthorized), rejected(2, bins.ErrUnauthorized), fail(2, bins.ErrUnauthorized)},
	{"401, no newer token", wire(answer(401, ""), source(sameToken)), fail(1, bins.ErrUnauthorized), rejected(1, bins.ErrUnauthorized), fail(1, bins.ErrUnauthorized)},
	{"503, then accepted", wire(in(answer(503, ""), answer(200, cardsJSON))), ok(2), unknown(1, bins.ErrServer), ok(2)},
	{"429, then accepted", wire(in(answer(429, ""), answer(200, cardsJSON))), ok(2), unknown(1, bins.ErrRateLimited), ok(2)},
	{"429 of a limiter, then accepted", wire(in(answer(429, "", signature), answer(200, cardsJSON))), ok(2), accepted(2), ok(2)},
	{"429 of a limiter", status(429, signature), fail(4, bins.ErrRateLimited), rejected(3, bins.ErrRateLimited), fail(4, bins.ErrRateLimited)},
	{"429 of a limiter, then reset", wire(in(answer(429, "", signature, "Connection: close"), reset)), fail(4, errNoAnswer), unknown(2, errNoAnswer), fail(4, errNoAnswer)},
	{"429 of a limiter, then 400", wire(in(answer(429, "", signature), answer(400, ""))), fail(2, bins.ErrBadRequest), rejected(2, bins.ErrBadRequest), fail(2, bins.ErrBadRequest)},
	{"429, unreadable wait", status(429, "Retry-After: soon"), fail(4, bins.ErrRateLimited), unknown(1, bins.ErrRateLimited), fail(4, bins.ErrRateLimited)},
	{"429, wait in the past", status(429, "Retry-After: Mon, 01 Jan 2001 00:00:00 GMT"), fail(4, bins.ErrRateLimited), rejected(3, bins.ErrRateLimited), fail(4, bins.ErrRateLimited)},
	{"429, wait beyond a minute", status(429, "Retry-After: 61"), fail(1, bins.ErrRateLimited), rejected(1, bins.ErrRateLimited), fail(1, bins.ErrRateLimited)},
	{"503, wait beyond a minute", status(503, "Retry-After: 9223372037"), fail(1, bins.ErrServer), unknown(1, bins.ErrServer), fail(1, bins.ErrServer)},
	{"no retries wanted", wire(answer(429, "", signature), with(options.WithMaxRetries(0))), fail(1, bins.ErrRateLimited), rejected(1, bins.ErrRateLimited), fail(1, bins.ErrRateLimited)},
}

// signature is by what a limiter signs a 429.
const signature = "RateLimit-Remaining: 0"

func corrupted(zipped string) string {
	b := []byte(zipped)
	b[len(b)/2] ^= 0xff
	b[len(b)-6] ^= 0xff // the checksum
	return string(b)
}

// oneByOne writes the parts with a write each.
func oneByOne(parts ...string) script {
	return func(c *net.TCPConn, n int) {
		for _, part := range parts {
			say(part)(c, n)
		}
	}
}

func length(body string) string { return strconv.Itoa(len(body)) }

func sameToken(context.Context) (string, error) { return "token", nil }
