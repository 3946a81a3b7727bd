// Beam adds what the service knows of cards to rows that are in a lake, as a
// pipeline of Apache Beam. Its README says when examples/bulk is the better choice.
package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/universal"
)

// A job is what the command line says.
type job struct {
	in, out, column string
	prefix          int
	groups, files   int
	service         Service

	inputs []string // the files of in
	suffix string   // of the files of out
}

func main() {
	log.SetFlags(0)
	var j job
	flag.StringVar(&j.in, "in", "", "the input: a glob of .csv, .ndjson or .parquet files; the first two may end in .gz")
	flag.StringVar(&j.out, "out", "", "the prefix of the outputs: PREFIX-00000.csv and so on, and PREFIX.failed-00000.csv")
	flag.StringVar(&j.column, "column", "card", "the column, or the member, that holds the card")
	flag.IntVar(&j.prefix, "prefix", 8, "the digits of a card that are looked up, 6 to 11")
	flag.IntVar(&j.groups, "groups", 2, "groups of identifiers that are looked up side by side")
	flag.IntVar(&j.files, "files", 4, "files of each output")
	quota := flag.Float64("quota", 0, "most requests a second of all workers together; 0 is no limit")
	workers := flag.Int("workers", 1, "the most worker processes that the runner is allowed")
	where := flag.String("where", "prism", "prism, in this process, or universal, at the -endpoint of Flink, Spark or another Prism")
	limit := flag.Duration("timeout", 6*time.Hour, "ends the program: Prism waits for ever for a worker that was killed")
	quick := flag.Bool("quick", false, "rows that are made up, against a sandbox, compared with a plain loop")
	rows := flag.Int("rows", 20_000, "with -quick, so many rows")
	each := flag.Bool("each", false, "with -quick, the loop looks each row up by itself, not each distinct identifier")
	flag.Parse()
	beam.Init() // in a worker process it does not return

	j.service = Service{URL: os.Getenv("CARDDATA_BIN_URL"), Rate: *quota / float64(*workers)}
	time.AfterFunc(*limit, func() { log.Fatalf("no end after %s (-timeout); start it again", *limit) })
	run := prism.Execute
	if *where == "universal" {
		run = universal.Execute
	}
	var err error
	switch {
	case j.prefix < 6 || j.prefix > 11 || j.groups < 1 || j.files < 1 || *workers < 1 || *quota < 0 || *rows < 1:
		err = errors.New("-prefix is from 6 to 11; -groups, -files, -workers and -rows are at least 1")
	case *quick:
		err = demo(&j, *rows, *each, run)
	case j.in == "" || j.out == "" || j.service.URL == "":
		err = errors.New("-in, -out and CARDDATA_BIN_URL are needed, or -quick (-h helps)")
	default:
		err = j.execute(run)
	}
	if err != nil {
		log.Fatal(err)
	}
}

type runner = func(context.Context, *beam.Pipeline) (beam.PipelineResult, error)

// execute leaves nothing of an earlier run with the same -out beside the files of this
// one. Until this one is done, all of it stays.
func (j *job) execute(run runner) error {
	ctx := context.Background()
	p, err := j.pipeline()
	if err != nil {
		return err
	}
	fs, err := filesystem.New(ctx, j.out)
	if err != nil {
		return err
	}
	defer fs.Close()
	before, err := j.outputs(ctx, fs)
	if err != nil {
		return err
	}
	if _, err = run(ctx, p); err != nil {
		return err
	}
	after, err := j.outputs(ctx, fs)
	for name, written := range after {
		if err == nil && written.Equal(before[name]) {
			err = fs.(filesystem.Remover).Remove(ctx, name)
		}
	}
	return err
}

// outputs are the files with the names of both outputs, and when they were written. Which
// of them a run writes depends on the rows that fail, and on -files.
func (j *job) outputs(ctx context.Context, fs filesystem.Interface) (map[string]time.Time, error) {
	_, removes := fs.(filesystem.Remover)
	clock, tells := fs.(filesystem.LastModifiedGetter)
	found := map[string]time.Time{}
	for _, prefix := range []string{j.out, j.out + failedName} {
		names, err := fs.List(ctx, prefix+"-[0-9][0-9][0-9][0-9][0-9]"+j.suffix)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if !removes || !tells {
				return nil, fmt.Errorf("there are files of an earlier run, such as %s: remove them, or choose another -out", name)
			}
			if slices.ContainsFunc(j.inputs, func(in string) bool { return isSame(in, name) }) {
				return nil, fmt.Errorf("%s is an input, and has the name of an output: choose another -out", name)
			}
			if found[name], err = clock.LastModified(ctx, name); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

func isSame(one, other string) bool {
	a, failed := os.Stat(one)
	b, err := os.Stat(other)
	return failed == nil && err == nil && os.SameFile(a, b)
}

// rows finds out what the input is. The names of its columns are needed before
// there is a pipeline.
func (j *job) rows() (*Rows, error) {
	names, err := filepath.Glob(j.in)
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("no file is named %s", j.in)
	}
	j.inputs, j.suffix = names, ".csv"
	r := &Rows{Kind: filepath.Ext(strings.TrimSuffix(names[0], ".gz")), Column: j.column, Prefix: j.prefix}
	switch r.Kind {
	case ".ndjson":
		j.suffix = ".ndjson"
		return r, nil
	case ".parquet":
		r.Header = parquetHeader
	case ".csv":
		r.Header, err = firstLine(names[0])
	default:
		err = fmt.Errorf("%s is not .csv, .ndjson or .parquet", names[0])
	}
	if err == nil {
		err = r.readHeader()
	}
	return r, err
}

func firstLine(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	if strings.HasSuffix(name, ".gz") {
		unpacked, err := gzip.NewReader(file)
		if err != nil {
			return "", err
		}
		lines = bufio.NewScanner(unpacked)
	}
	lines.Scan()
	return lines.Text(), lines.Err()
}
