package main

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/carddata/carddata-go/examples/engines/redis/internal/redisserver"
)

func TestCompare(t *testing.T) {
	server := redisserver.ForTest(t)
	var out strings.Builder
	if err := compare(t.Context(), &out, server.URL, 500*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	for _, s := range strategies {
		if !regexp.MustCompile(`(?m)^` + s.name + ` +[1-9]\d* +\d+ +\d+ % +\d+$`).MatchString(out.String()) {
			t.Errorf("%s:\n%s", s.name, &out)
		}
	}
	if err := compare(t.Context(), &out, "redis://:se%ret@host", 0); err == nil || strings.Contains(err.Error(), "ret") {
		t.Error(err)
	}
}
