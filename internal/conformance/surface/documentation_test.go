package surface_test

import (
	"go/parser"
	"go/token"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/conformance/operations"
)

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	declaredName  = regexp.MustCompile(`(?m)^(?:func|var|type|const) (\w+)|^func \([^)]*\) (\w+)`)
	mentionedName = regexp.MustCompile(`(?:^|[^.\w])(?:(bins|refunds|updater)\.([A-Z]\w*)|((?:With|Err)[A-Z]\w*))`)
)

// TestReadmeNames proves that the README mentions no name that the packages do
// not export.
func TestReadmeNames(t *testing.T) {
	exports := map[string][]string{}
	var anywhere []string
	for _, pkg := range packages {
		for _, found := range declaredName.FindAllStringSubmatch(listing(t, filepath.Join("..", "..", "..", pkg)), -1) {
			exports[pkg] = append(exports[pkg], found[1]+found[2])
		}
		anywhere = append(anywhere, exports[pkg]...)
	}
	for _, found := range mentionedName.FindAllStringSubmatch(readme(t), -1) {
		if found[1] != "" && !slices.Contains(exports[found[1]], found[2]) || found[3] != "" && !slices.Contains(anywhere, found[3]) {
			t.Errorf("the README mentions %s, which there is not", found[0])
		}
	}
}

// TestReadmeSize keeps the README an introduction: details belong into the
// documentation of the packages.
func TestReadmeSize(t *testing.T) {
	if size := len(readme(t)); size > 12<<10 {
		t.Errorf("the README has %d bytes, want at most 12 KiB", size)
	}
}

// A respond function is the transport of a client whose defaults are measured.
type respond func(*http.Request) (*http.Response, error)

func (f respond) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestDocumentedDefaults compares the section "Defaults" of each package comment
// with what a client without options does.
func TestDocumentedDefaults(t *testing.T) {
	for i, pkg := range packages {
		t.Run(pkg, func(t *testing.T) {
			said := defaults(t, pkg)
			call := func(t *testing.T, f respond, opts ...bins.Option) error {
				list, err := operations.New("https://service.example", operations.Plain(), append(opts, bins.WithHTTPClient(&http.Client{Transport: f}))...)
				if err != nil {
					t.Fatal(err)
				}
				_, err = list[i].Call(t.Context())
				return err
			}
			is := func(what, got string) {
				t.Helper()
				if want := said[what]; want != got && !strings.HasPrefix(want, got+" ") && !strings.HasPrefix(want, got+",") {
					t.Errorf("%s: the documentation says %q, the client does %q", what, want, got)
				}
			}
			synctest.Test(t, func(t *testing.T) {
				attempts := 0
				call(t, func(*http.Request) (*http.Response, error) {
					attempts++
					return response(http.StatusTooManyRequests, strings.NewReader("")), nil
				})
				is("Retries", strconv.Itoa(attempts-1))

				hang := func(r *http.Request) (*http.Response, error) {
					<-r.Context().Done()
					return nil, r.Context().Err()
				}
				began := time.Now()
				call(t, hang, bins.WithMaxRetries(0))
				is("Attempt timeout", seconds(time.Since(began)))

				if strings.HasPrefix(said["Call timeout"], "none") {
					return
				}
				began = time.Now()
				call(t, hang, bins.WithMaxRetries(0), bins.WithAttemptTimeout(time.Hour))
				is("Call timeout", seconds(time.Since(began)))
			})
		})
	}
}

func response(status int, body io.Reader) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(body), ContentLength: -1}
}

func seconds(d time.Duration) string { return strconv.Itoa(int(d.Seconds())) + " s" }

// defaults reads the list under "# Defaults" in a package comment: "  - Name: value".
func defaults(t *testing.T, pkg string) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", "..", pkg, "doc.go"), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(file.Doc.Text(), "\n# Defaults\n")
	if !found {
		t.Fatalf("the comment of package %s has no section Defaults", pkg)
	}
	section, _, _ = strings.Cut(section, "\n# ")
	list := map[string]string{}
	for item := range strings.SplitSeq(section, "\n  - ") {
		name, value, _ := strings.Cut(item, ": ")
		list[strings.TrimSpace(name)] = value
	}
	return list
}
