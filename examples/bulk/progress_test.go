package main

import (
	"strings"
	"testing"
)

func TestProgress(t *testing.T) {
	start := progress{read: 600, size: 1000, at: checkpoint{Totals: totals{Rows: 12_345_678, Seconds: 5}}}
	now := progress{read: 700, size: 1000, at: checkpoint{Totals: totals{
		Rows: 12_445_678, Failed: 3, Distinct: 1234, Requests: 56, Seconds: 15}}}
	want := "12,445,678 rows, 10,000 rows/s, 30s left, 3 failed, 56 requests, 1,234 distinct"
	if got := strings.Join(now.facts(start), ", "); got != want || now.share() != 0.7 {
		t.Errorf("%s, %g", got, now.share())
	}
	// A resumed run begins where the one before has ended.
	if got := start.share(); got != 0.6 {
		t.Error(got)
	}
	// What has no end has no share, and nothing left.
	endless := progress{at: now.at}
	if got := strings.Join(endless.facts(start), ", "); got != strings.Replace(want, "30s left, ", "", 1) || endless.share() != -1 {
		t.Errorf("%s, %g", got, endless.share())
	}
}
