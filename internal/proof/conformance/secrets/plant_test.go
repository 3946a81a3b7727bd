package secrets_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing/iotest"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/proof/conformance/operations"
	"github.com/carddata/carddata-go/internal/proof/testkit/options"
	"github.com/carddata/carddata-go/refunds"
	"github.com/carddata/carddata-go/updater"
)

var plants = map[string]canary{
	"the API key":               {"canary-api-key-9f3c71", false},
	"the access token":          {"canary-access-token-5be210", false},
	"a token with a line break": {"canary-broken-token-77aa01\r\nX-Evil: 1", false},
	"the begin of that token":   {"canary-broken-token-77aa01", false},
	"the token source's error":  {"canary-source-error-14d2e8", false},
	"a header's value":          {"canary-header-value-e0b5c4", false},
	"a refused header's name":   {"canary-header-name-6c1d9b", false},
	"the user agent":            {"canary-user-agent-2f8e33", false},
	"the base URL's user":       {"canary-base-user-a91b07", false},
	"the base URL's path":       {"canary-base-path-c3f65d", false},
	"the account id":            {"canary-account-id-0d7e42", true},
	"the job id":                {"canary-job-id-b8a6f1", false},
	"a file's path":             {"canary-file-path-5b1d77", false},
	"the merchant id":           {"canary-merchant-id-48c9ee", false},
	"the transport's error":     {"canary-transport-error-3ab95c", false},
	"the transport's field":     {"canary-transport-field-d51f60", false},
	"the limiter's error":       {"canary-limiter-error-91e7b2", false},
	"the context's cause":       {"canary-context-cause-fa0c38", false},
	"Location":                  {"canary-location-62d4a7", false},
	"a card's token":            {"canary-card-token-85b3f9", true},
	"a Visa-like number":        {"4111111111111111", true},
	"an Amex-like number":       {"378282246310005", true},
	"a Discover-like number":    {"6011111111111117", true},
	"a refund's bin":            {"371449635398431", true},
	"an error's code":           {"canary code 30b8d5", true},
	"an error's message":        {"canary-message-97f1c2", true},
	"an error's details":        {"canary-details-5da30e", true},
	"an answer's body":          {"canary-body-c8e46b", true},
}

// refund has a canary in each of its texts, in the place "refund: " and their names.
var refund = func() *refunds.Refund {
	r := &refunds.Refund{Amount: new(int64(1)), AdditionalData: refunds.AdditionalData{Metadata: map[string]any{"card": "4111111111111111"}}}
	var plant func(path string, v reflect.Value)
	plant = func(path string, v reflect.Value) {
		for field, value := range v.Fields() {
			name := path + field.Name
			switch value.Kind() {
			case reflect.Struct:
				plant(name+".", value)
			case reflect.String:
				c := canary{fmt.Sprintf("canary-%s-%02d", strings.ToLower(field.Name), len(plants)), true}
				value.SetString(c.value)
				plants["refund: "+name] = c
			}
		}
	}
	plant("", reflect.ValueOf(r).Elem())
	r.PaymentMethodDetails.Card.Attributes.BIN = planted("a refund's bin")
	for _, place := range []string{"refund: metadata's name", "refund: metadata's value"} {
		plants[place] = canary{fmt.Sprintf("canary-metadata-%02d", len(plants)), true}
	}
	r.AdditionalData.Metadata[planted("refund: metadata's name")] = planted("refund: metadata's value")
	return r
}()

var secrets finder

func init() { secrets = newFinder(plants) }

func planted(place string) string {
	c, ok := plants[place]
	if !ok {
		panic("nothing is planted in " + place)
	}
	return c.value
}

// A leakyTransport is the worst that a caller can bring: it is printed by value,
// holds a secret, and returns errors that quote more of them.
type leakyTransport struct {
	Secret string
	Answer func(*http.Request) (*http.Response, error)
}

func (t leakyTransport) RoundTrip(r *http.Request) (*http.Response, error) { return t.Answer(r) }

// A leakyError is printed whole where fmt cannot call its method.
type leakyError struct{ Text string }

func (e leakyError) Error() string { return e.Text }

type leakySource struct{ Secret string }

func (s leakySource) Token(context.Context) (string, error) { return s.Secret, nil }

type leakyLimiter struct{ Secret string }

func (l leakyLimiter) Wait(context.Context) error { return leakyError{l.Secret} }

