package workerid_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/spi"
)

// A server that is killed, away, and started again: the lease stands to its
// limit, says so, and goes on afterwards as if nothing had been.
func TestSQLStore_serverKilledAndBack(t *testing.T) {
	if testserver.Each(t, TestSQLStore_serverKilledAndBack) {
		return
	}
	server := testserver.StartSQL(t)
	mustExec(t, server.DSN(), "CREATE DATABASE w")
	store := mustSQL(t, server.DSN()+"w", "shardkey_worker")
	// An hour's lease: nothing here depends on how long the server takes.
	a := workerid.Assign(t, store, workerid.Config{Lease: 3600e9, Renew: 1800e9})
	l := mustAcquire(t, a, 1023)
	limit := l.Limit()

	server.Kill()
	if err := l.Renew(t.Context(), limit); !errors.Is(err, spi.ErrStore) || errors.Is(err, spi.ErrLeaseLost) {
		t.Errorf("Renew while the server is away\nhave: %v\nwant: spi.ErrStore", err)
	}
	if _, err := a.AcquireWorkerID(t.Context(), 1023); !errors.Is(err, spi.ErrStore) {
		t.Errorf("Acquire while the server is away\nhave: %v\nwant: spi.ErrStore", err)
	}
	wantMS(t, "limit", l.Limit(), limit)
	if h := a.Health(); h.Err == nil || h.LeaseLimit.UnixMilli() != limit {
		t.Errorf("health\nhave: %+v\nwant: an error and the limit", h)
	}

	server.Start()
	if err := l.Renew(t.Context(), limit); err != nil || l.Limit() <= limit {
		t.Errorf("Renew when the server is back\nhave: %v, limit %d\nwant: one beyond %d", err, l.Limit(), limit)
	}
	if other := mustAcquire(t, a, 1023); other.WorkerID() == l.WorkerID() {
		t.Errorf("worker id %d twice: the server forgot a lease", l.WorkerID())
	}
	if h := a.Health(); h.Err != nil {
		t.Errorf("health\nhave: %v\nwant: nil", h.Err)
	}
}

func TestSQLStore_wrongPasswordIsNotShown(t *testing.T) {
	if testserver.Each(t, TestSQLStore_wrongPasswordIsNotShown) {
		return
	}
	config, err := mysql.ParseDSN(testserver.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	config.User, config.Passwd = "nobody", "secret-word"
	store := mustSQL(t, config.FormatDSN(), "shardkey_worker")
	a := workerid.Assign(t, store, workerid.Config{})
	_, err = a.AcquireWorkerID(t.Context(), 1023)
	var refused *mysql.MySQLError
	if !errors.Is(err, spi.ErrStore) || !errors.As(err, &refused) || strings.Contains(err.Error(), "secret-word") {
		t.Errorf("have: %v\nwant: spi.ErrStore and the server's refusal, without the password", err)
	}
}
