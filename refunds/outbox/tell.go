package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
)

// A Notice is what you have learned about a refund, for example by a webhook of the service.
type Notice struct {
	AccountID string  // as enqueued; required
	RefundID  string  // as in the record; required
	Verdict   Verdict // Recorded, NotRecorded or Closed
	// Amount and Currency are what the service has, if you know them. If the record has others, the
	// notice is a Difference. nil and "": not known.
	Amount   *int64
	Currency string
	By, Why  string // who says so, which is required, and why; kept with the decision
}

// ErrNoRefund is the error of a [Notice] about a refund that was never enqueued.
var ErrNoRefund = errors.New("outbox: no such refund")

// Tell settles a refund by a notice, whatever the refund's state. It works in a transaction of
// database/sql on the outbox's database, and counts if that commits. A notice of what is known already
// changes nothing, so a repeated one does no harm.
//
// A notice that contradicts what is known changes nothing. Tell returns it as a Difference for a
// person, and keeps it if the transaction commits, so commit then, too: see [Outbox.Differences].
// NotRecorded sends a refund that is Unknown again, whatever Config.ResubmitNotRecorded is.
//
// The error is [ErrNoRefund]; [ErrTooEarly] for NotRecorded or Closed while the request of the
// refund can still leave, a minute after it was sent; or one of the database.
//
// With several records of one refund_id, a notice is about the one that is open. If another one is
// accepted, only Amount and Currency can tell which the notice is about.
func (o *Outbox) Tell(ctx context.Context, tx *sql.Tx, notice Notice) (*Difference, error) {
	return o.tell(ctx, sqlSession{tx, o.schema == ""}, notice)
}

// TellPgx is [Outbox.Tell] in a transaction of pgx.
func (o *Outbox) TellPgx(ctx context.Context, tx pgx.Tx, notice Notice) (*Difference, error) {
	return o.tell(ctx, pgxSession{tx}, notice)
}

func (o *Outbox) tell(ctx context.Context, tx session, notice Notice) (*Difference, error) {
	switch {
	case !slices.Contains([]Verdict{Recorded, NotRecorded, Closed}, notice.Verdict):
		return nil, fmt.Errorf("outbox: tell: %q cannot be told", notice.Verdict)
	case notice.By == "":
		return nil, errors.New("outbox: tell: who says so? Name somebody")
	}
	difference, err := tell(ctx, tx, notice)
	switch {
	case noTable(err):
		return nil, missing(err)
	case err != nil:
		return nil, failed("tell", err)
	}
	return difference, nil
}

func tell(ctx context.Context, tx session, notice Notice) (*Difference, error) {
	// The rows keep their states until the transaction ends. In SQLite, one that begins with a
	// read could not wait for another writer.
	n, err := tx.exec(ctx, `UPDATE outbox_refund SET state = state WHERE account = $1 AND refund_id = $2`, notice.AccountID, notice.RefundID)
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, ErrNoRefund
	}
	group, err := entriesIn(ctx, tx, "", `WHERE account = $1 AND refund_id = $2 ORDER BY id`, notice.AccountID, notice.RefundID)
	if err != nil {
		return nil, err
	}
	about, what := notice.about(group)
	c := &claim{Row: about.Row, Attempt: about.Attempts}
	if what != "" {
		n, err := one[int](ctx, tx, `SELECT COUNT(*) FROM outbox_decision WHERE refund = $1 AND attempt = $2 AND what = $3 AND note = $4`, c.Row, c.Attempt, contradicts, what)
		if err == nil && n == 0 {
			err = keep(ctx, tx, c, contradicts, notice.By, what)
		}
		return &Difference{Row: about.Row, What: what}, err
	}
	if notice.agrees(about.State) {
		return nil, nil
	}
	if notice.Verdict != Recorded && about.State != Pending {
		if err := requestOver(ctx, tx, about); err != nil {
			return nil, err
		}
	}
	done, err := settle(ctx, tx, c, about.State, notice.Verdict, notice.By, notice.Why)
	if err == nil && !done {
		err = fmt.Errorf("%w: %q of a refund that is %s", ErrState, notice.Verdict, about.State)
	}
	return nil, err
}

// contradicts marks a notice in outbox_decision that contradicted what was known.
const contradicts = "contradiction"

// about returns the record that the notice is about, and what of it contradicts the notice.
func (n Notice) about(group []Entry) (about Entry, what string) {
	var open, accepted, rejected *Entry
	for i := range group {
		switch e := &group[i]; e.State {
		case Accepted:
			if accepted == nil || n.fits(*e) {
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
	says := n.Verdict != Recorded
	switch {
	case says && accepted != nil:
		return *accepted, fmt.Sprintf("accepted here, and %s says: %s", n.By, n.Verdict)
	case says && open != nil:
		return *open, ""
	case says:
		return *rejected, ""
	case open != nil && accepted != nil && n.fits(*open) && n.fits(*accepted):
		return *open, "another record of the refund_id is accepted: the notice cannot tell them apart"
	case open != nil && n.fits(*open):
		return *open, ""
	case accepted != nil && n.fits(*accepted):
		return *accepted, ""
	case open != nil || accepted != nil:
		about = group[len(group)-1]
		if open != nil {
			about = *open
		}
		return about, fmt.Sprintf("amount or currency differs: %s there, %s here", money(n.Amount, n.Currency), money(about.Amount, about.Currency))
	}
	return *rejected, fmt.Sprintf("rejected here, and %s says that the service has it", n.By)
}

// fits tells whether the amount and the currency are those of a record, as far as they are told.
func (n Notice) fits(e Entry) bool {
	return (n.Amount == nil || e.Amount != nil && *n.Amount == *e.Amount) && (n.Currency == "" || n.Currency == e.Currency)
}

// agrees tells whether a refund in a state is what the notice says.
func (n Notice) agrees(s State) bool {
	return n.Verdict == Recorded && s == Accepted || n.Verdict != Recorded && s == Rejected || n.Verdict == NotRecorded && s == Pending
}

// Differences returns the notices that contradicted what is known of a refund, in the order in which
// they came. They changed nothing: a person has to look at them. None is removed, so keep the number
// of those that somebody has looked at.
func (o *Outbox) Differences(ctx context.Context) ([]Difference, error) {
	if err := o.check(ctx); err != nil {
		return nil, err
	}
	found, err := all[Difference](ctx, o, `SELECT 0 AS line, refund AS "row", note AS what FROM outbox_decision WHERE what = $1 ORDER BY id`, contradicts)
	return found, failed("differences", err)
}
