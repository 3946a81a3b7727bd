//go:build unix

package outbox

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/carddata/carddata-go/refunds"
)

// A server is a PostgreSQL server in a directory of its own. A socket there needs no free
// port. The machine does not lose power here, so that fsync has nothing to prove.
type server struct{ dir string }

// servers makes the one that tests share.
var (
	servers   = sync.OnceValues(startServer)
	databases atomic.Int32
)

func TestMain(m *testing.M) {
	if os.Getenv(killedWorker) != "" {
		workUntilKilled()
	}
	if os.Getenv(submitter) != "" {
		submitUntilTerminated()
	}
	code := m.Run()
	if databases.Load() > 0 {
		if s, err := servers(); err == nil {
			s.remove()
		}
	}
	os.Exit(code)
}

var errNoServer = errors.New("no PostgreSQL server is installed: no initdb in PATH or /usr/lib/postgresql")

// program finds a program of PostgreSQL.
func program(name string) (string, error) {
	if initdb, err := exec.LookPath("initdb"); err == nil {
		if initdb, err = filepath.EvalSymlinks(initdb); err == nil {
			return filepath.Join(filepath.Dir(initdb), name), nil
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // where Debian has it
	if len(found) == 0 {
		return "", errNoServer
	}
	return filepath.Join(filepath.Dir(slices.Max(found)), name), nil
}

func startServer() (*server, error) {
	dir, err := os.MkdirTemp("", "pg-") // not t.TempDir, below which another user cannot go
	if err != nil {
		return nil, err
	}
	s := &server{dir}
	return s, cmp.Or(s.run("initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"), s.configure("fsync = off"), s.start())
}

func (s *server) configure(line string) error {
	f, err := os.OpenFile(filepath.Join(s.dir, "data", "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, line)
	return errors.Join(err, f.Close())
}

func (s *server) start() error {
	return s.run("pg_ctl", "-w", "-l", filepath.Join(s.dir, "log"), "-o", "-c listen_addresses='' -c max_connections=200 -k "+s.dir, "start")
}

func (s *server) stop() error { return s.run("pg_ctl", "-m", "immediate", "-w", "stop") }

func (s *server) remove() {
	s.stop()
	os.RemoveAll(s.dir)
}

// run runs a program of PostgreSQL on the server, as a user who is not root.
func (s *server) run(name string, args ...string) error {
	path, err := program(name)
	if err != nil {
		return err
	}
	cmd := exec.Command(path, append([]string{"-D", filepath.Join(s.dir, "data")}, args...)...)
	cmd.Dir = s.dir
	if os.Geteuid() == 0 {
		account, err := user.Lookup("postgres")
		if err != nil {
			account, err = user.Lookup("nobody")
		}
		if err != nil {
			return err
		}
		uid, _ := strconv.Atoi(account.Uid)
		gid, _ := strconv.Atoi(account.Gid)
		if err := os.Chown(s.dir, uid, gid); err != nil {
			return err
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
	log, err := os.Create(filepath.Join(s.dir, name+".out")) // a file, which the server inherits
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%s: %w\n%s", name, err, text)
	}
	return nil
}

// usable skips the test where there is no server, as on many a user's machine, unless
// CI_REQUIRE_SERVERS is set.
func usable(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, errNoServer) && os.Getenv("CI_REQUIRE_SERVERS") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// newDatabase returns the connection string of a new database on the shared server.
func newDatabase(t testing.TB) string {
	t.Helper()
	s, err := servers()
	usable(t, err)
	name := fmt.Sprint("outbox_", databases.Add(1))
	if err := s.execute(t, `CREATE DATABASE `+name); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("postgres:///%s?user=postgres&pool_max_conns=12&host=%s", name, s.dir)
}

// execute runs a statement in the database postgres.
func (s *server) execute(t testing.TB, statement string) error {
	conn, err := pgx.Connect(t.Context(), "postgres:///postgres?user=postgres&host="+s.dir)
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	_, err = conn.Exec(t.Context(), statement)
	return err
}

func openPool(t *testing.T, dsn string) (*Outbox, *pgxpool.Pool) {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	box, err := OpenPostgres(pool)
	if err != nil {
		t.Fatal(err)
	}
	return box, pool
}

// eachDatabase runs a test with an empty database of each kind, by its name, side by side.
func eachDatabase(t *testing.T, f func(t *testing.T, database string)) {
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		f(t, filepath.Join(t.TempDir(), "outbox.db"))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		f(t, newDatabase(t))
	})
}

// openDatabase opens an outbox, and the database once more for an application.
func openDatabase(database string) (box *Outbox, db *sql.DB, err error) {
	if !strings.HasPrefix(database, "postgres:") {
		if box, _, err = openFile(database); err == nil {
			_, db, err = openFile(database)
		}
		return box, db, err
	}
	pool, err := pgxpool.New(context.Background(), database)
	if err != nil {
		return nil, nil, err
	}
	box, err = OpenPostgres(pool)
	return box, stdlib.OpenDBFromPool(pool), err
}

// newSystemOn is a system on an empty database, whose service has an address.
func newSystemOn(t testing.TB, database string) *system {
	t.Helper()
	box, _, err := openDatabase(database)
	if err == nil {
		err = box.Migrate(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, box)
	if s.w.Client, err = refunds.NewClient(s.fake.URL()); err != nil {
		t.Fatal(err)
	}
	return s
}
