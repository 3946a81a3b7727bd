module github.com/carddata/carddata-go/examples/tools/sandbox/browsertest

go 1.26.0

require (
	github.com/carddata/carddata-go v0.0.0
	github.com/chromedp/cdproto v0.159.0
	github.com/chromedp/chromedp v0.23.0
)

require (
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
	github.com/hashicorp/go-cleanhttp v0.5.2 // indirect
	github.com/hashicorp/go-retryablehttp v0.7.8 // indirect
	golang.org/x/time v0.16.0 // indirect
)

replace github.com/carddata/carddata-go => ../../../..