// answering makes a transport of one answer; header holds names and values in turn.
func answering(status int, body string, header ...string) http.RoundTripper {
	return leakyTransport{planted("the transport's field"), func(r *http.Request) (*http.Response, error) {
		resp := &http.Response{
			StatusCode: status, Status: fmt.Sprint(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: r,
		}
		for i := 0; i < len(header); i += 2 {
			resp.Header.Add(header[i], header[i+1])
		}
		return resp, nil
	}}
}

// failing makes a transport that answers with an error.
func failing(err error) http.RoundTripper {
	return leakyTransport{planted("the transport's field"), func(*http.Request) (*http.Response, error) { return nil, err }}
}

func plantedIDs() operations.Arguments {
	return operations.Arguments{
		Key: bins.StaticToken(planted("the API key")), Token: updater.StaticToken(planted("the access token")),
		Merchant: planted("the merchant id"), Account: planted("the account id"), Job: planted("the job id"),
		Cards:  []string{"4111111111111111", "378282246310005", "6011111111111117", planted("a card's token")},
		Refund: plantedRefund(),
	}
}

// plantedRefund is a copy.
func plantedRefund() *refunds.Refund {
	r := *refund
	r.AdditionalData.Metadata = maps.Clone(r.AdditionalData.Metadata)
	return &r
}

// plantedAnswers are the ways in which the other side, or what lies between,
// can send a secret back.
func plantedAnswers() map[string]http.RoundTripper {
	object := `{"code":"` + planted("an error's code") + `","message":"` + planted("an error's message") +
		` 4111 1111 1111 1111","details":{"note":"` + planted("an error's details") + `","pan":"378282246310005"}}`
	headers := []string{
		"Content-Type", "application/json", "X-Request-Id", "6011111111111117", "Retry-After", "378282246310005",
		"Location", "https://" + planted("Location") + ".test/" + planted("Location"), "Etag", planted("an answer's body"),
	}
	item := `{"bin":"4111111111111111","error":"no 378282246310005","data":{"card":{` +
		`"pan_or_token":"6011111111111117","bank":{"name":"bank"}}}}`
	answers := map[string]http.RoundTripper{
		"items":            answering(200, `{"cards":[`+item+`,{"bin":"`+planted("a card's token")+`"}]}`, headers...),
		"not JSON":         answering(200, planted("an answer's body"), headers...),
		"another type":     answering(200, `{"cards":[{"data":{"card":{"bin_length":4111111111111111.5}}}]}`, headers...),
		"another optional": answering(200, `{"cards":[{"data":{"card":{"level2":"4111111111111111"}}}]}`, headers...),
		"a syntax error":   answering(200, `{"cards":[{"bin":"4111111111111111" "378282246310005"}]}`, headers...),
		"a page":           answering(200, "<!doctype html>"+planted("an answer's body"), headers...),
		"too much":         answering(200, `"`+planted("an answer's body")+strings.Repeat(" 4111111111111111", 400)+`"`, headers...),
		"an encoding":      answering(200, planted("an answer's body"), append(headers, "Content-Encoding", planted("an answer's body"))...),
		"no location":      answering(302, planted("an answer's body"), "Location", "%zz"+planted("Location")),
		"no response":      leakyTransport{Answer: func(*http.Request) (*http.Response, error) { return nil, nil }},
		"both": leakyTransport{Answer: func(r *http.Request) (*http.Response, error) {
			resp, _ := answering(200, planted("an answer's body"), headers...).RoundTrip(r)
			return resp, leakyError{planted("the transport's error")}
		}},
		"an error":      failing(leakyError{planted("the transport's error")}),
		"an URL error":  failing(&url.Error{Op: planted("the transport's error"), URL: planted("the transport's error"), Err: leakyError{planted("the transport's error")}}),
		"joined errors": failing(errors.Join(io.EOF, fmt.Errorf("%s: %w", planted("the transport's error"), leakyError{planted("the transport's error")}))),
		"a broken body": leakyTransport{Answer: brokenBody},
		"a content":     answering(200, planted("an answer's body"), "ETag", `"`+planted("an answer's body")+`"`),
	}
	for _, status := range []int{101, 204, 302, 304, 307, 400, 401, 404, 407, 408, 413, 425, 429, 500, 501, 503, 600} {
		answers[fmt.Sprint(status)] = answering(status, `{"error":`+object+`}`, headers...)
	}
	answers["400 flat"] = answering(400, object, headers...)
	answers["400 page"] = answering(400, "<html>"+planted("an answer's body"), append(headers, "Content-Type", "text/html")...)
	return answers
}

// brokenBody is a content that breaks.
func brokenBody(r *http.Request) (*http.Response, error) {
	resp, err := answering(200, "").RoundTrip(r)
	body := io.MultiReader(strings.NewReader(planted("an answer's body")), iotest.ErrReader(leakyError{planted("the transport's error")}))
	resp.Body, resp.ContentLength = io.NopCloser(body), -1
	return resp, err
}

// brokenHTTP are answers that are not quite HTTP.
func brokenHTTP() map[string]string {
	const ok = "HTTP/1.1 200 OK\r\n"
	body := planted("an answer's body")
	return map[string]string{
		"nothing":             "",
		"no HTTP":             "4111111111111111 " + body + "\r\n\r\n",
		"a status":            "HTTP/1.1 4111111111111111 OK\r\n\r\n",
		"a status text":       "HTTP/1.1 500 4111111111111111 " + body + "\r\nContent-Length: 0\r\n\r\n",
		"a version":           "HTTP/4111111111111111 200 OK\r\n\r\n",
		"a header":            ok + "4111111111111111 " + body + "\r\n\r\n",
		"a length":            ok + "Content-Length: 4111111111111111x\r\n\r\n" + body,
		"two lengths":         ok + "Content-Length: 378282246310005\r\nContent-Length: 4111111111111111\r\n\r\n" + body,
		"a transfer encoding": ok + "Transfer-Encoding: 4111111111111111\r\n\r\n" + body,
		"a chunk":             ok + "Transfer-Encoding: chunked\r\n\r\n4111111111111111zz\r\n" + body,
		"a chunk's end":       ok + "Transfer-Encoding: chunked\r\n\r\n4\r\n4111111111111111\r\n0\r\n\r\n",
		"a body cut off":      ok + "Content-Length: 400\r\n\r\n{\"cards\":[\"4111111111111111\"," + body,
		"a gzip":              ok + "Content-Encoding: gzip\r\nContent-Length: 16\r\n\r\n4111111111111111",
		"an encoding":         ok + "Content-Encoding: 4111111111111111\r\nContent-Length: 16\r\n\r\n4111111111111111",
		"a location":          "HTTP/1.1 302 Found\r\nLocation: http://[" + planted("Location") + "\r\nContent-Length: 0\r\n\r\n",
	}
}

// sendsBack repeats the whole request in every part of an error.
func sendsBack(r *http.Request) (*http.Response, error) {
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		return nil, err
	}
	return nil, leakyError{b.String()}
}

