package console

import (
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

var (
	errHost   = errors.New("the page is served under its IP address and localhost only")
	errOrigin = errors.New("web pages of other origins are not served")
)

// admit refuses what web pages elsewhere send: a browser lets any page send
// requests to this machine, and read the answers too if its name was made to
// resolve here. So a request from a page has to come from this one, and the page
// answers under no name that others could own.
func (c *Console) admit(r *http.Request, own, isPage bool) error {
	known := c.knows(r.Host)
	if own && !known {
		return errHost
	}
	if origin := r.Header["Origin"]; origin != nil && (!known || len(origin) != 1 || origin[0] != "http://"+r.Host) {
		return errOrigin
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return nil
	}
	// Whoever follows a link to the page has left the other one.
	if isPage && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document" {
		return nil
	}
	return errOrigin
}

func (c *Console) knows(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = strings.Trim(host, "[]")
	}
	ip, err := netip.ParseAddr(name)
	return name == "localhost" || err == nil && (c.remote || ip.IsLoopback())
}
