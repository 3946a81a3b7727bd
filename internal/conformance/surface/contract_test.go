package surface_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/testkit"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/updater"
)

// fields are the leaves of a record by dotted path, with "[]" after arrays, and
// the type of each as the interface calls it.
type fields map[string]string

// documented reads testdata/fields.md, the interface's own field tables, by
// section. The tables do not nest, so lead-in lines say where each belongs.
func documented(t *testing.T) map[string]fields {
	t.Helper()
	text, err := os.ReadFile("testdata/fields.md")
	if err != nil {
		t.Fatal(err)
	}
	sections := make(map[string]fields)
	for part := range strings.SplitSeq(string(text), "\n### ") {
		title, rest, _ := strings.Cut(part, "\n")
		found := make(fields)
		prefix := ""
		for line := range strings.Lines(rest) {
			prefix = readLine(t, found, prefix, strings.TrimSpace(line))
		}
		if len(found) > 0 {
			sections[title] = found
		}
	}
	return sections
}

var (
	itemsLine    = regexp.MustCompile(`^Top-level field (\w+): array of result items, or null\. Each item has:$`)
	tableLead    = regexp.MustCompile(`^Fields of (data\.card):$`)
	elementsLine = regexp.MustCompile(`^Elements of (\w+): (.+)\.$`)
	proseLine    = regexp.MustCompile(`^Fields of (cost\.interchange): (.+), and three cap objects named (\w+), (\w+) and (\w+)\. Each cap object has the string fields (.+)\.$`)
	typedName    = regexp.MustCompile(`^(\w+) \((string|boolean|integer)\)$`)
	row          = regexp.MustCompile(`^\| ([\w.\[\]]+) \| (string|boolean|integer|object|array of objects)\b([^|]*)\|`)
)

// readLine adds what a line documents, and returns the prefix of the rows below.
func readLine(t *testing.T, found fields, prefix, line string) string {
	t.Helper()
	typed := func(prefix, list string) {
		for name := range strings.SplitSeq(list, ", ") {
			m := typedName.FindStringSubmatch(name)
			if m == nil {
				t.Fatalf("fields.md: %q is no name with a type", name)
			}
			found[prefix+m[1]] = m[2]
		}
	}
	const card = "cards[].data.card."
	if m := itemsLine.FindStringSubmatch(line); m != nil {
		return m[1] + "[]."
	} else if tableLead.MatchString(line) {
		return card
	} else if m := elementsLine.FindStringSubmatch(line); m != nil {
		typed(card+m[1]+"[].", m[2])
	} else if m := proseLine.FindStringSubmatch(line); m != nil {
		inside := card + m[1] + "."
		typed(inside, m[2])
		for _, object := range m[3:6] {
			for name := range strings.SplitSeq(m[6], ", ") {
				found[inside+object+"."+name] = "string"
			}
		}
	} else if m := row.FindStringSubmatch(line); m != nil {
		// Containers are documented by their members.
		container := m[2] == "array of objects" || strings.Contains(m[3], "holds one object") || strings.Contains(m[3], "fields below")
		if !container {
			found[prefix+m[1]] = m[2]
		}
	} else if strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "| Field |") && !strings.HasPrefix(line, "|---") {
		t.Fatalf("fields.md: a row that cannot be read: %s", line)
	}
	return prefix
}

