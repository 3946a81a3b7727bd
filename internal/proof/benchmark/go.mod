module github.com/carddata/carddata-go/internal/proof/benchmark

go 1.26.0

replace github.com/carddata/carddata-go => ../../..

require (
	github.com/carddata/carddata-go v0.0.0
	github.com/go-json-experiment/json v1.27.2
	github.com/hashicorp/go-retryablehttp v0.7.8
	github.com/stripe/stripe-go/v84 v84.4.1
	golang.org/x/sync v0.23.0
	golang.org/x/time v0.16.0
	resty.dev/v3 v3.0.0-rc.4
)

require (
	github.com/aclements/go-moremath v0.0.0-20210112150236-f10218a38794 // indirect
	github.com/hashicorp/go-cleanhttp v0.5.2 // indirect
	github.com/stretchr/testify v1.11.1 // indirect
	golang.org/x/net v0.59.0 // indirect
	golang.org/x/perf v0.0.0-20260908200009-22c9c6c9d4da // indirect
)

tool golang.org/x/perf/cmd/benchstat
