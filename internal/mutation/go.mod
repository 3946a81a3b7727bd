module github.com/carddata/carddata-go/internal/mutation

go 1.26.0

require github.com/carddata/carddata-go v0.0.0

replace github.com/carddata/carddata-go => ../..
