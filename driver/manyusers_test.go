package driver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/spi"
)

// reported collects the keys that executions reported, and the row of each.
type reported struct {
	mu   sync.Mutex
	rows map[any]string
}

func (r *reported) add(row string, keys *Keys, want int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(keys.Values()) != want {
		return fmt.Errorf("%d keys of %d", len(keys.Values()), want)
	}
	for _, key := range keys.Values() {
		if other, dup := r.rows[key]; dup || key == nil {
			return fmt.Errorf("key %v of %s was that of %s", key, row, other)
		}
		r.rows[key] = row
	}
	return nil
}

// TestPool_manyUsers: 64 goroutines, three tables of one generator, two pools
// on one connector, statements of every kind, while the rule is replaced. Every
// key that is reported stands in its row, and no other.
func TestPool_manyUsers(t *testing.T) {
	if testserver.Each(t, TestPool_manyUsers) {
		return
	}
	var made atomic.Int64
	next := script(func(_ context.Context, _ spi.Column, n int) ([]any, error) {
		keys := make([]any, n)
		for i, first := 0, made.Add(int64(n))-int64(n); i < n; i++ {
			keys[i] = first + int64(i) + 1
		}
		return keys, nil
	})
	tables := []string{"a", "b", "c"}
	ruled := scriptRule(t, next, "a.id", "b.id", "c.id")
	base := must(mysql.MySQLDriver{}.OpenConnector(testserver.Database(t)))(t)
	connector := mustConnector(t, base, ruled)
	pools := []*sql.DB{sql.OpenDB(connector), sql.OpenDB(connector)}
	for _, db := range pools {
		db.SetMaxOpenConns(10)
	}
	for _, table := range tables {
		mustExec(t, pools[0], "CREATE TABLE "+table+" (id BIGINT NOT NULL PRIMARY KEY, who INT, u INT UNIQUE)")
	}
	seen := reported{rows: map[any]string{}}
	insert := func(db *sql.DB, who int, table string) error {
		row := fmt.Sprintf("%s %d", table, who)
		var all error
		for _, s := range []struct {
			query string
			args  []any
			rows  int
		}{
			{"INSERT INTO %s (who) VALUES (?), (?)", []any{who, who}, 2},
			{fmt.Sprintf("INSERT INTO %%s VALUES (NULL, %d, NULL)", who), nil, 1},
			{"INSERT INTO %s (who) SELECT ? UNION ALL SELECT ?", []any{who, who}, 2},
			{"INSERT INTO %s (who, u) VALUES (?, ?) ON DUPLICATE KEY UPDATE who = -1", []any{who, who}, 1},
		} {
			var keys Keys
			_, err := db.ExecContext(WithKeys(t.Context(), &keys), fmt.Sprintf(s.query, table), s.args...)
			if err == nil {
				err = seen.add(row, &keys, s.rows)
			}
			all = errors.Join(all, err)
		}
		return all
	}
	var users sync.WaitGroup
	for who := range 64 {
		users.Go(func() {
			for _, table := range tables {
				if err := insert(pools[who%2], who, table); err != nil {
					t.Errorf("%d in %s: %v", who, table, err)
				}
			}
			if who%8 == 0 {
				check(t, connector.SetRule(ruled))
			}
		})
	}
	users.Wait()
	checkReported(t, pools[0], tables, seen.rows)
	check(t, errors.Join(pools[0].Close(), pools[1].Close()))
}

// checkReported compares the tables' rows with what was reported.
func checkReported(t *testing.T, db *sql.DB, tables []string, seen map[any]string) {
	t.Helper()
	there := 0
	for _, table := range tables {
		rows := must(db.Query("SELECT id, who FROM " + table))(t)
		for rows.Next() {
			var id, who int64
			noError(t, rows.Scan(&id, &who))
			equal(t, seen[id], fmt.Sprintf("%s %d", table, who), "key", id)
			there++
		}
		check(t, rows.Err())
	}
	if there != len(seen) {
		t.Errorf("%d rows, %d keys", there, len(seen))
	}
}
