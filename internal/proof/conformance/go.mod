module github.com/carddata/carddata-go/internal/proof/conformance

go 1.26.0

require (
	github.com/carddata/carddata-go v0.0.0
	golang.org/x/time v0.16.0
)

require (
	github.com/hashicorp/go-cleanhttp v0.5.2 // indirect
	github.com/hashicorp/go-retryablehttp v0.7.8 // indirect
	github.com/jarcoal/httpmock v1.4.2 // indirect
)

replace github.com/carddata/carddata-go => ../../..
