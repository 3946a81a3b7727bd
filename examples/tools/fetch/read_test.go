package main

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestRead(t *testing.T) {
	const rows = `new_expiry=2031-07 new_number=424242******4242 old_number=411111******1111 result=number_changed row=00000000000
new_expiry=2030-11 new_number= old_number=555555******4444 result=expiry_changed row=00000000001
new_expiry= new_number= old_number=378282*****0005 result=unchanged row=00000000002
new_expiry= new_number= old_number=601111******1117 result=account_closed row=00000000003
`
	for format := range formats {
		got := call(t, nil, "-sandbox", "-size", "8KiB", "-read", format)
		if got.Code != 0 || !strings.HasPrefix(got.Stdout, rows) || strings.Count(got.Stdout, "\n") < 50 {
			t.Errorf("%s: %+v", format, got)
		}
		got.CheckMasked(t)
	}
}

func TestFormats(t *testing.T) {
	for _, test := range []struct{ format, content, rows, failure string }{
		{"csv", "", "", ""},
		{"csv", "a,b\n", "", ""},
		{"csv", "\ufeffa,b\r\n1,\"x\ny\"\r\n\r\n\"4111 1111 1111 1111\",\x1b[2J", "a=1 b=x y\na=411111******1111 b= [2J\n", ""},
		{"csv", "a,b\n1,2\n3\n", "a=1 b=2\n", "wrong number of fields"},
		{"json", "", "", ""},
		{"json", `{"b":4111111111111111,"a":null}{"c":[1.50,{"d":"4242424242424242"}]}`, "a= b=411111******1111\nc=[1.50,{\"d\":\"424242******4242\"}]\n", ""},
		{"json", `{"a":"\u0034111111111111111","4111111111111111":true}`, "411111******1111=true a=411111******1111\n", ""},
		{"json", "{\"a\":1}\n[]\n", "a=1\n", "after 1 rows"},
		{"json", `{"a":1`, "", "after 0 rows"},
		{"json", "[]", "", ""},
		{"json", ` [ {"a":1} , {"b":2} ] `, "a=1\nb=2\n", ""},
		{"json", "\n\t{\"a\":1}", "a=1\n", ""},
		{"json", `[{"a":1}`, "a=1\n", "after 1 rows"},
		{"json", `[{"a":1}]x`, "a=1\n", "something behind it"},
		{"json", `[{"a":1}][]`, "a=1\n", "something behind it"},
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
