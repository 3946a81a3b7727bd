package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// A Word is what you have learned about a refund, such as by a webhook or a stream of the
// service.
type Word struct {
	AccountID string  // as enqueued; required
	RefundID  string  // as in the record; required
	Verdict   Verdict // Recorded, NotRecorded or Closed
	// Amount and Currency are what the service has, if the word says so. A word with others than
	// the record has is a Difference. nil and "": the word does not say.
	Amount   *int64
	Currency string
	By, Why  string // who says so, which is required, and why; kept with the decision
}

// ErrNoRefund is the error of a [Word] about a refund that was never enqueued.
var ErrNoRefund = errors.New("outbox: no such refund")

// Tell settles a refund by your word, in a transaction of database/sql on the outbox's database,
// whatever its state: the word counts if the transaction commits. It does nothing if the refund is
// known to be what the word says, so tell it as often as you like.
//
// A word that contradicts what is known is never followed. Tell returns it as a Difference for a
// person, and keeps it if the transaction commits, so commit then, too: see [Outbox.Differences].
// NotRecorded sends a refund that is Unknown again, whatever Config.ResubmitNotRecorded is.
//
// The error is [ErrNoRefund]; [ErrTooEarly] for NotRecorded or Closed while the request of the
// refund can still leave, a minute after it was sent; or one of the database.
//
// With several records of one refund_id, a word is about the one that is open. If another one is
// accepted, only Amount and Currency can tell which the word is about.
func (o *Outbox) Tell(ctx context.Context, tx *sql.Tx, word Word) (*Difference, error) {
	return o.tell(ctx, sqlSession{tx, o.schema == ""}, word)
}

// TellPgx is [Outbox.Tell] in a transaction of pgx.
func (o *Outbox) TellPgx(ctx context.Context, tx pgx.Tx, word Word) (*Difference, error) {
	return o.tell(ctx, pgxSession{tx}, word)
}

func (o *Outbox) tell(ctx context.Context, tx session, word Word) (*Difference, error) {
	switch {
	case !slices.Contains([]Verdict{Recorded, NotRecorded, Closed}, word.Verdict):
		return nil, fmt.Errorf("outbox: tell: %q is no word", word.Verdict)
	case word.By == "":
		return nil, errors.New("outbox: tell: who says so? Name somebody")
	}
	difference, err := tell(ctx, tx, word)
	switch {
	case noTable(err):
		return nil, missing(err)
	case err != nil && !errors.Is(err, ErrNoRefund):
		return nil, fmt.Errorf("outbox: tell: %w", err)
	}
	return difference, err
}

func tell(ctx context.Context, tx session, word Word) (*Difference, error) {
	// The rows keep their states until the transaction ends. In SQLite, one that begins with a
	// read could not wait for another writer.
	n, err := tx.exec(ctx, `UPDATE outbox_refund SET state = state WHERE account = $1 AND refund_id = $2`, word.AccountID, word.RefundID)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, ErrNoRefund
	}
	group, err := entriesIn(ctx, tx, `WHERE account = $1 AND refund_id = $2 ORDER BY id`, word.AccountID, word.RefundID)
	if err != nil {
		return nil, err
	}
	about, what := word.about(group)
	c := &claim{Row: about.Row, Attempt: about.Attempts}
	if what != "" {
		n, err := one[int](ctx, tx, `SELECT COUNT(*) FROM outbox_decision WHERE refund = $1 AND attempt = $2 AND what = $3 AND note = $4`, c.Row, c.Attempt, contradicts, what)
		if err == nil && n == 0 {
			err = keep(ctx, tx, c, contradicts, word.By, what)
		}
		return &Difference{Row: about.Row, What: what}, err
	}
	over := about.LastSent.Add(submitTimeout)
	switch {
	case word.agrees(about.State):
		return nil, nil
	case word.Verdict != Recorded && about.State != Pending && time.Now().Before(over):
		return nil, fmt.Errorf("%w until %s", ErrTooEarly, timeText(over))
	}
	done, err := settle(ctx, tx, c, about.State, word.Verdict, word.By, word.Why)
	if err == nil && !done {
		err = fmt.Errorf("%w: %q of a refund that is %s", ErrState, word.Verdict, about.State)
	}
	return nil, err
}

// contradicts marks a word in outbox_decision that was not followed.
const contradicts = "contradiction"

// about returns the record that the word is about, and what of it contradicts the word.
func (w Word) about(group []Entry) (about Entry, what string) {
	var open, accepted, rejected *Entry
	for i := range group {
		switch e := &group[i]; e.State {
		case Accepted:
			if accepted == nil || w.fits(*e) {
				accepted = e
			}
		case Rejected:
			rejected = e
		default:
			if open == nil {
				open = e
			}
		}
	}
	says := w.Verdict != Recorded
	switch {
	case says && accepted != nil:
		return *accepted, fmt.Sprintf("accepted here, and %s says: %s", w.By, w.Verdict)
	case says && open != nil:
		return *open, ""
	case says:
		return *rejected, ""
	case open != nil && accepted != nil && w.fits(*open) && w.fits(*accepted):
		return *open, "another record of the refund_id is accepted: the word cannot tell them apart"
	case open != nil && w.fits(*open):
		return *open, ""
	case accepted != nil && w.fits(*accepted):
		return *accepted, ""
	case open != nil || accepted != nil:
		about = group[len(group)-1]
		if open != nil {
			about = *open
		}
		return about, fmt.Sprintf("amount or currency differs: %s there, %s here", money(w.Amount, w.Currency), money(about.Amount, about.Currency))
	}
	return *rejected, fmt.Sprintf("rejected here, and %s says that the service has it", w.By)
}

// fits tells whether the amount and the currency are those of a record, as far as they are told.
func (w Word) fits(e Entry) bool {
	return (w.Amount == nil || e.Amount != nil && *w.Amount == *e.Amount) && (w.Currency == "" || w.Currency == e.Currency)
}

// agrees tells whether a refund in a state is what the word says.
func (w Word) agrees(s State) bool {
	return w.Verdict == Recorded && s == Accepted || w.Verdict != Recorded && s == Rejected || w.Verdict == NotRecorded && s == Pending
}

// Differences returns the words that contradicted what is known of a refund, in the order in which
// they came. They changed nothing: a person has to look at them.
func (o *Outbox) Differences(ctx context.Context) ([]Difference, error) {
	if err := o.check(ctx); err != nil {
		return nil, err
	}
	found, err := all[Difference](ctx, o, `SELECT 0 AS line, refund AS "row", note AS what FROM outbox_decision WHERE what = $1 ORDER BY id`, contradicts)
	if err != nil {
		return nil, fmt.Errorf("outbox: differences: %w", err)
	}
	return found, nil
}
