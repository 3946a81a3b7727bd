package main

import "slices"

// rows are measured in this order.
var rows = slices.Concat(callRows, bulkRows, wireRows, downloadRows, cacheRows, importRows, growthRows)
