// Package target is what the examples share: where their requests go, and how
// they talk to whoever runs them.
package target

import (
	"fmt"
	"io"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/sandbox"
)

// Settings names the environment variables of one area of the service.
type Settings struct {
	URL      string // the base URL
	Required []string
	Optional []string
}

// A Target is where requests go: the live service, or a sandbox of the
// program's own.
type Target struct {
	URL    string
	Engine *sandbox.Engine // nil when live

	values   map[string]string
	server   *sandbox.TCPServer
	insecure bool
}

// InsecureHTTP is the variable that allows http beyond this machine, as to a
// sandbox in another container, when it is 1.
const InsecureHTTP = "CARDDATA_INSECURE_HTTP"

// Open chooses the live service when the environment names it and the sandbox
// when the environment says nothing, and tells on stderr which. In between it
// fails: whoever set something means the live service, and a refund accepted by
// a sandbox instead would be a refund lost. A variable that is set and empty is
// something too, as a script leaves it whose own variable is unset.
func Open(stderr io.Writer, env func(string) (string, bool), s Settings) (*Target, error) {
	insecure, _ := env(InsecureHTTP)
	if insecure != "" && insecure != "0" && insecure != "1" {
		return nil, Usage("%s is neither 0 nor 1", InsecureHTTP)
	}
	required := slices.Concat([]string{s.URL}, s.Required)
	values := make(map[string]string)
	var missing []string
	anySet := false
	for _, name := range slices.Concat(required, s.Optional) {
		value, set := env(name)
		values[name] = value
		anySet = anySet || set
		if value == "" && slices.Contains(required, name) {
			missing = append(missing, name)
		}
	}
	switch {
	case !anySet:
		return openSandbox(stderr, required)
	case len(missing) > 0:
		return nil, Usage("missing or empty: %s (the live service needs %s; for the sandbox unset them all)",
			strings.Join(missing, ", "), strings.Join(required, ", "))
	}
	if u, err := url.Parse(values[s.URL]); err == nil && u.Host != "" {
		if u.Scheme == "http" && insecure != "1" && !isLocal(u.Hostname()) {
			return nil, Usage("%s is http to another machine; %s=1 allows that", s.URL, InsecureHTTP)
		}
		fmt.Fprintf(stderr, "live %s\n", printable(u.Host))
	}
	return &Target{URL: values[s.URL], values: values, insecure: insecure == "1"}, nil
}

func isLocal(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func openSandbox(stderr io.Writer, unset []string) (*Target, error) {
	engine := sandbox.New()
	server, err := engine.ListenTCP("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(stderr, "sandbox %s (not set: %s)\n", server.URL(), strings.Join(unset, ", "))
	values := make(map[string]string)
	for _, name := range unset {
		values[name] = "sandbox"
	}
	return &Target{URL: server.URL(), Engine: engine, values: values, server: server}, nil
}

// Live tells whether requests go to the live service.
func (t *Target) Live() bool { return t.server == nil }

// Value returns a variable; of a required one, in the sandbox, something that
// it accepts.
func (t *Target) Value(name string) string { return t.values[name] }

// Options returns the options that every client of t has, of whichever area: the
// packages share the type.
func (t *Target) Options() []bins.Option {
	if t.insecure {
		return []bins.Option{bins.WithInsecureHTTP()}
	}
	return nil
}

// Close ends the sandbox, if there is one. Closing twice does no harm.
func (t *Target) Close() {
	if !t.Live() {
		t.server.Close()
	}
}
