package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/carddata/carddata-go/bins"
)

var errOutage = errors.New("the service does not work")

// maxWaiting bounds the bytes of the rows that wait for their results.
const maxWaiting = 64 << 20

// A job is one run over an input. It uses one goroutine: LookupAll reads its input on the
// goroutine of the loop over its results.
type job struct {
	config  *config
	columns []column
	from    *source
	input   *input
	output  *output
	waiting []row // read, and not yet written
	size    int   // of their text
	ended   error // of the input, such as io.EOF
	before  totals
	text    []byte // of the last row
	bar     *progressbar.ProgressBar
	paused  bool
}

// enrich runs the job. The report is nil if it could not begin.
func (c *config) enrich(ctx context.Context, client *bins.Client) (*report, error) {
	j := &job{config: c}
	if err := j.open(ctx); err != nil {
		return nil, err
	}
	defer j.from.close()
	defer j.output.close()
	err := j.run(ctx, client)
	if j.bar != nil {
		j.bar.Clear()
	}
	j.output.at.Complete = err == nil
	if saved := j.output.save(); err == nil {
		err = saved
	}
	return newReport(ctx, c, j.output.at, err), err
}

// open opens the input and the output, and finds where to continue.
func (j *job) open(ctx context.Context) (err error) {
	if j.columns, err = parseColumns(j.config.columns); err != nil {
		return err
	}
	format, err := j.config.format(j.columns)
	if err != nil {
		return err
	}
	if j.from, err = openSource(ctx, j.config); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			j.from.close()
		}
	}()
	in, head, err := openInput(j.from, format)
	if err != nil {
		return err
	}
	j.input = in
	if j.output, err = openOutput(j.config, head); err != nil {
		return err
	}
	if err = j.output.skip(j.input); err == nil {
		err = j.output.save()
	}
	if err != nil {
		j.output.close()
		return err
	}
	if file, ok := j.config.stderr.(*os.File); ok && term.IsTerminal(int(file.Fd())) && j.config.out != standard && j.from.size > 0 {
		j.bar = progressbar.NewOptions64(j.from.size, progressbar.OptionSetWriter(file), progressbar.OptionShowBytes(true),
			progressbar.OptionUseIECUnits(true), progressbar.OptionThrottle(200*time.Millisecond), progressbar.OptionFullWidth())
	}
	return nil
}

func (j *job) run(ctx context.Context, client *bins.Client) error {
	o := bins.BulkOptions{
		Concurrency: j.config.concurrency, PrefixLength: j.config.prefix, GiveUpAfter: j.config.giveUp, Progress: j.progress,
		// A result does not change within a run.
		Memory: bins.NewMemoryCache(bins.CacheOptions{MaxBytes: 1 << 30, TTL: 24 * time.Hour, NegativeTTL: 24 * time.Hour}),
	}
	if j.config.enhanced {
		o.Enhanced = new(true) // otherwise left out: the service's default is not documented
	}
	for j.ended == nil {
		j.before = j.output.at.Totals
		for r, err := range client.LookupAll(ctx, j.cards(ctx), o) {
			if errors.Is(cmp.Or(err, r.Err), bins.ErrSuspended) {
				// This row and the later ones are not written: a resumed run looks them up.
				return fmt.Errorf("enrich: %w: it has failed for %s", errOutage, j.config.giveUp)
			}
			if err != nil {
				return err
			}
			if err := j.settle(&r); err != nil {
				return err
			}
		}
		if err := cmp.Or(ctx.Err(), j.passOn()); err != nil {
			return err
		}
	}
	if j.ended != io.EOF {
		return j.ended
	}
	return nil
}

// cards reads rows and yields the cards to look up. It ends before the end of the input if
// too many rows wait for results. Many rows without a card can be the reason.
func (j *job) cards(ctx context.Context) iter.Seq[string] {
	return func(yield func(string) bool) {
		for ctx.Err() == nil && j.size < maxWaiting {
			r, err := j.input.next()
			if err != nil {
				j.ended = err
				return
			}
			r.text = bytes.Clone(r.text)
			j.size += len(r.text)
			j.waiting = append(j.waiting, r)
			if r.hasCard() && !yield(r.card) {
				return
			}
		}
	}
}

func (j *job) take() row {
	r := j.waiting[0]
	j.waiting[0] = row{}
	j.waiting = j.waiting[1:]
	j.size -= len(r.text)
	return r
}

// passOn writes the rows at the front that have no card to look up.
func (j *job) passOn() error {
	for len(j.waiting) > 0 && !j.waiting[0].hasCard() {
		if err := j.withoutCard(j.take()); err != nil {
			return err
		}
	}
	return nil
}

func (j *job) withoutCard(r row) error {
	if r.bad != nil {
		return j.fail(r, r.bad)
	}
	j.output.at.Totals.Blank++
	if len(r.text) == 0 { // no row, so it gets no columns
		return j.output.advance(r, j.output.rows, []byte(r.lineBreak))
	}
	return j.write(r, values(j.columns, nil, ""))
}

// settle writes the row of a result.
func (j *job) settle(r *bins.BulkResult) error {
	if err := j.passOn(); err != nil {
		return err
	}
	row, t := j.take(), &j.output.at.Totals
	if r.Reused {
		t.Cached++
	}
	if r.Err != nil {
		return j.fail(row, failureOf(r.Err))
	}
	card, err := r.Card()
	if err == nil {
		t.Known++
	} else {
		t.Unknown++
	}
	return j.write(row, values(j.columns, card, r.Result.Error))
}

// failureOf returns the problem of a row after its request has failed.
func failureOf(err error) *problem {
	kind := "request"
	if e, ok := errors.AsType[*bins.Error](err); ok {
		kind = e.Condition()
	}
	return &problem{kind, err.Error()}
}

// fail writes a row without a result to the failed file.
func (j *job) fail(r row, p *problem) error {
	j.output.at.Totals.fail(p.kind)
	// A bins.Identifier prints itself masked.
	text := fmt.Appendf(nil, "%d,%s,%s,%s\n", r.line, quote(bins.NewIdentifier(r.card).String()), p.kind, quote(p.text))
	return j.output.advance(r, j.output.failed, text)
}

// write writes a row to the output.
func (j *job) write(r row, values []any) (err error) {
	if j.text, err = j.input.format.enrich(j.text[:0], r.text, values); err != nil {
		return err
	}
	j.text = append(j.text, r.lineBreak...)
	return j.output.advance(r, j.output.rows, j.text)
}

// progress shows the progress that the library reports.
func (j *job) progress(p bins.BulkProgress) {
	t := &j.output.at.Totals
	t.Distinct, t.Requests = j.before.Distinct+p.Distinct, j.before.Requests+p.Requests
	if p.Paused() != j.paused {
		j.paused = p.Paused()
		text := "the service works again"
		if p.Paused() {
			text = "the service fails: waiting for it"
		}
		if j.bar != nil {
			j.bar.Clear()
		}
		fmt.Fprintln(j.config.stderr, text)
	}
	if j.bar != nil {
		j.bar.Set64(min(j.input.offset, j.from.size-1))
	}
}
