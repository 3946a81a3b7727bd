package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/carddata/carddata-go/examples/internal/target"
	"github.com/carddata/carddata-go/internal/sandbox"
)

const (
	demoRows   = 200_000
	demoRanges = 5_000
)

// demo makes up an input, and has the run assume ranges: all its cards are card
// numbers, of which hardly any occurs twice. Unless the command line names a
// directory for them, remove takes the files away.
func (c *config) demo(stderr io.Writer) (remove func(), err error) {
	dir, remove := c.demoDir, func() {}
	if dir == "" {
		if dir, err = os.MkdirTemp("", "carddata-bulk-"); err != nil {
			return remove, err
		}
		remove = func() {
			if err := os.RemoveAll(dir); err != nil {
				fmt.Fprintln(stderr, err)
				return
			}
			fmt.Fprintf(stderr, "removed %s; -demo DIR keeps the files in DIR\n", target.Path(dir))
		}
	}
	c.in, c.column, c.ranges = filepath.Join(dir, "transactions.csv"), "card", true
	c.out = filepath.Join(dir, "enriched.csv")
	c.failed = c.out + ".failed.csv"
	fmt.Fprintf(stderr, "no -in: making up %s rows in %s\n", grouped(demoRows), target.Path(dir))
	file, err := os.OpenFile(c.in, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return remove, target.Usage("bulk: -demo: %v", err)
	}
	w := bufio.NewWriter(file)
	writeDemo(w, demoRows)
	return remove, errors.Join(w.Flush(), file.Close())
}

// writeDemo writes the same rows every time. As in any shop, a few ranges have
// issued the most of the cards.
func writeDemo(w io.Writer, rows int) {
	random := rand.New(rand.NewPCG(1, 2))
	popular := rand.NewZipf(random, 1.1, 10, demoRanges-1)
	ranges := make([]string, demoRanges)
	for i := range ranges {
		ranges[i] = sandbox.SyntheticRange(fmt.Sprintf("4%09d", random.IntN(1e9)))
	}
	fmt.Fprintln(w, "id,card,amount,currency")
	for i := range rows {
		number := ranges[popular.Uint64()]
		number += fmt.Sprintf("%0*d", 15-len(number), random.Int64N(pow10(15-len(number))))
		fmt.Fprintf(w, "%d,%s%c,%d,EUR\n", i+1, number, notTheCheckDigit(number), 100+random.IntN(20_000))
	}
}

func pow10(n int) int64 {
	p := int64(1)
	for range n {
		p *= 10
	}
	return p
}

// notTheCheckDigit ends a number in a way that makes it no card number, lest an
// invented one be somebody's.
func notTheCheckDigit(number string) byte {
	sum := 0
	for i := range len(number) {
		digit := int(number[len(number)-1-i] - '0')
		if i%2 == 0 {
			digit = digit*2/10 + digit*2%10
		}
		sum += digit
	}
	return '0' + byte((10-sum%10+1)%10)
}
