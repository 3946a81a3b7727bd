package transport

import (
	"bytes"
	"net/http"
	"strings"
)

// A response is what it contains. Many frameworks label everything as text/html, be it empty,
// a text or JSON, and many proxies label their pages as something else.

// isPage recognises a page in place of data: a login, block or error page of a proxy or gateway.
// It begins with a tag. Under a label of pages that is any tag, and under another one it is a tag
// of HTML, because a receipt or a content may be XML.
func isPage(h http.Header, body []byte) bool {
	start := startOf(body)
	return bytes.HasPrefix(start, []byte("<")) && (labelled(h, "text/html", "application/xhtml+xml") || beginsAsPage(start))
}

// labelled reports whether the Content-Type is one of these.
func labelled(h http.Header, mediaTypes ...string) bool {
	label, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	for _, mediaType := range mediaTypes {
		if strings.EqualFold(strings.TrimSpace(label), mediaType) {
			return true
		}
	}
	return false
}

// aStart is how much of a body shows whether it is a page.
const aStart = 512

// startOf is the start of a body, without blanks and byte order marks. In UTF-16, it drops the
// zero bytes of a start in ASCII.
func startOf(body []byte) []byte {
	start := bytes.TrimLeft(body, blank)
	if bytes.HasPrefix(start, []byte{0xfe, 0xff}) || bytes.HasPrefix(start, []byte{0xff, 0xfe}) {
		start = bytes.ReplaceAll(start[2:min(len(start), 2*aStart)], []byte{0}, nil)
		start = bytes.TrimLeft(start, blank)
	}
	return start[:min(len(start), aStart)]
}

// beginsAsPage reports whether the first tag is one of HTML. A declaration of XML may stand
// before it.
func beginsAsPage(start []byte) bool {
	if bytes.HasPrefix(start, []byte("<?xml")) {
		_, start, _ = bytes.Cut(start, []byte("?>"))
		start = bytes.TrimLeft(start, blank)
	}
	tag := strings.ToLower(string(start))
	if strings.HasPrefix(tag, "<!--") || strings.HasPrefix(tag, "<!doctype html") {
		return true
	}
	name := strings.TrimPrefix(tag, "<")
	end := strings.IndexFunc(name, func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') })
	if name == tag || end <= 0 || name[end] != '>' && !strings.ContainsRune(" \t\r\n/", rune(name[end])) {
		return false
	}
	return tagsOfPages[name[:end]]
}

// tagsOfPages are those with which pages begin, also such as gateways write by hand.
var tagsOfPages = map[string]bool{
	"html": true, "head": true, "body": true, "title": true, "meta": true, "link": true, "base": true, "script": true,
	"style": true, "noscript": true, "iframe": true, "div": true, "span": true, "p": true, "a": true, "b": true,
	"br": true, "hr": true, "h1": true, "h2": true, "h3": true, "center": true, "font": true, "table": true,
	"form": true, "img": true, "pre": true, "section": true, "main": true, "header": true, "strong": true,
}
