package updater_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/jarcoal/httpmock"

	"github.com/carddata/carddata-go/updater"
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
