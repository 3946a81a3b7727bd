//go:build goexperiment.jsonv2

package main

import "encoding/json/v2"

func unmarshal(body []byte, to any) error { return json.Unmarshal(body, to) }
