package bins

import (
	"slices"
	"testing"
)

func TestCorrelate(t *testing.T) {
	ranged := func(bin, low, high string) Result {
		return Result{BIN: bin, Data: &Data{Card: &Card{BINMin: low, BINMax: high}}}
	}
	tests := []struct {
		name  string
		sent  []string
		items []Result
		want  []int
	}{
		{"in order", []string{"411111", "422222"}, []Result{{BIN: "411111"}, {BIN: "422222"}}, []int{0, 1}},
		{"another order", []string{"411111", "422222"}, []Result{{BIN: "422222"}, {BIN: "411111"}}, []int{1, 0}},
		{"one left out", []string{"411111", "422222"}, []Result{{BIN: "422222"}}, []int{-1, 0}},
		{"nothing", []string{"411111"}, nil, []int{-1}},
		{"one twice", []string{"411111"}, []Result{{BIN: "411111", Error: "a"}, {BIN: "411111", Error: "b"}}, []int{0}},
		{"truncated echo", []string{"4111111111111111", "4222222222222222"}, []Result{{BIN: "422222"}, {BIN: "411111"}}, []int{1, 0}},
		{"longer echo", []string{"411111"}, []Result{{BIN: "41111100"}}, []int{0}},
		{"same echo, by position", []string{"4111111111111111", "4111112222222222"}, []Result{{BIN: "411111"}, {BIN: "411111"}}, []int{0, 1}},
		{"same echo, one left out", []string{"4111111111111111", "4111112222222222"}, []Result{{BIN: "411111"}}, []int{-1, -1}},
		{
			"same echo, told apart by range", []string{"4111111111111111", "4111112222222222"},
			[]Result{ranged("411111", "41111120", "41111129"), ranged("411111", "41111110", "41111119")},
			[]int{1, 0},
		},
		{"no echo, by position", []string{"411111", "422222"}, []Result{{Error: "a"}, {Error: "b"}}, []int{0, 1}},
		{"no echo, one left out", []string{"411111", "422222"}, []Result{{Error: "a"}}, []int{-1, -1}},
		{"no echo, another order", []string{"411111", "422222", "433333"}, []Result{{Error: "a"}, {BIN: "411111"}, {BIN: "422222"}}, []int{1, 2, -1}},
		{"a token, by position", []string{"tok_a", "tok_b"}, []Result{{BIN: "411111"}, {BIN: "422222"}}, []int{0, 1}},
		{
			"a token that is echoed", []string{"tok_a"},
			[]Result{{BIN: "4"}, {Data: &Data{Card: &Card{PANOrToken: NewIdentifier("tok_a")}}}},
			[]int{1},
		},
		{"one is the beginning of another", []string{"400000", "40000099"}, []Result{{BIN: "40000099"}, {BIN: "400000"}}, []int{1, 0}},
		{
			"one is the other's cut echo", []string{"400000", "40000099"},
			[]Result{ranged("400000", "40000099", "40000099"), ranged("400000", "40000000", "40000000")},
			[]int{1, 0},
		},
		{
			"one is the other's cut echo, and left out", []string{"400000", "40000099"},
			[]Result{ranged("400000", "40000099", "40000099")},
			[]int{-1, -1},
		},
		{
			"two of one echo, in another order", []string{"40000002", "4000000273407660"},
			[]Result{ranged("40000002", "4000000273000000000", "4000000273999999999"), ranged("40000002", "", "")},
			[]int{-1, -1},
		},
		{"answered for a part of it", []string{"40000"}, []Result{ranged("400000", "40000000", "40000000")}, []int{0}},
		{"another card's", []string{"411111"}, []Result{{BIN: "555555"}}, []int{-1}},
		{"out of its range", []string{"4111111111111111"}, []Result{ranged("", "555555", "555555")}, []int{-1}},
	}
	for _, tt := range tests {
		if got := correlate(tt.sent, tt.items); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}
