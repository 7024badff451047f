package differential

import (
	"context"
	"database/sql"
	"testing"

	testmust "github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// must is short for must.Get: must(db.Conn(ctx))(t).
func must[T any](v T, err error) func(t testing.TB, what ...any) T { return testmust.Get(v, err) }

var noError = testmust.Do

// mustExec executes a statement on a *sql.DB, *sql.Conn or *sql.Tx.
func mustExec(t testing.TB, on interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}, query string, args ...any,
) sql.Result {
	t.Helper()
	return must(on.ExecContext(context.Background(), query, args...))(t, query)
}

// onEach runs testserver.Each in parallel with other tests.
func onEach(t *testing.T, test func(*testing.T)) {
	t.Helper()
	t.Parallel()
	testserver.Each(t, func(t *testing.T) { t.Parallel(); test(t) })
}
