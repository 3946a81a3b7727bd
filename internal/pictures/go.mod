module github.com/carddata/carddata-go/internal/pictures

go 1.26.0
