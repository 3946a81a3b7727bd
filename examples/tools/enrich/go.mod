module github.com/carddata/carddata-go/examples/tools/enrich

go 1.26.0

require (
	github.com/carddata/carddata-go v0.0.0
	github.com/dustin/go-humanize v1.1.0
	github.com/schollz/progressbar/v3 v3.19.1
	golang.org/x/term v0.44.0
	golang.org/x/time v0.16.0
)

require (
	github.com/hashicorp/go-cleanhttp v0.5.2 // indirect
	github.com/hashicorp/go-retryablehttp v0.7.8 // indirect
	github.com/mitchellh/colorstring v0.0.0-20190213212951-d06e56a500db // indirect
	github.com/rivo/uniseg v0.4.7 // indirect
	golang.org/x/sys v0.46.0 // indirect
)

replace github.com/carddata/carddata-go => ../../..
