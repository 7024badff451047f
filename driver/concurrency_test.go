package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/test/fakedb"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// strict is a generator that detects use after Close, and a second Close.
type strict struct{ closed atomic.Bool }

// strictFaults counts such uses. strictLive counts the open generators.
var strictFaults, strictLive atomic.Int64

func init() {
	spi.RegisterKeyGenerator("STRICT", func(spi.Props) (spi.KeyGenerator, error) {
		strictLive.Add(1)
		return new(strict), nil
	})
}

func (g *strict) GenerateKeys(ctx context.Context, c spi.Column, n int) ([]any, error) {
	return spi.KeysFromInts(ctx, g, c, n)
}

func (g *strict) GenerateInt64Keys(_ context.Context, _ spi.Column, keys []int64) error {
	for i := range keys {
		keys[i] = int64(1 + i)
	}
	runtime.Gosched() // gives a premature Close a chance
	if g.closed.Load() {
		strictFaults.Add(1)
	}
	return nil
}

func (g *strict) Close() error {
	if g.closed.Swap(true) {
		strictFaults.Add(1)
	}
	strictLive.Add(-1)
	return nil
}

func strictRule(t *testing.T, tables ...string) *rule.Rule {
	t.Helper()
	return mustParseRule(t, ruleText(strings.Join(tables, " - - - id:strict\n")+" - - - id:strict", "",
		"  keyGenerators: {strict: {type: STRICT}}\n"))
}

// TestConnector_ruleReplacedWhileInUse replaces the rule while 64 goroutines insert, directly and
// prepared, on connections that open and close. No generator may be used after Close, and none
// may stay open.
func TestConnector_ruleReplacedWhileInUse(t *testing.T) {
	rules := []*rule.Rule{strictRule(t, "a", "b"), strictRule(t, "a"), strictRule(t, "b", "c")}
	db, c := idleDB(t, rules[0])
	db.SetMaxIdleConns(8)
	const query = "INSERT INTO a (x) VALUES (?), (?)"
	st := must(db.Prepare(query))(t)
	var users sync.WaitGroup
	for range 64 {
		users.Go(func() {
			for range 50 {
				_, err1 := db.Exec(query, 1, 2)
				_, err2 := st.Exec(1, 2)
				_, err3 := db.Exec("INSERT INTO b (x) VALUES (1)")
				if err := errors.Join(err1, err2, err3); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() { users.Wait(); close(ended) }()
	for i := 0; ; i++ {
		check(t, c.SetRule(rules[i%len(rules)]))
		select {
		case <-ended:
			check(t, errors.Join(st.Close(), db.Close()))
			if faults, live := strictFaults.Load(), strictLive.Load(); faults != 0 || live != 0 {
				t.Errorf("after %d rules\nhave: %d uses of closed generators, %d open\nwant: none", i+1, faults, live)
			}
			return
		default:
		}
	}
}

// A connection that is used after Close returns an error, not keys.
func TestConn_usedAfterClose(t *testing.T) {
	connector := must(NewConnector(&fakedb.Server{Quiet: true}, strictRule(t, "a"), Config{Server: "other"}))(t)
	c := must(connector.Connect(t.Context()))(t)
	const query = "INSERT INTO a (x) VALUES (1)"
	st := must(c.Prepare(query))(t)
	noError(t, errors.Join(c.Close(), connector.Close()))
	isError(t, errOf(c.(driver.ExecerContext).ExecContext(t.Context(), query, nil)), spi.ErrClosed)
	isError(t, errOf(st.(driver.StmtExecContext).ExecContext(t.Context(), nil)), spi.ErrClosed, "prepared")
}

// reported collects the keys that executions reported, with their rows.
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

// TestPool_manyUsers has 64 goroutines, three tables of one generator, two pools on one
// connector, and statements of every kind, while the rule is replaced. Each row must have its
// reported key.
func TestPool_manyUsers(t *testing.T) { onEach(t, testPool_manyUsers) }

func testPool_manyUsers(t *testing.T) {
	tables := []string{"a", "b", "c"}
	ruled := generatorRule(t, counted(), "a.id", "b.id", "c.id")
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

// checkReported compares the tables' rows with the reported keys.
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
	equal(t, there, len(seen), "rows", "keys")
}
