package surface_test

import (
	"go/parser"
	"go/token"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/proof/conformance/operations"
	"github.com/carddata/carddata-go/internal/proof/testkit"
)

// TestDocumentedDefaults compares the section "Defaults" of each package comment
// with what a client without options does.
func TestDocumentedDefaults(t *testing.T) {
	for i, pkg := range packages {
		t.Run(pkg, func(t *testing.T) {
			said := defaults(t, pkg)
			call := func(t *testing.T, f operations.RoundTripper, opts ...bins.Option) error {
				list, err := operations.New("https://service.example", operations.Plain(), append(opts, bins.WithHTTPClient(&http.Client{Transport: f}))...)
				if err != nil {
					t.Fatal(err)
				}
				_, err = list[i].Call(t.Context())
				return err
			}
			is := func(what, got string) {
				t.Helper()
				if said[what] != got {
					t.Errorf("%s: the documentation says %q, the client does %q", what, said[what], got)
				}
			}
			synctest.Test(t, func(t *testing.T) {
				attempts := 0
				call(t, func(r *http.Request) (*http.Response, error) {
					attempts++
					return testkit.Answer(http.StatusTooManyRequests, "")(r)
				})
				is("retries", strconv.Itoa(attempts-1))

				hang := func(r *http.Request) (*http.Response, error) {
					<-r.Context().Done()
					return nil, r.Context().Err()
				}
				began := time.Now()
				call(t, hang, bins.WithMaxRetries(0))
				is("attempt timeout", seconds(time.Since(began)))

				if said["call timeout"] == "none" {
					return
				}
				began = time.Now()
				call(t, hang, bins.WithMaxRetries(0), bins.WithAttemptTimeout(time.Hour))
				is("call timeout", seconds(time.Since(began)))
			})
		})
	}
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d.Seconds())) + " s" }

var defaultWords = map[string]*regexp.Regexp{
	"retries":         regexp.MustCompile(`(?i)retries: (\d+)|(\d+) retries`),
	"attempt timeout": regexp.MustCompile(`(?i)attempt timeout: (\d+ s)|an attempt takes at most (\d+ s)`),
	"call timeout":    regexp.MustCompile(`(?i)call timeout: (\d+ s|none)|a call (\d+ s|none)`),
}

// defaults reads what the section "# Defaults" of a package comment says.
func defaults(t *testing.T, pkg string) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, pkg, "doc.go"), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(file.Doc.Text(), "\n# Defaults\n")
	section, _, _ = strings.Cut(section, "\n# ")
	section = strings.Join(strings.Fields(section), " ")
	list := map[string]string{}
	for what, words := range defaultWords {
		if found := words.FindStringSubmatch(section); found != nil {
			list[what] = found[1] + found[2]
		}
	}
	return list
}
