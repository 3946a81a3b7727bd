package updater_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/jarcoal/httpmock"

	"github.com/carddata/carddata-go/updater"
	"github.com/carddata/carddata-go/updater/updatertest"
)

// The result of a job is copied as it arrives. In production it goes to a private
// file and never to a terminal: it holds card numbers.
func ExampleClient_Download() {
	service := httpmock.NewMockTransport() // stands in for the service
	service.RegisterResponder("GET", "https://updater.example.com/updater/inquiries/jobs/job_1/download",
		httpmock.NewStringResponder(200, "the updated cards").HeaderSet(http.Header{"Content-Type": {"text/csv"}}))
	service.RegisterResponder("GET", "https://updater.example.com/updater/inquiries/jobs/job_2/download",
		httpmock.NewStringResponder(404, `{"error":{"code":"no_such_job","message":"there is no such job"}}`))

	client, err := updater.NewClient("https://updater.example.com", "merchant_1", updater.StaticToken("my-access-token"),
		updater.WithHTTPClient(&http.Client{Transport: service})) // without this line: over the network
	if err != nil {
		fmt.Println(err)
		return
	}
	download, err := client.Download(context.Background(), "job_1")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer download.Close()
	n, err := io.Copy(io.Discard, download) // an error if the content was cut off
	fmt.Println(n, "bytes of", download.ContentType, err)

	_, err = client.Download(context.Background(), "job_2")
	if failure, ok := errors.AsType[*updater.Error](err); ok {
		fmt.Println(errors.Is(err, updater.ErrNotFound), failure.StatusCode, failure.Code)
	}
	// Output:
	// 17 bytes of text/csv <nil>
	// true 404 no_such_job
}

// One client serves many merchants: they share transport, limits and token. It
// needs no merchant of its own.
func ExampleClient_ForMerchant() {
	service := httpmock.NewMockTransport()
	service.RegisterResponder("GET", "https://updater.example.com/updater/inquiries/jobs/job_1/download",
		func(r *http.Request) (*http.Response, error) {
			fmt.Println("asked on behalf of", r.Header.Get("x-merchant-id"))
			return httpmock.NewStringResponse(200, ""), nil
		})

	client, err := updater.NewClient("https://updater.example.com", "", updater.StaticToken("my-access-token"),
		updater.WithHTTPClient(&http.Client{Transport: service}))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, merchant := range []string{"merchant_2", "merchant_3"} {
		of, err := client.ForMerchant(merchant)
		if err != nil {
			fmt.Println(err)
			return
		}
		download, err := of.Download(context.Background(), "job_1")
		if err != nil {
			fmt.Println(err)
			return
		}
		download.Close()
	}
	// Output:
	// asked on behalf of merchant_2
	// asked on behalf of merchant_3
}

// The header of the response may say more than the body, for instance that the
// endpoint will be switched off.
func ExampleDownload_Header() {
	service := httpmock.NewMockTransport()
	service.RegisterResponder("GET", "https://updater.example.com/updater/inquiries/jobs/job_1/download",
		httpmock.NewStringResponder(200, "the updated cards").HeaderSet(http.Header{"Sunset": {"Wed, 01 Dec 2027 00:00:00 GMT"}}))

	client, err := updater.NewClient("https://updater.example.com", "merchant_1", updater.StaticToken("my-access-token"),
		updater.WithHTTPClient(&http.Client{Transport: service}))
	if err != nil {
		fmt.Println(err)
		return
	}
	download, err := client.Download(context.Background(), "job_1")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer download.Close()
	fmt.Println(download.Header().Get("Sunset"))
	// Output:
	// Wed, 01 Dec 2027 00:00:00 GMT
}

// The service compresses the content although it was not asked to. The download returns
// it as it is, and the caller decodes it.
func ExampleWithEncodedContent() {
	var compressed bytes.Buffer
	w := gzip.NewWriter(&compressed)
	io.WriteString(w, "the updated cards")
	w.Close()
	service := httpmock.NewMockTransport()
	service.RegisterResponder("GET", "https://updater.example.com/updater/inquiries/jobs/job_1/download",
		httpmock.NewBytesResponder(200, compressed.Bytes()).HeaderSet(http.Header{"Content-Encoding": {"gzip"}}))

	client, err := updater.NewClient("https://updater.example.com", "merchant_1", updater.StaticToken("my-access-token"),
		updater.WithHTTPClient(&http.Client{Transport: service}))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = client.Download(context.Background(), "job_1")
	fmt.Println(err)

	download, err := client.Download(context.Background(), "job_1", updater.WithEncodedContent())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer download.Close()
	content, err := gzip.NewReader(download)
	if err != nil {
		fmt.Println(err)
		return
	}
	cards, err := io.ReadAll(content)
	fmt.Printf("%s: %s, %v\n", download.ContentEncoding, cards, err)
	// Output:
	// updater: download: the content has an encoding that was not asked for; WithEncodedContent accepts it (status 200 OK, 1 attempt)
	// gzip: the updated cards, <nil>
}

