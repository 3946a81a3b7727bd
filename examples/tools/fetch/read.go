package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/carddata/carddata-go/examples/tools/internal/cli"
	"github.com/carddata/carddata-go/updater"
)

// standard is the path of standard output.
const standard = "-"

// stream prints the result of one merchant as it arrives: its rows, or as it is.
func (c *config) stream(ctx context.Context, client *updater.Client) error {
	download, err := client.Download(ctx, c.job)
	if err != nil {
		return err
	}
	defer download.Close()
	switch {
	case !download.Verified && !c.acceptUnverified:
		return updater.ErrUnverified
	case c.read != "":
		return printRows(c.read, download, c.stdout)
	}
	_, err = download.WriteTo(c.stdout)
	return err
}

func printRows(format string, content io.Reader, stdout io.Writer) error {
	out, rows := bufio.NewWriter(stdout), 0
	err := formats[format](content, func(row row) error {
		rows++
		return printRow(out, row)
	})
	if err != nil {
		err = fmt.Errorf("after %d rows: %w", rows, err)
	}
	return errors.Join(err, out.Flush())
}

// Format and fields of a result are not documented. These are the ways to read the formats
// that are likely, row by row.
var formats = map[string]func(content io.Reader, each func(row) error) error{
	"csv":  readCSV,
	"json": readJSON,
}

// A row is one record of a result, by the names of its columns or members.
type row map[string]any

// readCSV reads CSV with a header.
func readCSV(content io.Reader, each func(row) error) error {
	r := csv.NewReader(content)
	header, err := r.Read()
	if err == nil {
		header[0] = strings.TrimPrefix(header[0], "\ufeff") // as Windows programs write it
	}
	for err == nil {
		var values []string
		if values, err = r.Read(); err != nil {
			break
		}
		row := make(row, len(header))
		for i, name := range header {
			row[name] = values[i]
		}
		err = each(row)
	}
	return unlessEnd(err)
}

// readJSON reads an array of objects, or one object after another.
func readJSON(content io.Reader, each func(row) error) error {
	d := json.NewDecoder(content)
	d.UseNumber() // as floats, card numbers would lose digits
	d.More()      // skips white space
	var first [1]byte
	d.Buffered().Read(first[:])
	isArray := first[0] == '['
	if isArray {
		d.Token()
	}
	for !isArray || d.More() {
		var row row
		if err := d.Decode(&row); err != nil {
			return unlessEnd(err)
		}
		if err := each(row); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err == io.EOF {
		return errors.New("the JSON array does not end")
	} else if err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.Join(errors.New("the JSON array has something behind it"), err)
	}
	return nil
}

func unlessEnd(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

// printRow prints a row in one line, with card numbers masked.
func printRow(to io.Writer, row row) error {
	var fields []string
	for _, name := range slices.Sorted(maps.Keys(row)) {
		fields = append(fields, cli.Line(name+"="+text(row[name])))
	}
	_, err := fmt.Fprintln(to, strings.Join(fields, " "))
	return err
}

func text(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	encoded, _ := json.Marshal(value) // which came from JSON
	return string(encoded)
}
