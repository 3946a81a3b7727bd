package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
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
// The input is read ahead for the cards, and with the answers for their rows.
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
func enrich(ctx context.Context, c *config, service *target.Target, stdin io.Reader, stdout, stderr io.Writer) (*report, error) {
	client, err := c.client(service)
	if err != nil {
		return nil, err
	}
	from, err := openSource(ctx, c.in, stdin)
	if err != nil {
		return nil, err
	}
	defer from.close()
	j := &job{config: c}
	if err := j.open(from, stdout); err != nil {
		return nil, err
	}
	defer j.output.close()

	saving := target.Every(saveEvery, j.output.saveIfNew)
	showing := func() {}
	if c.out != standard || !target.IsTerminal(stdout) { // which the rows have for themselves
		showing = show(stderr, func() progress { return from.progress(j.output.position()) })
	}
	err = j.run(ctx, client)
	showing()
	saving()
	if ended := j.output.end(err == nil); err == nil {
		err = ended
	}
	return newReport(ctx, c, j.output.position(), err), err
}

// open opens the input, twice, and the output, and finds where to go on.
func (j *job) open(from *source, stdout io.Writer) (err error) {
	c := j.config
	if j.columns, err = parseColumns(c.columns); err != nil {
		return err
	}
	f, err := c.format(j.columns)
	if err != nil {
		return err
	}
	var head []byte
	if j.ahead, _, err = openInput(from.ahead, f); err != nil {
		return err
	}
	if j.rows, head, err = openInput(from.rows, f); err != nil {
		return err
	}
	var lines []int
	if c.retryFailed != "" {
		if lines, err = readFailed(c.retryFailed); err != nil {
			return err
		}
	}
	j.output, err = openOutput(c, settingsLine{
		Version: stateVersion, Delimiter: c.delimiter, KeepFailed: c.keepFailed,
		Column: c.column, Field: c.field, Lines: c.lines, Columns: c.columns, Failed: c.failed,
		Enhanced: c.enhanced, Ranges: c.ranges, Prefix: c.prefix,
		KeepSeparators: c.keepSeparators, Live: c.live, RetryFailed: digest(lines),
	}, head, stdout)
	if err != nil {
		return err
	}
	at := j.output.position()
	for _, in := range []*input{j.ahead, j.rows} {
		in.keepSeparators, in.selected = c.keepSeparators, lines
		err = cmp.Or(err, in.skip(at))
	}
	if err = cmp.Or(err, j.output.save()); err != nil {
		j.output.close()
	}
	return err
}

func (j *job) run(ctx context.Context, client *bins.Client) error {
	o := j.config.bulkOptions()
	o.Progress = j.output.progress
	// A card that is unknown stays so for the run: no answer changes within it.
	cache := bins.NewMemoryCache(bins.CacheOptions{Entries: cacheEntries, TTL: cacheTTL, NegativeTTL: cacheTTL})
	o.Memory = cache
	if err := recall(ctx, j.output.state.take(), o, cache); err != nil {
		return err
	}
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
		switch {
		case ctx.Err() != nil:
			return row, ctx.Err()
		case j.config.strict:
			return row, strict(row, row.bad)
		}
		if err := j.reject(row); err != nil {
			return row, err
		}
	}
}

// strict ends a run. The row is not written down as failed, so that resuming
// comes back to it.
func strict(r row, p *problem) error {
	return fmt.Errorf("bulk: line %d: %s (-strict)", r.line, p.text)
}

// settle brings a result and its row together.
func (j *job) settle(ctx context.Context, r *bins.BulkResult, failed error) error {
	row, err := j.nextGood(ctx)
	switch {
	case err == io.EOF || err == nil && row.card != r.Input.Reveal():
		return fmt.Errorf("line %d of the input changed while it was read", row.line)
	case err != nil:
		return err
	case errors.Is(failed, bins.ErrSuspended):
		// Nothing of this row or a later one is written: resuming asks for them again.
		return fmt.Errorf("bulk: %w: it has failed for %s", errUnanswered, j.config.giveUp)
	case failed != nil:
		p := failureOf(failed)
		if j.config.strict {
			return strict(row, p)
		}
		if j.config.keepFailed {
			if err := j.enrich(row, unanswered(j.columns, p)); err != nil {
				return err
			}
			return j.output.keep(j.rows, row, j.text, p, r.Reused)
		}
		return j.output.fail(j.rows, row, p, r.Reused)
	}
	var a *answer
	if !r.Reused {
		if a, err = learn(j.columns, sentAs(row.card, j.config.prefix), &r.Result, j.config.ranges); err != nil {
			return err
		}
	}
	if err := j.enrich(row, values(j.columns, &r.Result)); err != nil {
		return err
	}
	return j.output.succeed(j.rows, row, j.text, r, a)
}

// reject deals with a row for which nothing can be asked.
func (j *job) reject(r row) error {
	switch {
	case j.config.keepFailed && !r.bad.unreadable:
		if err := j.enrich(r, unanswered(j.columns, r.bad)); err != nil {
			return err
		}
		return j.output.keep(j.rows, r, j.text, r.bad, false)
	case j.output.failed == nil:
		return fmt.Errorf("bulk: line %d: %s, and there is no -failed file for it", r.line, r.bad.text)
	}
	return j.output.reject(j.rows, r)
}

// enrich makes the text of a row in the output.
func (j *job) enrich(r row, values []any) (err error) {
	if j.text, err = j.rows.format.enrich(j.text[:0], r.text, values); err == nil {
		j.text = append(j.text, r.lineBreak...)
	}
	return err
}
