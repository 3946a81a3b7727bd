package main

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/carddata/carddata-go/internal/sandbox"
)

func TestRead(t *testing.T) {
	const rows = `new_expiry=2031-07 new_number=424242******4242 old_number=411111******1111 result=number_changed row=00000000000
new_expiry=2030-11 new_number= old_number=555555******4444 result=expiry_changed row=00000000001
new_expiry= new_number= old_number=378282*****0005 result=unchanged row=00000000002
new_expiry= new_number= old_number=601111******1117 result=account_closed row=00000000003
`
	for format := range formats {
		path := filepath.Join(t.TempDir(), "result")
		streamed := call(t, nil, "-sandbox", "-size", "8KiB", "-read", format)
		saved := call(t, nil, "-sandbox", "-size", "8KiB", "-read", format, "-o", path)
		if streamed.Code != 0 || !strings.HasPrefix(streamed.Stdout, rows) || strings.Count(streamed.Stdout, "\n") < 50 {
			t.Errorf("%s: %+v", format, streamed)
		}
		if saved.Code != 0 || saved.Stdout != streamed.Stdout {
			t.Errorf("%s: %+v", format, saved)
		}
		checkFile(t, path, sandbox.Synthetic(sandbox.Format(format), 8<<10))
		streamed.CheckMasked(t)
	}
	// What is not of the format to be read does not take the place of the last result.
	engine, vars := serve(t)
	path := filepath.Join(t.TempDir(), "result.csv")
	engine.SetJob("42", sandbox.Job{Content: sandbox.Synthetic(sandbox.CSV, 1000)})
	if got := call(t, vars, "-job", "42", "-o", path, "-read", "csv"); got.Code != 0 || got.Stdout == "" {
		t.Fatalf("%+v", got)
	}
	engine.SetJob("42", sandbox.Job{Content: strings.NewReader("Please log in.")})
	got := call(t, vars, "-job", "42", "-o", path, "-read", "json")
	if got.Code != 1 || !strings.HasSuffix(got.Stderr, "\nthe result is not of the format that -read names\n") {
		t.Errorf("%+v", got)
	}
	checkFile(t, path, sandbox.Synthetic(sandbox.CSV, 1000))
}

func TestFormats(t *testing.T) {
	long := strings.Repeat(`x`, maxRow+10_000)
	for _, test := range []struct{ format, content, rows, failure string }{
		{"csv", "", "", ""},
		{"csv", "a,b\n", "", ""},
		{"csv", "\ufeffa,b\r\n1,\"x\ny\"\r\n\r\n\"4111 1111 1111 1111\",\x1b[2J", "a=1 b=x y\na=411111******1111 b= [2J\n", ""},
		{"csv", "a,b\n1,2\n3\n", "a=1 b=2\n", "wrong number of fields"},
		{"csv", "a,b\n1,\"" + long, "", "longer than"},
		{"json", "", "", ""},
		{"json", `{"b":4111111111111111,"a":null}{"c":[1.50,{"d":"4242424242424242"}]}`, "a= b=411111******1111\nc=[1.50,{\"d\":\"424242******4242\"}]\n", ""},
		{"json", `{"a":"\u0034111111111111111","4111111111111111":true}`, "411111******1111=true a=411111******1111\n", ""},
		{"json", "{\"a\":1}\n[]\n", "a=1\n", "after 1 rows"},
		{"json", `{"a":1`, "", "after 0 rows"},
		{"json", `{"a":"` + long, "", "longer than"},
		{"json", "[]", "", ""},
		{"json", ` [ {"a":1} , {"b":2} ] `, "a=1\nb=2\n", ""},
		{"json", "\n\t{\"a\":1}", "a=1\n", ""},
		{"json", `[{"a":1}`, "a=1\n", "after 1 rows"},
		{"json", `[{"a":1}]x`, "a=1\n", "something behind it"},
		{"json", `[{"a":1}][]`, "a=1\n", "something behind it"},
		{"json", `[{"a":1},` + strings.Repeat(" ", maxRow+10_000) + `{}]`, "a=1\n", "longer than"},
	} {
		var out strings.Builder
		err := printRows(test.format, strings.NewReader(test.content), &out)
		failed := err != nil && strings.Contains(err.Error(), test.failure) && test.failure != ""
		if out.String() != test.rows || failed != (test.failure != "") || !failed && err != nil {
			t.Errorf("%s %.60s: %v, rows:\n%s", test.format, test.content, err, &out)
		}
	}
}

// What breaks a stream is no end of the rows.
func TestReadBroken(t *testing.T) {
	broken := errors.New("broken")
	for format, content := range map[string]string{"csv": "a\n1\n", "json": "[{\"a\":1},\n"} {
		var out strings.Builder
		if err := printRows(format, io.MultiReader(strings.NewReader(content), iotest.ErrReader(broken)), &out); !errors.Is(err, broken) || out.String() != "a=1\n" {
			t.Errorf("%s: %v, rows:\n%s", format, err, &out)
		}
	}
}
