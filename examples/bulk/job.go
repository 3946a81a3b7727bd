package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"github.com/carddata/carddata-go/bins"
	"github.com/carddata/carddata-go/examples/internal/target"
)

// An answer is kept for as long as a run takes, and for the next day's resuming.
const (
	cacheTTL     = 24 * time.Hour
	cacheEntries = 500_000
)

// saveEvery is how often a checkpoint is written, and how much time's rows are
// done over after a kill, without asking for them again.
const saveEvery = 500 * time.Millisecond

// A job is one run over an input.
//
// The input is read twice at the same time: ahead of the answers for the cards,
// and with the answers for the rows that they belong to. Between the two lie up
// to 65,536 rows, which would otherwise be held in memory.
type job struct {
	config  *config
	columns []column
	ahead   *input
	rows    *input
	output  *output
	text    []byte // of the last row
}

// enrich does what the command line says. The report is nil if the run did not
// even begin.
func enrich(ctx context.Context, c *config, service *target.Target, stderr io.Writer) (*report, error) {
	client, err := c.client(service)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(c.in)
	if err != nil {
		return nil, target.Usage("bulk: %v", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, target.Usage("bulk: the input must be a file: it is read twice at the same time")
	}
	j := &job{config: c}
	if err := j.open(file, info.Size()); err != nil {
		return nil, err
	}
	defer j.output.close()

	saving := every(saveEvery, j.output.saveIfNew)
	showing := show(stderr, info.Size(), j.output.position)
	err = j.run(ctx, client)
	showing()
	saving()
	if saved := j.output.save(); err == nil {
		err = saved
	}
	if err == nil {
		err = j.output.finish()
	}
	return newReport(ctx, c, j.output.position(), err), err
}

// open opens the input, twice, and the output, and finds where to go on.
func (j *job) open(file io.ReaderAt, size int64) (err error) {
	c := j.config
	if j.columns, err = parseColumns(c.columns); err != nil {
		return err
	}
	f, err := c.format(j.columns)
	if err != nil {
		return err
	}
	var head []byte
	if j.ahead, _, err = openInput(file, size, f); err != nil {
		return err
	}
	if j.rows, head, err = openInput(file, size, f); err != nil {
		return err
	}
	j.output, err = openOutput(c, settingsLine{
		Column: c.column, Field: c.field, Lines: c.lines, Columns: c.columns, Failed: c.failed,
		Enhanced: c.enhanced, Ranges: c.ranges, Prefix: c.prefix,
	}, head)
	if err != nil {
		return err
	}
	at := j.output.position()
	if err = errors.Join(j.ahead.skip(at.Totals.Rows, at.Input), j.rows.skip(at.Totals.Rows, at.Input)); err != nil {
		j.output.close()
	}
	return err
}

func (j *job) run(ctx context.Context, client *bins.Client) error {
	o := j.config.bulkOptions()
	o.Progress = j.output.progress
	// A card that is unknown stays so for the run: no answer changes within it.
	cache := bins.NewMemoryCache(bins.CacheOptions{Entries: cacheEntries, TTL: cacheTTL, NegativeTTL: cacheTTL})
	o.Cache = cache
	if err := recall(ctx, j.output.state.answers, o, cache); err != nil {
		return err
	}
	j.output.state.answers = nil
	defer func() { j.output.conflicts(cache.Conflicts()) }()
	for r, err := range client.LookupAll(ctx, j.cards(ctx), o) {
		if r.Index < 0 {
			return err
		}
		if err := j.settle(ctx, &r, err); err != nil {
			return err
		}
	}
	// What is left are rows without a card to ask for.
	switch row, err := j.nextGood(ctx); {
	case err == io.EOF:
		return nil
	case err != nil:
		return err
	default:
		return fmt.Errorf("line %d of the input changed while it was read", row.line)
	}
}

// cards yields the cards to ask for. What ends it early, rows will meet too.
func (j *job) cards(ctx context.Context) iter.Seq[string] {
	return func(yield func(string) bool) {
		for ctx.Err() == nil {
			row, err := j.ahead.next()
			switch {
			case err != nil, row.bad != nil && j.config.strict:
				return
			case row.bad == nil && !yield(row.card):
				return
			}
		}
	}
}

// nextGood passes over rows that are bad, and returns the next one that is not.
func (j *job) nextGood(ctx context.Context) (row, error) {
	for {
		row, err := j.rows.next()
		if err != nil || row.bad == nil {
			return row, err
		}
		if err := cmp.Or(ctx.Err(), j.fail(row, row.bad, false)); err != nil {
			return row, err
		}
	}
}

// settle brings a result and its row together.
func (j *job) settle(ctx context.Context, r *bins.BulkResult, failure error) error {
	row, err := j.nextGood(ctx)
	switch {
	case err == io.EOF || err == nil && row.card != r.Input.Reveal():
		return fmt.Errorf("line %d of the input changed while it was read", row.line)
	case err != nil:
		return err
	case failure != nil:
		return j.fail(row, &problem{kindOf(failure), failure.Error()}, r.Reused)
	}
	var a *answer
	if !r.Reused {
		if a, err = learn(j.columns, sentAs(row.card, j.config.prefix), &r.Result, j.config.ranges); err != nil {
			return err
		}
	}
	if j.text, err = j.rows.format.enrich(j.text[:0], row.text, values(j.columns, &r.Result)); err != nil {
		return err
	}
	j.text = append(j.text, row.lineBreak...)
	card, _ := r.Result.Card()
	return j.output.row(j.text, card != nil, a, r.Reused, j.rows.offset)
}

// fail deals with a row that has no answer. With -strict it is not written down
// as failed, so that resuming comes back to it.
func (j *job) fail(row row, p *problem, reused bool) error {
	if j.config.strict {
		return fmt.Errorf("bulk: line %d: %s (-strict)", row.line, p.text)
	}
	return j.output.fail(row, p, reused, j.rows.offset)
}

// kinds name the conditions of failed requests in reports, the first that holds.
var kinds = []struct {
	condition error
	name      string
}{
	{bins.ErrMissing, "missing"},
	{bins.ErrRateLimited, "rate_limited"},
	{bins.ErrTimeout, "timeout"},
	{bins.ErrServer, "server"},
	{bins.ErrBadResponse, "bad_response"},
	{bins.ErrResponseTooLarge, "response_too_large"},
	{bins.ErrTooLarge, "request_too_large"},
	{bins.ErrConflict, "conflict"},
	{bins.ErrBadRequest, "bad_request"},
	{bins.ErrNoAnswer, "no_answer"},
}

func kindOf(err error) string {
	for _, kind := range kinds {
		if errors.Is(err, kind.condition) {
			return kind.name
		}
	}
	return "request"
}

// every calls f at intervals, until the function returned is called.
func every(interval time.Duration, f func()) (stop func()) {
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				f()
			case <-done:
				return
			}
		}
	}()
	return func() {
		close(done)
		<-stopped
	}
}
