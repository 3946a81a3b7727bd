package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"

	"github.com/carddata/carddata-go/internal/mask"
	"github.com/carddata/carddata-go/internal/sandbox"
)

const (
	inventedRows   = 200_000
	inventedRanges = 5_000
)

// invented returns the same rows every time. As in a shop, most cards are from a few
// ranges.
func invented() []byte {
	var text bytes.Buffer
	random := rand.New(rand.NewPCG(1, 2))
	popular := rand.NewZipf(random, 1.1, 10, inventedRanges-1)
	ranges := make([]string, inventedRanges)
	for i := range ranges {
		ranges[i] = sandbox.SyntheticRange(fmt.Sprintf("4%09d", random.IntN(1e9)))
	}
	fmt.Fprintln(&text, "id,card,amount,currency")
	for i := range inventedRows {
		number := ranges[popular.Uint64()]
		for len(number) < 15 {
			number += string(rune('0' + random.IntN(10)))
		}
		last := "0"
		if mask.CheckDigit(number + last) { // never a valid card number
			last = "1"
		}
		fmt.Fprintf(&text, "%d,%s,%d,EUR\n", i+1, number+last, 100+random.IntN(20_000))
	}
	return text.Bytes()
}