// refusals are the errors of arguments that hold a secret and cannot be used.
func refusals(base string) map[string]error {
	key, token := bins.StaticToken(planted("the API key")), updater.StaticToken(planted("the access token"))
	list := map[string]error{}
	client := func(name, base string, opts ...options.Option) {
		_, list[name] = bins.NewClient(base, key, options.For[bins.Option](opts)...)
		_, list[name+" (refunds)"] = refunds.NewClient(base, options.For[refunds.Option](opts)...)
		_, list[name+" (updater)"] = updater.NewClient(base, planted("the merchant id"), token, options.For[updater.Option](opts)...)
	}
	user, path := planted("the base URL's user"), planted("the base URL's path")
	client("user", "https://"+user+":"+user+"@service.test")
	client("query", "https://service.test?"+user)
	client("fragment", "https://service.test#"+user)
	client("unparsable", "https://"+user+":"+user+"@service.test:port/"+path)
	client("unescapable", "https://service.test/%zz"+path)
	client("line break", "https://service.test/"+path+"\r\n")
	client("scheme", user+"://service.test")
	client("no host", "https:///"+path)
	client("http", "http://"+user+".test/"+path)
	client("dots", "https://service.test/../"+path)
	client("header name", base, options.WithHeader(planted("a refused header's name")+":", "v"))
	client("header value", base, options.WithHeader("X-Secret", planted("a header's value")+"\n"))
	client("reserved header", base, options.WithHeader("X-Merchant-Id", planted("a header's value")))
	client("user agent", base, options.WithUserAgent(planted("the user agent")+"\r\nX: y"))
	client("token", base, options.WithTokenSource(bins.StaticToken(planted("a token with a line break"))))
	client("token and header", base, options.WithTokenSource(key), options.WithHeader("Authorization", planted("a header's value")))

	_, list["merchant"] = updater.NewClient(base, planted("the merchant id")+"\r\n", token)
	downloads, err := updater.NewClient(base, planted("the merchant id"), token)
	submissions, errRefunds := refunds.NewClient(base)
	lookups, errBins := bins.NewClient(base, key)
	if err := errors.Join(err, errRefunds, errBins); err != nil {
		return map[string]error{"clients": err}
	}
	_, list["other merchant"] = downloads.ForMerchant(planted("the merchant id") + ",x")
	ctx := context.Background()
	_, list["job"] = downloads.Download(ctx, planted("the job id")+"/..")
	record := plantedIDs().Refund
	_, list["account"] = submissions.Submit(ctx, planted("the account id")+"\n", record)
	record.AdditionalData.Metadata["func"] = func() {}
	_, list["metadata"] = submissions.Submit(ctx, planted("the account id"), record)
	record.AdditionalData.Metadata["func"] = planted("refund: metadata's value") + "\xff"
	_, list["metadata text"] = submissions.Submit(ctx, planted("the account id"), record)
	_, list["card text"] = lookups.Lookup(ctx, &bins.LookupRequest{Cards: bins.Cards("4111111111111111\xff")})
	_, list["cards"] = lookups.Lookup(ctx, &bins.LookupRequest{Cards: bins.Cards(strings.Fields(strings.Repeat("4111111111111111 ", 51))...)})
	return list
}
