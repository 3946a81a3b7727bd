package quota

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// An UnavailableError says that Redis gave no leave: it could not be reached,
// replied too late, or refused. Its text holds no address.
type UnavailableError struct{ Err error }

func (e *UnavailableError) Error() string { return "quota: Redis gave no leave" }
func (e *UnavailableError) Unwrap() error { return e.Err }

var errLate = errors.New("every slot came too late to be used")

// A DeadlineError says that leave would come after the deadline. No slot was
// taken. It is a [context.DeadlineExceeded].
type DeadlineError struct{ Wait time.Duration }

func (e *DeadlineError) Error() string {
	return fmt.Sprintf("quota: the queue is %s long, which is beyond the deadline", e.Wait.Round(time.Millisecond))
}
func (e *DeadlineError) Unwrap() error { return context.DeadlineExceeded }
