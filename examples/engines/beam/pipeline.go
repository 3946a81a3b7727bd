package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem/local" // gcs, s3: import theirs
	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/parquetio"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/textio"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/transforms/filter"
	"golang.org/x/time/rate"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/internal/mask"
)

// A ParquetRow is a row of the Parquet input: edit it for your columns. The SDK reads
// Parquet into a type that is known at compile time.
type ParquetRow struct {
	ID   int64  `parquet:"name=id, type=INT64"`
	Card string `parquet:"name=card, type=BYTE_ARRAY, convertedtype=UTF8"`
}

const parquetHeader = "id,card"

// failedName is part of the names of the failed rows' files.
const failedName = ".failed"

func fromParquet(r ParquetRow) string { return csvLine(fmt.Sprint(r.ID), r.Card) }

func init() {
	beam.RegisterType(reflect.TypeFor[Answer]())
	beam.RegisterType(reflect.TypeFor[ParquetRow]())
	register.DoFn4x0[string, func(string, string), func(string), func(string)](&keyFn{})
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

// pipeline reads the rows, looks up each distinct identifier once, and joins the result to
// its rows.
func (j *job) pipeline() (*beam.Pipeline, error) {
	shape, isParquet, err := j.rows()
	if err != nil {
		return nil, err
	}
	p, s := beam.NewPipelineWithRoot()
	var lines beam.PCollection
	if isParquet {
		lines = beam.ParDo(s, fromParquet, parquetio.Read(s, j.in, reflect.TypeFor[ParquetRow]()))
	} else {
		lines = textio.Read(s, j.in, textio.ReadAutoCompression())
	}
	rows, ids, unreadable := beam.ParDo3(s, &keyFn{*shape}, lines)
	groups := beam.GroupByKey(s, beam.ParDo(s, &spreadFn{j.groups}, filter.Distinct(s, ids)))
	answers := beam.ParDo(s, &lookupFn{Service: j.service}, groups)
	known, failed := beam.ParDo2(s, &joinFn{}, beam.CoGroupByKey(s, rows, answers))
	write := func(prefix string, lines beam.PCollection, names ...string) {
		out := &writeFn{prefix, shape.Header + "," + csvLine(names...) + "\n"}
		beam.ParDo0(s, out, beam.GroupByKey(s, beam.ParDo(s, &spreadFn{j.files}, lines)))
	}
	write(j.out, known, answerNames...)
	write(j.out+failedName, beam.Flatten(s, failed, unreadable), reasonName)
	return p, nil
}

// keyFn emits each row with its identifier as the key.
type keyFn struct{ Rows Rows }

func (f *keyFn) ProcessElement(line string, row func(string, string), id, failed func(string)) {
	line = strings.TrimSuffix(line, "\r")
	if line == "" || line == f.Rows.Header {
		return // every file has a header
	}
	card, err := f.Rows.card(line)
	key := ""
	if err == nil {
		key, err = identify(card, f.Rows.Prefix)
	}
	if err != nil {
		failed(joined(line, Answer{Reason: err.Error()}))
		return
	}
	row(key, line)
	id(key)
}

// spreadFn divides lines into groups. A group's key is a number, and no part of a line.
type spreadFn struct{ Groups int }

func (f *spreadFn) ProcessElement(text string, emit func(string, string)) {
	h := fnv.New32a()
	h.Write([]byte(text))
	emit(fmt.Sprintf("%05d", h.Sum32()%uint32(f.Groups)), text)
}

// An Answer is the result of an identifier. It is joined to the rows.
type Answer struct{ Brand, Kind, Country, Bank, Reason string }

// Service is sent to the workers. The credential is not, because runners store pipelines
// and show them on pages. It comes from each worker's environment.
type Service struct {
	URL  string
	Rate float64 // requests a second of one worker process; 0 is no limit
}

// process has the one client of all instances of a DoFn. With a client each, each would use
// the whole quota. A worker serves one pipeline.
var process struct {
	sync.Once
	client *bins.Client
	err    error
}

// limiter replaces the fixed share of the quota. Set it in an init function in a file of your
// own, which every worker runs. The limiter of examples/engines/redis shares the quota.
var limiter bins.Limiter

func (s Service) client() (*bins.Client, error) {
	process.Do(func() {
		var opts []bins.Option
		if limiter != nil {
			opts = append(opts, bins.WithLimiter(limiter))
		} else if s.Rate > 0 {
			opts = append(opts, bins.WithRateLimit(rate.Limit(s.Rate), 1))
		}
		process.client, process.err = bins.NewClient(s.URL, bins.StaticToken(os.Getenv("CARDDATA_API_KEY")), opts...)
	})
	return process.client, process.err
}

// lookupFn looks up the identifiers of a group, 50 in each request.
type lookupFn struct{ Service Service }

func (f *lookupFn) ProcessElement(ctx context.Context, _ string, ids func(*string) bool, emit func(string, Answer)) error {
	client, err := f.Service.client()
	if err != nil {
		return err
	}
	all := func(yield func(string) bool) {
		for id := ""; ids(&id); {
			if !yield(id) {
				return
			}
		}
	}
	for r, err := range client.LookupAll(ctx, all, bins.BulkOptions{}) {
		if err != nil {
			return err // all further requests would fail too, so the job fails
		}
		answer := Answer{}
		if card, err := r.Card(); err == nil {
			answer = Answer{Brand: card.CardBrand, Kind: card.Type, Country: card.Country.Alpha2, Bank: card.Bank.Name}
		} else { // the service's own error if it sent one, with card numbers masked
			answer.Reason = mask.Text(cmp.Or(r.Result.Error, err.Error()))
		}
		emit(r.Input.Reveal(), answer)
	}
	return nil
}

type joinFn struct{}

func (f *joinFn) ProcessElement(_ string, rows func(*string) bool, answers func(*Answer) bool, known, failed func(string)) {
	row, answer := "", Answer{Reason: "no response"}
	answers(&answer)
	emit := known
	if answer.Reason != "" {
		emit = failed
	}
	for rows(&row) {
		emit(joined(row, answer))
	}
}

// writeFn writes a file for each group. The file gets its name when it is complete.
type writeFn struct{ Prefix, Head string }

func (f *writeFn) ProcessElement(ctx context.Context, group string, lines func(*string) bool) error {
	name := f.Prefix + "-" + group + ".csv"
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
	if err := errors.Join(w.Flush(), file.Close()); err != nil { // Flush returns the errors of writes too
		return err
	}
	return filesystem.Rename(ctx, fs, temporary, name)
}
