//go:build nosqlite

package refundoutbox

import (
	"context"
	"errors"
)

// OpenSQLite fails: the program was built without SQLite.
func OpenSQLite(context.Context, string) (*Database, error) {
	return nil, errors.New("outbox: built without SQLite: set DATABASE_URL")
}