// The service labels its CSV as text/html. The caller accepts that, and checks that the
// content is not a page.
func ExampleWithHTMLContent() {
	service := httpmock.NewMockTransport()
	service.RegisterResponder("GET", "https://updater.example.com/updater/inquiries/jobs/job_1/download",
		httpmock.NewStringResponder(200, "card,expiry").HeaderSet(http.Header{"Content-Type": {"text/html"}}))

	client, err := updater.NewClient("https://updater.example.com", "merchant_1", updater.StaticToken("my-access-token"),
		updater.WithHTTPClient(&http.Client{Transport: service}))
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = client.Download(context.Background(), "job_1")
	fmt.Println(errors.Is(err, updater.ErrBadResponse))

	download, err := client.Download(context.Background(), "job_1", updater.WithHTMLContent())
	if err != nil {
		fmt.Println(err)
		return
	}
	defer download.Close()
	content, err := io.ReadAll(download)
	fmt.Println(!bytes.HasPrefix(content, []byte("<")), err)
	// Output:
	// true
	// true <nil>
}

// The service keeps its results in an object storage and redirects to it. The host of
// the storage is allowed by name, and sees neither the credential nor the merchant.
func ExampleWithRedirectHosts() {
	service := httpmock.NewMockTransport()
	service.RegisterResponder("GET", "https://updater.example.com/updater/inquiries/jobs/job_1/download",
		httpmock.NewStringResponder(302, "").HeaderSet(http.Header{"Location": {"https://eu.storage.example/results/1?signature=abc"}}))
	service.RegisterResponder("GET", "https://eu.storage.example/results/1",
		func(r *http.Request) (*http.Response, error) {
			fmt.Printf("the storage sees %q and %q\n", r.Header.Get("Authorization"), r.Header.Get("x-merchant-id"))
			return httpmock.NewStringResponse(200, "the updated cards"), nil
		})

	client, err := updater.NewClient("https://updater.example.com", "merchant_1", updater.StaticToken("my-access-token"),
		updater.WithRedirectHosts("*.storage.example"),
		updater.WithHTTPClient(&http.Client{Transport: service}))
	if err != nil {
		fmt.Println(err)
		return
	}
	download, err := client.Download(context.Background(), "job_1")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer download.Close()
	content, err := io.ReadAll(download)
	fmt.Println(string(content), err)
	// Output:
	// the storage sees "" and ""
	// the updated cards <nil>
}

// One job for many merchants, with one token for all of them. When it is revoked in the
// middle, the service refuses it with 401, and the call fetches another one and succeeds.
func ExampleCachedToken() {
	fake := updatertest.Start() // stands in for the service
	defer fake.Close()

	fetched := 0
	source := updater.CachedToken(func(ctx context.Context) (string, time.Time, error) {
		fetched++ // ask your identity provider here, with ctx
		return fmt.Sprint("token-", fetched), time.Now().Add(time.Hour), nil
	})
	client, err := updater.NewClient(fake.URL(), "", source)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, merchant := range []string{"merchant_1", "merchant_2", "merchant_3"} {
		if i == 1 {
			fake.RevokeToken("token-1")
		}
		of, err := client.ForMerchant(merchant)
		if err != nil {
			fmt.Println(err)
			return
		}
		download, err := of.Download(context.Background(), "42")
		if err != nil {
			fmt.Println(err)
			return
		}
		_, err = io.Copy(io.Discard, download)
		download.Close()
		fmt.Println(merchant, "error:", err, "tokens fetched:", fetched)
	}
	// Output:
	// merchant_1 error: <nil> tokens fetched: 1
	// merchant_2 error: <nil> tokens fetched: 2
	// merchant_3 error: <nil> tokens fetched: 2
}
