package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"reflect"
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/local" // gcs, s3: import theirs
	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/parquetio"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/textio"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/transforms/filter"
)

// A ParquetRow is a row of the Parquet input: write down the columns of yours. The
// SDK reads Parquet into a type that is known when it compiles.
type ParquetRow struct {
	ID   int64  `parquet:"name=id, type=INT64"`
	Card string `parquet:"name=card, type=BYTE_ARRAY, convertedtype=UTF8"`
}

const parquetHeader = "id,card"

// failedName stands in the names of the failed rows' files.
const failedName = ".failed"

func fromParquet(r ParquetRow) string { return csvLine(fmt.Sprint(r.ID), r.Card) }

func init() {
	beam.RegisterType(reflect.TypeFor[Answer]())
	beam.RegisterType(reflect.TypeFor[ParquetRow]())
	register.DoFn5x0[context.Context, string, func(string, string), func(string), func(string)](&keyFn{})
	register.DoFn2x0[string, func(string, string)](&spreadFn{})
	register.DoFn4x1[context.Context, string, func(*string) bool, func(string, Answer), error](&lookupFn{})
	register.DoFn5x0[string, func(*string) bool, func(*Answer) bool, func(string), func(string)](&joinFn{})
	register.DoFn3x1[context.Context, string, func(*string) bool, error](&writeFn{})
	register.Function1x1(fromParquet)
	register.Emitter1[string]()
	register.Emitter2[string, string]()
	register.Emitter2[string, Answer]()
	register.Iter1[string]()
	register.Iter1[Answer]()
}

// pipeline reads the rows, looks each distinct identifier up once, and joins what
// is known of it to its rows.
func (j *job) pipeline() (*beam.Pipeline, error) {
	shape, err := j.rows()
	if err != nil {
		return nil, err
	}
	p, s := beam.NewPipelineWithRoot()
	var lines beam.PCollection
	if shape.Kind == ".parquet" {
		lines = beam.ParDo(s, fromParquet, parquetio.Read(s, j.in, reflect.TypeFor[ParquetRow]()))
	} else {
		lines = textio.Read(s, j.in, textio.ReadAutoCompression())
	}
	rows, ids, unreadable := beam.ParDo3(s, &keyFn{*shape}, lines)
	groups := beam.GroupByKey(s, beam.ParDo(s, &spreadFn{j.groups}, filter.Distinct(s, ids)))
	answers := beam.ParDo(s, &lookupFn{Service: j.service}, groups)
	known, failed := beam.ParDo2(s, &joinFn{*shape}, beam.CoGroupByKey(s, rows, answers))
	write := func(prefix string, lines beam.PCollection, names ...string) {
		out := &writeFn{prefix, j.suffix, shape.Head + "," + csvLine(names...) + "\n"}
		if shape.Kind == ".ndjson" {
			out.Head = ""
		}
		beam.ParDo0(s, out, beam.GroupByKey(s, beam.ParDo(s, &spreadFn{j.files}, lines)))
	}
	write(j.out, known, answerNames...)
	write(j.out+failedName, beam.Flatten(s, failed, unreadable), reasonName)
	return p, nil
}

// keyFn gives each row its identifier as key.
type keyFn struct{ Rows Rows }

func (f *keyFn) ProcessElement(ctx context.Context, line string, row func(string, string), id, failed func(string)) {
	line = strings.TrimSuffix(line, "\r")
	if line == "" || f.Rows.Kind == ".csv" && line == f.Rows.Header {
		return // every file has a header
	}
	text, card, err := f.Rows.card(line)
	key := ""
	if err == nil {
		key, err = identify(ctx, card, f.Rows.Prefix)
	}
	if err != nil {
		failed(f.Rows.joined(text, Answer{Reason: err.Error()}))
		return
	}
	row(key, text)
	id(key)
}

// spreadFn divides anything into groups, whose keys tell nothing of it.
type spreadFn struct{ Groups int }

func (f *spreadFn) ProcessElement(text string, emit func(string, string)) {
	h := fnv.New32a()
	h.Write([]byte(text))
	emit(fmt.Sprintf("%05d", h.Sum32()%uint32(f.Groups)), text)
}

type joinFn struct{ Rows Rows }

func (f *joinFn) ProcessElement(_ string, rows func(*string) bool, answers func(*Answer) bool, known, failed func(string)) {
	row, answer := "", Answer{Reason: "no response"}
	answers(&answer)
	emit := known
	if answer.Reason != "" {
		emit = failed
	}
	for rows(&row) {
		emit(f.Rows.joined(row, answer))
	}
}

// writeFn writes a file for each group, which has its name only when it is whole.
type writeFn struct{ Prefix, Suffix, Head string }

func (f *writeFn) ProcessElement(ctx context.Context, group string, lines func(*string) bool) error {
	name := f.Prefix + "-" + group + f.Suffix
	fs, err := filesystem.New(ctx, name)
	if err != nil {
		return err
	}
	defer fs.Close()
	temporary := fmt.Sprintf("%s.%d.tmp", name, time.Now().UnixNano())
	file, err := fs.OpenWrite(ctx, temporary)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(file, 1<<20)
	w.WriteString(f.Head)
	var line string
	for lines(&line) {
		w.WriteString(line + "\n")
	}
	if err := errors.Join(w.Flush(), file.Close()); err != nil { // Flush has the errors of writing too
		return err
	}
	return filesystem.Rename(ctx, fs, temporary, name)
}
