package console

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
)

//go:embed page.html
var page string

// policy lets the page run its own script and style and reach its own origin.
var policy = fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; connect-src 'self'; img-src data:; "+
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'", hash("script"), hash("style"))

func hash(element string) string {
	_, content, _ := strings.Cut(page, "<"+element+">")
	content, _, _ = strings.Cut(content, "</"+element+">")
	sum := sha256.Sum256([]byte(content))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

func servePage(w http.ResponseWriter, r *http.Request) {
	setHeader(w, "text/html; charset=utf-8")
	w.Write([]byte(page))
}
