// Beam adds card data to rows in a data lake, as a pipeline of Apache Beam. Its README says
// when examples/tools/enrich is the better choice.
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
	"strings"
	"time"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/io/filesystem"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/runners/universal"

	_ "github.com/carddata/carddata-go/internal/sandbox/demo" // the flag -sandbox
)

// A job is what the command line says.
type job struct {
	in, out, column string
	prefix          int
	groups, files   int
	service         Service
}

type runner = func(context.Context, *beam.Pipeline) (beam.PipelineResult, error)

func main() {
	log.SetFlags(0)
	var j job
	flag.StringVar(&j.in, "in", "", "the input: a glob of .csv or .parquet files; .csv may end in .gz")
	flag.StringVar(&j.out, "out", "", "the prefix of the outputs: PREFIX-00000.csv and so on, and PREFIX.failed-00000.csv")
	flag.StringVar(&j.column, "column", "card", "the column that holds the card")
	flag.IntVar(&j.prefix, "prefix", 8, "how many digits of a card are looked up, 6 to 11")
	flag.IntVar(&j.groups, "groups", 2, "groups of identifiers that are looked up side by side")
	flag.IntVar(&j.files, "files", 4, "files of each output")
	quota := flag.Float64("quota", 0, "most requests a second of all workers together; 0 is no limit")
	workers := flag.Int("workers", 1, "the most worker processes that the runner is allowed")
	where := flag.String("where", "prism", "prism, in this process, or universal, at the -endpoint of Flink, Spark or another Prism")
	limit := flag.Duration("timeout", 6*time.Hour, "ends the program: Prism never stops waiting for a worker that was killed")
	flag.Parse()
	beam.Init() // in a worker process it does not return

	j.service = Service{URL: os.Getenv("CARDDATA_BIN_URL"), Rate: *quota / float64(*workers)}
	run := prism.Execute
	if *where == "universal" {
		run = universal.Execute
	}
	switch {
	case j.prefix < 6 || j.prefix > 11 || j.groups < 1 || j.files < 1 || *workers < 1 || *quota < 0:
		usage("-prefix is from 6 to 11; -groups, -files and -workers are at least 1")
	case j.in == "" || j.out == "":
		usage("-in and -out are needed (-h helps)")
	case j.service.URL == "" || os.Getenv("CARDDATA_API_KEY") == "":
		usage("CARDDATA_BIN_URL or CARDDATA_API_KEY is missing (-sandbox uses a sandbox with invented data)")
	}
	time.AfterFunc(*limit, func() { log.Fatalf("not done after %s (-timeout); start it again", *limit) })
	if err := j.execute(run); err != nil {
		log.Fatal(err)
	}
}

func usage(message string) {
	log.Print(message)
	os.Exit(2)
}

// execute runs the job. It refuses to write next to the files of an earlier run: not every
// run writes the same files, so some of the earlier ones could remain.
func (j *job) execute(run runner) error {
	ctx := context.Background()
	fs, err := filesystem.New(ctx, j.out)
	if err != nil {
		return err
	}
	defer fs.Close()
	for _, prefix := range []string{j.out, j.out + failedName} {
		if names, err := fs.List(ctx, prefix+"-[0-9][0-9][0-9][0-9][0-9].*"); err != nil || len(names) > 0 {
			return errors.Join(err, fmt.Errorf("%s has files already: remove them, or choose another -out", prefix))
		}
	}
	p, err := j.pipeline()
	if err == nil {
		_, err = run(ctx, p)
	}
	return err
}

// rows returns the shape of the input. The pipeline needs the names of its columns.
func (j *job) rows() (r *Rows, isParquet bool, err error) {
	names, err := filepath.Glob(j.in)
	if err != nil || len(names) == 0 {
		return nil, false, fmt.Errorf("no file is named %s", j.in)
	}
	r = &Rows{Column: j.column, Prefix: j.prefix}
	switch filepath.Ext(strings.TrimSuffix(names[0], ".gz")) {
	case ".parquet":
		r.Header, isParquet = parquetHeader, true
	case ".csv":
		r.Header, err = firstLine(names[0])
	default:
		err = fmt.Errorf("%s is neither .csv nor .parquet", names[0])
	}
	if err == nil {
		err = r.readHeader()
	}
	return r, isParquet, err
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
