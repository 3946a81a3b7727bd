package main

import (
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/carddata/carddata-go/examples/internal/target"
)

// readFailed returns the lines of the rows in a failed file.
func readFailed(path string) ([]int, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, target.Usage("bulk: %v", err)
	}
	defer file.Close()
	r := csv.NewReader(file) // refuses a record that is not whole
	r.ReuseRecord = true
	record, err := r.Read()
	if err != nil || strings.Join(record, ",")+"\n" != failedHead {
		return nil, target.Usage("bulk: %s is no failed file of a run (-retry-failed)", target.Path(path))
	}
	lines := []int{}
	for {
		record, err := r.Read()
		if err == io.EOF {
			slices.Sort(lines)
			return slices.Compact(lines), nil
		}
		if err == nil {
			var line int
			line, err = strconv.Atoi(record[0])
			lines = append(lines, line)
		}
		if err != nil {
			return nil, target.Usage("bulk: after %d rows, %s is no failed file of a run (-retry-failed)", len(lines), target.Path(path))
		}
	}
}

// digest tells one selection of lines from another. It is "" for all lines.
func digest(lines []int) string {
	if lines == nil {
		return ""
	}
	h := sha256.New()
	for _, line := range lines {
		fmt.Fprintln(h, line)
	}
	return hex.EncodeToString(h.Sum(nil))
}
