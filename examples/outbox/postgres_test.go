//go:build unix

package main

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	"github.com/carddata/carddata-go/examples/internal/program"
	"github.com/carddata/carddata-go/examples/outbox/refundoutbox"
)

// newPostgres starts a service of the test's own, and a PostgreSQL server in a
// temporary directory.
func newPostgres(t *testing.T) *system {
	t.Helper()
	s := newUnmigrated(t)
	if err := s.db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// newUnmigrated is newPostgres without the tables.
func newUnmigrated(t *testing.T) *system {
	t.Helper()
	url := startPostgres(t)
	db, err := refundoutbox.OpenPostgres(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, db, program.Variables{"DATABASE_URL": url})
}

// startPostgres returns the connection string of a server that ends with the test.
func startPostgres(t *testing.T) string {
	t.Helper()
	if racing {
		t.Skip("the program and the server are other processes, of which the race detector sees nothing")
	}
	findPostgres(t)
	// Not t.TempDir, below which another user cannot go.
	dir, err := os.MkdirTemp("", "pg-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	runPostgres(t, dir, "initdb", "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync")
	// A socket in the directory needs no free port. The machine does not lose power
	// here, so that fsync has nothing to prove.
	runPostgres(t, dir, "pg_ctl", "-w", "-l", filepath.Join(dir, "log"), "-o", "-c listen_addresses='' -c fsync=off -k "+dir, "start")
	t.Cleanup(func() { runPostgres(t, dir, "pg_ctl", "-m", "immediate", "stop") })
	return "postgres:///postgres?user=postgres&pool_max_conns=12&host=" + dir
}

// runPostgres runs a program of PostgreSQL on the server in a directory.
func runPostgres(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(filepath.Join(filepath.Dir(findPostgres(t)), name), append([]string{"-D", filepath.Join(dir, "data")}, args...)...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: unprivileged(t, dir)}
	log, err := os.Create(filepath.Join(dir, name+".out"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log // a file: the server inherits it
	if err := cmd.Run(); err != nil {
		text, _ := os.ReadFile(log.Name())
		t.Fatalf("%s: %v\n%s", name, err, text)
	}
}

// findPostgres skips the test where there is no server, as on many a user's
// machine, unless CI_REQUIRE_SERVERS is set.
func findPostgres(t *testing.T) string {
	t.Helper()
	if initdb, err := exec.LookPath("initdb"); err == nil {
		if initdb, err = filepath.EvalSymlinks(initdb); err == nil {
			return initdb
		}
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // where Debian has it
	if len(found) == 0 {
		const text = "no PostgreSQL server is installed: no initdb in PATH or /usr/lib/postgresql"
		if os.Getenv("CI_REQUIRE_SERVERS") != "" {
			t.Fatal(text)
		}
		t.Skip(text)
	}
	slices.Sort(found)
	return found[len(found)-1]
}

// unprivileged gives the directory to a user who is not root, under whom
// PostgreSQL refuses to run.
func unprivileged(t *testing.T, dir string) *syscall.Credential {
	t.Helper()
	if os.Geteuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		account, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, _ := strconv.Atoi(account.Uid)
		gid, _ := strconv.Atoi(account.Gid)
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	t.Fatal("no user to run PostgreSQL as")
	return nil
}

func TestPostgresKilled(t *testing.T) {
	t.Parallel()
	testKilled(t, newPostgres(t), 2)
}
