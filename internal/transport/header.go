package transport

import (
	"maps"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/carddata/carddata-go/internal/auth"
)

// header makes the header of an attempt. It does not use the header that http.Client copied
// from an earlier request or for a redirect. So the token is fresh, and another host gets
// only the harmless headers.
func (inv *invocation) header(a *attempt) http.Header {
	h := make(http.Header, 8)
	h["User-Agent"] = []string{strings.TrimSpace(inv.settings.UserAgent + library())}
	if inv.call.Headers != nil {
		inv.call.Headers(h)
	}
	if a.away {
		maps.DeleteFunc(h, func(name string, _ []string) bool { return !harmless[name] })
	} else {
		for name, value := range inv.settings.headers {
			h[name] = []string{value()}
		}
	}
	if a.token != "" {
		h["Authorization"] = []string{"Bearer " + a.token}
	}
	return h
}

// JSONHeaders sets the headers of a call that sends and reads JSON.
func JSONHeaders(h http.Header) {
	values := []string{"application/json", "application/json"} // one allocation for both
	h["Content-Type"], h["Accept"] = values[:1:1], values[1:]
}

// harmless headers may go to another host and may be repeated in a log. Any other header may
// be a credential.
var harmless = map[string]bool{
	"Accept": true, "Accept-Encoding": true, "Content-Type": true, "If-None-Match": true, "If-Modified-Since": true, "If-Range": true, "Range": true, "User-Agent": true,
}

// reserved headers follow from the call, and WithHeader refuses them. With a caller's
// Content-Length or Transfer-Encoding, a proxy and the service could disagree about the end
// of the request.
var reserved = map[string]bool{
	"Accept-Encoding": true, "Connection": true, "Content-Length": true, "Content-Type": true, "Host": true,
	"Range": true, "If-Range": true, "Trailer": true, "Transfer-Encoding": true, "User-Agent": true, "X-Merchant-Id": true,
}

// isHeaderValue also refuses a value that net/http would trim.
func isHeaderValue(value string) bool {
	return strings.Trim(value, " \t") == value && auth.IsVisible(strings.NewReplacer(" ", "", "\t", "").Replace(value))
}

// library names this module and the version that the program was built with. It begins with a
// space, so that a call without a product name allocates no string.
var library = sync.OnceValue(func() string {
	version := "devel"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == "github.com/carddata/carddata-go" && module.Version != "" && module.Version[0] == 'v' {
				version = module.Version
			}
		}
	}
	return " carddata-go/" + version + " " + runtime.Version()
})
