package updater

import (
	"net/http"
	"testing"
	"time"
)

func TestValidator(t *testing.T) {
	const date, later = "Fri, 20 Nov 2026 08:00:00 GMT", "Fri, 20 Nov 2026 08:00:01 GMT"
	now := time.Now().UTC()
	ago := func(d time.Duration) string { return now.Add(-d).Format(http.TimeFormat) }
	for _, test := range []struct {
		name   string
		header http.Header
		want   string
	}{
		{"strong tag", http.Header{"Etag": {`"v1"`}}, `"v1"`},
		{"empty strong tag", http.Header{"Etag": {`""`}}, `""`},
		{"tag of any bytes", http.Header{"Etag": {"\"!#[]~\x80\xff\""}}, "\"!#[]~\x80\xff\""},
		{"weak tag", http.Header{"Etag": {`W/"v1"`}}, ""},
		{"no quotes", http.Header{"Etag": {`v1`}}, ""},
		{"one quote", http.Header{"Etag": {`"`}}, ""},
		{"quote inside", http.Header{"Etag": {`"a"b"`}}, ""},
		{"space in front", http.Header{"Etag": {`" b"`}}, ""},
		{"two tags", http.Header{"Etag": {`"a"`, `"b"`}}, ""},
		{"date", http.Header{"Last-Modified": {date}, "Date": {later}}, date},
		{"date under a weak tag", http.Header{"Etag": {`W/"v1"`}, "Last-Modified": {date}, "Date": {later}}, date},
		{"tag above a date", http.Header{"Etag": {`"v1"`}, "Last-Modified": {date}, "Date": {later}}, `"v1"`},
		{"date of the same second", http.Header{"Last-Modified": {date}, "Date": {date}}, ""},
		{"date of the future", http.Header{"Last-Modified": {later}, "Date": {date}}, ""},
		{"old date, no clock", http.Header{"Last-Modified": {ago(2 * time.Minute)}}, ago(2 * time.Minute)},
		{"recent date, no clock", http.Header{"Last-Modified": {ago(time.Minute / 2)}}, ""},
		{"old date, broken clock", http.Header{"Last-Modified": {date}, "Date": {"today"}}, ""},
		{"no date", http.Header{"Last-Modified": {"yesterday"}, "Date": {later}}, ""},
		{"ranges declined", http.Header{"Etag": {`"v1"`}, "Accept-Ranges": {"None"}}, ""},
		{"ranges offered", http.Header{"Etag": {`"v1"`}, "Accept-Ranges": {"bytes"}}, `"v1"`},
	} {
		if got := validator(test.header); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
