package outbox

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/georgysavva/scany/v2/sqlscan"
)

// A sqlSession runs statements on a *sql.DB or in a *sql.Tx.
type sqlSession struct {
	on interface {
		sqlscan.Querier
		ExecContext(context.Context, string, ...any) (sql.Result, error)
	}
	sqlite bool
}

// numbered writes parameters as the database numbers them: in SQLite, $1 is a name, which
// drivers number by where it first stands.
func (s sqlSession) numbered(statement string) string {
	if s.sqlite {
		return strings.ReplaceAll(statement, "$", "?")
	}
	return statement
}

func (s sqlSession) clock(d time.Duration) string {
	if s.sqlite {
		return "'" + timeText(time.Now().Add(d)) + "'" // the file is on this machine
	}
	return pgxSession{}.clock(d)
}

func (s sqlSession) exec(ctx context.Context, statement string, args ...any) (int64, error) {
	result, err := s.on.ExecContext(ctx, s.numbered(statement), args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (s sqlSession) query(ctx context.Context, slice any, statement string, args ...any) error {
	return sqlscan.Select(ctx, s.on, slice, s.numbered(statement), args...)
}