// declared lists the leaves of a Go type.
func declared(t *testing.T, found fields, path string, of reflect.Type) {
	t.Helper()
	switch of {
	case reflect.TypeFor[bins.Identifier]():
		found[path] = "string"
		return
	case reflect.TypeFor[bins.Optional[bool]](), reflect.TypeFor[*bool]():
		found[path] = "boolean"
		return
	case reflect.TypeFor[bins.Optional[int64]](), reflect.TypeFor[*int64]():
		found[path] = "integer"
		return
	case reflect.TypeFor[json.RawMessage](), reflect.TypeFor[map[string]any]():
		found[path] = "object"
		return
	}
	switch of.Kind() {
	case reflect.String:
		found[path] = "string"
	case reflect.Pointer:
		declared(t, found, path, of.Elem())
	case reflect.Slice:
		declared(t, found, path+"[]", of.Elem())
	case reflect.Struct:
		for field := range of.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			switch {
			case name == "-", !field.IsExported():
			case name == "":
				t.Errorf("%s.%s has no JSON name", of, field.Name)
			default:
				declared(t, found, strings.TrimPrefix(path+"."+name, "."), field.Type)
			}
		}
	default:
		// Neither a bare bool nor a bare int64 can tell null from false and 0.
		t.Errorf("%s has type %s", path, of)
		found[path] = of.String()
	}
}

func TestFieldsAreTheInterfaces(t *testing.T) {
	sections := documented(t)
	for title, of := range map[string]reflect.Type{
		"BIN lookup request":  reflect.TypeFor[bins.LookupRequest](),
		"BIN lookup response": reflect.TypeFor[bins.LookupResponse](),
		"Refund record":       reflect.TypeFor[refunds.Refund](),
	} {
		t.Run(title, func(t *testing.T) {
			want, got := sections[title], make(fields)
			declared(t, got, "", of)
			for _, path := range slices.Sorted(maps.Keys(want)) {
				if got[path] == "" {
					t.Errorf("%s is missing in %s", path, of)
				} else if got[path] != want[path] {
					t.Errorf("%s is documented as %s and declared as %s", path, want[path], got[path])
				}
			}
			for _, path := range slices.Sorted(maps.Keys(got)) {
				if want[path] == "" {
					t.Errorf("%s of %s is not documented", path, of)
				}
			}
		})
	}
}

// The error object has no type of its own: each of its fields must reach the
// field of the same name of updater.Error.
func TestErrorObjectIsTheInterfaces(t *testing.T) {
	want := documented(t)["Error object (download endpoint)"]
	if len(want) == 0 {
		t.Fatal("fields.md documents no error object")
	}
	object := make(map[string]any)
	for path, of := range want {
		name := strings.TrimPrefix(path, "error.")
		switch of {
		case "string":
			object[name] = "the_" + name
		case "object":
			object[name] = map[string]any{"of": name}
		default:
			t.Fatalf("%s is documented as %s", path, of)
		}
	}
	body, err := json.Marshal(map[string]any{"error": object})
	if err != nil {
		t.Fatal(err)
	}
	mock := testkit.NewMock("GET", "https://u.example/updater/inquiries/jobs/j/download", testkit.Answer(400, string(body)))
	client, err := updater.NewClient("https://u.example", "m", updater.StaticToken("t"), updater.WithHTTPClient(mock.Client()))
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.Download(t.Context(), "j")
	failure, ok := err.(*updater.Error)
	if !ok {
		t.Fatalf("the error is a %T", err)
	}
	for path, of := range want {
		name := strings.TrimPrefix(path, "error.")
		field := reflect.ValueOf(*failure).FieldByNameFunc(func(s string) bool { return strings.EqualFold(s, name) })
		if method, ok := reflect.TypeFor[*updater.Error]().MethodByName(strings.ToUpper(name[:1]) + name[1:]); ok {
			field = method.Func.Call([]reflect.Value{reflect.ValueOf(failure)})[0]
		}
		switch {
		case !field.IsValid():
			t.Errorf("%s is neither a field nor a method of updater.Error", path)
		case of == "string" && (field.Kind() != reflect.String || field.String() != "the_"+name):
			t.Errorf("%s is %#v", path, field)
		case of == "object" && (field.Type() != reflect.TypeFor[json.RawMessage]() || string(field.Bytes()) != fmt.Sprintf(`{"of":%q}`, name)):
			t.Errorf("%s is %s", path, field.Bytes())
		}
	}
}
