package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
)

func TestFail(t *testing.T) {
	const dated = "/data/20261122064131/4012/8888/8888/1881"
	gone := &fs.PathError{Op: "open", Path: dated, Err: fs.ErrNotExist}
	for _, test := range []struct {
		err  error
		code int
		want string
	}{
		{gone, 1, "open " + dated + ": file does not exist"},
		{Usage("%w", gone), 2, "open " + dated + ": file does not exist"},
		{Usage("%s exists", dated), 2, dated + " exists"},
		{&fs.PathError{Op: "open", Path: "4111 1111-1111 1111", Err: fs.ErrNotExist}, 1, "open 411111******1111: file does not exist"},
		{errors.New("no card 4111111111111111\x1b[2J\nfound"), 1, "no card 411111******1111 [2J found"},
	} {
		var out strings.Builder
		if code := Fail(t.Context(), &out, test.err); code != test.code || out.String() != test.want+"\n" {
			t.Errorf("%q is printed as %q, exit code %d", test.err, out.String(), code)
		}
	}
}

func TestEnvironment(t *testing.T) {
	for _, test := range []struct{ url, key, insecure, want string }{
		{"https://service.example", "k", "", ""},
		{"http://127.0.0.1:1", "k", "0", ""},
		{"http://sandbox:8080", "k", "1", ""},
		{"", "k", "", "missing or empty: URL ("},
		{"", "", "", "missing or empty: URL, KEY ("},
		{"k", "https://service.example", "", "URL is no https URL"},
		{"ftp://service.example", "k", "", "URL is no https URL"},
		{"https://user:secret@service.example", "k", "", "URL is no https URL"},
		{"https://service.example?key=secret", "k", "", "URL is no https URL"},
		{"http://sandbox:8080", "k", "0", "URL is http to another machine; " + InsecureHTTP + "=1 allows"},
		{"https://service.example", "k", "yes", InsecureHTTP + " is neither"},
	} {
		env := map[string]string{"URL": test.url, "KEY": test.key, InsecureHTTP: test.insecure}
		_, insecure, err := Environment(func(name string) (string, bool) { return env[name], true }, "URL", "KEY")
		if !strings.HasPrefix(fmt.Sprint(err), test.want) || (err == nil) != (test.want == "") || err == nil && insecure != (test.insecure == "1") {
			t.Errorf("%+v: %v, %v", test, insecure, err)
		}
	}
}
