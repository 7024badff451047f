package driver

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/test/fakedb"
	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// These tests check guarantees of the wrapper for INSERTs that get keys, on a server. The
// differential test checks their keys and results.

// openFilled opens a new database with the table ruled (id, a).
func openFilled(t *testing.T, params ...string) (ours, plain *sql.DB, connector *Connector) {
	t.Helper()
	return openFilledOn(t, testserver.Database(t)+"?"+strings.Join(params, "&"))
}

func openFilledOn(t *testing.T, dsn string) (ours, plain *sql.DB, connector *Connector) {
	t.Helper()
	cfg := must(mysql.ParseDSN(dsn))(t)
	base := must(mysql.NewConnector(cfg))(t)
	connector = mustConnector(t, base, taggedRule(t, "ruled", 0))
	ours, plain = sql.OpenDB(connector), sql.OpenDB(base)
	t.Cleanup(func() {
		check(t, errors.Join(ours.Close(), plain.Close()))
	})
	mustExec(t, plain, "CREATE TABLE ruled (id BIGINT PRIMARY KEY, a INT)")
	return ours, plain, connector
}

var bothWays = []string{"interpolateParams=false", "interpolateParams=true"}

// issued returns the number of keys that the connector's generator has generated.
func issued(c *Connector) int64 { return healthOf(c)["test"].Issued }

// healthOf returns the health of a connector's generators by name.
func healthOf(c *Connector) map[string]spi.Health {
	all := map[string]spi.Health{}
	for _, status := range c.current().generators.Status() {
		name := status.Name
		if status.Assigner {
			name = "workerIdAssigners." + name
		}
		all[name] = status.Health
	}
	return all
}

// An INSERT that gets keys converts its arguments once, and leaves nothing prepared.
func TestFilled_leavesNoStatement(t *testing.T) {
	for _, kind := range fakedb.Kinds {
		t.Run(string(kind), func(t *testing.T) {
			base := &fakedb.Server{Kind: kind, Query: func(query string) (driver.Rows, error) {
				if strings.Contains(query, "RETURNING") {
					return &fakedb.Rows{Names: []string{"id"}, Values: [][]driver.Value{{int64(1)}}}, nil
				}
				return nil, driver.ErrSkip
			}}
			db, _ := openFake(t, base, scriptRule(t, counted(new(int64)), "ruled.id"), Config{Server: "other", Statements: "off"})
			asked := 0
			mustExec(t, db, "INSERT INTO ruled (a) VALUES (?)", countingValuer{&asked})
			equal(t, asked, 1, "Exec asked")
			rows := must(db.Query("INSERT INTO ruled (a) VALUES (?) RETURNING id", countingValuer{&asked}))(t)
			equal(t, must(rows.ColumnTypes())(t)[0].DatabaseTypeName(), "FAKE")
			noError(t, drain(rows, nil))
			equal(t, asked, 2, "Exec and Query asked")
			base.Faults = []fakedb.Fault{{At: "xec", Times: -1, Err: fakedb.Err}}
			if _, err := db.Exec("INSERT INTO ruled (a) VALUES (?)", 1); err != fakedb.Err {
				t.Errorf("have: %v\nwant: %v", err, fakedb.Err)
			}
			if _, err := db.Exec("INSERT INTO ruled (a) VALUES (?), (?, 1)", 1, 2, 3); err == nil {
				t.Error("three arguments for two placeholders")
			}
			equal(t, base.Stmts, 0, "statements left")
		})
	}
}

// The underlying driver gets one Prepare, one execution and one Close, as without shardkey.
func TestFilled_callsOfBase(t *testing.T) {
	base := &fakedb.Server{Kind: fakedb.Skipping}
	db := sql.OpenDB(mustConnector(t, base, taggedRule(t, "ruled", 0)))
	defer db.Close()
	mustExec(t, db, "UPDATE warm SET up = 1")
	base.Calls = nil
	mustExec(t, db, "INSERT INTO ruled (a) VALUES (?)", 5)
	want := []string{"execContext skips", "prepareContext ", "stmt execContext ", "stmt close"}
	seen := fmt.Sprint(base.Calls)
	for _, call := range want {
		if strings.Count(seen, call) != 1 {
			t.Errorf("%q\nhave: %s", call, lines(base.Calls))
		}
	}
	equal(t, base.Stmts, 0, "statements left")
}

// hasReturning reports whether the server supports INSERT … RETURNING.
func hasReturning(t *testing.T) bool {
	return testserver.Has(t, testserver.MariaDB, "RETURNING")
}

// A statement is executed once on a good connection. If all connections are bad, the pool's error
// is returned.
func TestFilled_retriedAfterBadConn(t *testing.T) {
	for _, kind := range []fakedb.Kind{fakedb.Direct, fakedb.Skipping, fakedb.Minimal} {
		for _, at := range []string{"prepare", "xec"} {
			for bad := range 4 {
				base := &fakedb.Server{Kind: kind}
				db, _ := openFake(t, base, scriptRule(t, counted(new(int64)), "ruled.id"), Config{Server: "other"})
				base.Faults = []fakedb.Fault{{At: at, Times: max(bad, 1), Err: driver.ErrBadConn}}[:min(bad, 1)]
				_, err := db.Exec("INSERT INTO ruled (a) VALUES (?)", 1)
				want, sent := error(nil), 1
				if bad == 3 && base.Count("connect") == 3 { // more connections than database/sql tries
					want, sent = driver.ErrBadConn, 0
				}
				if err != want || len(base.Sent) != sent {
					t.Errorf("%s, %s fails %d times\nhave: %v, sent %v\nwant: %v", kind, at, bad, err, base.Sent, want)
				}
			}
		}
	}
}

func TestFilled_withoutContexts(t *testing.T) { onEach(t, testFilled_withoutContexts) }

func testFilled_withoutContexts(t *testing.T) {
	for _, params := range bothWays {
		t.Run(params, func(t *testing.T) {
			ours, plain, _ := openFilled(t, params)
			conn, err := ours.Conn(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			err = conn.Raw(func(c any) error {
				res, err := c.(oldExecer).Exec("INSERT INTO ruled (a) VALUES (1), (2)", nil)
				if err != nil {
					return err
				}
				if ids := res.(mysql.Result).AllLastInsertIds(); len(ids) != 1 || ids[0] == 0 {
					t.Errorf("AllLastInsertIds: %v", ids)
				}
				if n := res.(mysql.Result).AllRowsAffected(); len(n) != 1 || n[0] != 2 {
					t.Errorf("AllRowsAffected: %v", n)
				}
				query := "INSERT INTO ruled (a) VALUES (3)"
				if hasReturning(t) {
					query += " RETURNING id"
				}
				rows, err := c.(oldQueryer).Query(query, nil)
				if err != nil {
					return err
				}
				if err := rows.Close(); err != nil {
					return err
				}
				st, err := c.(driver.Conn).Prepare("INSERT INTO ruled (a) VALUES (?)")
				if err != nil {
					return err
				}
				equal(t, st.NumInput(), 1, "NumInput")
				_, err = st.(interface {
					Exec(args []driver.Value) (driver.Result, error)
				}).Exec([]driver.Value{int64(4)})
				return errors.Join(err, st.Close())
			})
			check(t, errors.Join(err, conn.Close()))
			equal(t, number(t, plain, "SELECT COUNT(*) FROM ruled WHERE id > 0"), 4, "rows")
		})
	}
}

// A prepared statement works on all connections of its pool.
func TestFilled_preparedOnOtherConnections(t *testing.T) {
	base := &fakedb.Server{Kind: fakedb.Skipping}
	db, _ := openFake(t, base, taggedRule(t, "ruled", 0), Config{Server: "other"})
	st := must(db.Prepare("INSERT INTO ruled (a) VALUES (?)"))(t)
	defer st.Close()
	for range 3 {
		tx := must(db.Begin())(t)
		must(tx.Stmt(st).Exec(1))(t)
		must(st.Exec(2))(t)
		check(t, tx.Commit())
	}
	equal(t, len(base.Queries("`id`")), 6, "INSERTs with a key")
	equal(t, base.Count("connect"), 2, "connections")
}

// A prepared statement follows changes of the connector's rule, in both directions.
func TestFilled_plannedAgainAfterSetRule(t *testing.T) {
	base := &fakedb.Server{Kind: fakedb.Skipping}
	db, c := openFake(t, base, taggedRule(t, "ruled", 0), Config{Server: "other"})
	db.SetMaxOpenConns(1)
	st := must(db.Prepare("INSERT INTO ruled (a) VALUES (?)"))(t)
	left := base.Stmts
	for i := range 6 { // with the table, without it, with it, …
		must(st.Exec(i))(t)
		equal(t, strings.Contains(base.Sent[i].Query, "`id`"), i%2 == 0, "with a key: ", base.Sent[i])
		noError(t, c.SetRule(taggedRule(t, []string{"another", "ruled"}[i%2], 0)))
	}
	equal(t, base.Stmts, left, "statements")
	check(t, st.Close())
}

// While the server is down, the underlying driver's errors are returned. Later INSERTs, direct
// and prepared, get keys again.
func TestFilled_serverGoneAndBack(t *testing.T) { onEach(t, testFilled_serverGoneAndBack) }

func testFilled_serverGoneAndBack(t *testing.T) {
	server := testserver.StartSQL(t)
	setup := must(sql.Open("mysql", server.DSN()))(t)
	mustExec(t, setup, "CREATE DATABASE app")
	_ = setup.Close()
	ours, plain, _ := openFilledOn(t, server.DSN()+"app?timeout=5s")
	st := must(ours.Prepare("INSERT INTO ruled (a) VALUES (?)"))(t)
	defer st.Close()
	use := func() (errs []error) {
		for range 3 { // so that the statement is cached
			_, direct := ours.Exec("INSERT INTO ruled (a) VALUES (?)", 1)
			_, prepared := st.Exec(2)
			errs = append(errs, direct, prepared)
		}
		return errs
	}
	noError(t, errors.Join(use()...))
	server.Kill()
	for _, err := range use() {
		if err == nil || strings.Contains(err.Error(), "shardkey") {
			t.Errorf("have: %v\nwant: the base's error", err)
		}
	}
	server.Start()
	check(t, errors.Join(use()...))
	equal(t, number(t, plain, "SELECT COUNT(*) FROM ruled WHERE id > 0"), 12, "rows")
}

func TestFilled_leavesNoGoroutine(t *testing.T) {
	if testserver.Each(t, TestFilled_leavesNoGoroutine) {
		return
	}
	_, _, c := openFilled(t)
	before := runtime.NumGoroutine()
	for range 3 {
		connector := mustConnector(t, c.Unwrap(), taggedRule(t, "ruled", 0))
		for range 2 {
			db := sql.OpenDB(connector)
			for i := range 5 {
				mustExec(t, db, "INSERT INTO ruled (a, id) VALUES (?, NULL) ON DUPLICATE KEY UPDATE a = 1", i)
			}
			check(t, errors.Join(db.Close(), connector.Close(), connector.Close()))
		}
	}
	for range 1_000_000 { // go-sql-driver's goroutines end by themselves, soon after
		if runtime.NumGoroutine() <= before {
			return
		}
		runtime.Gosched()
	}
	if have := runtime.NumGoroutine(); have > before {
		t.Errorf("goroutines\nhave: %d\nwant: %d", have, before)
	}
}

// sentForms are the statements sent for each form if nothing is known about the server. The keys
// are bound or plain literals: 1001, 1002, … Any unexpected statement fails the test, so there
// are no unnecessary queries.
var sentForms = []struct {
	query string
	args  []any
	sent  string
	bound []any
	keys  []any
}{
	{"INSERT INTO t_order_0 (user_id) VALUES (7)", nil,
		"INSERT INTO t_order_0 (user_id, `order_id`) VALUES (7, 1001)", nil, []any{int64(1001)}},
	{"INSERT INTO t_order_0 (user_id) VALUES (?), (8), (?)", []any{7, 9},
		"INSERT INTO t_order_0 (user_id, `order_id`) VALUES (?, ?), (8, ?), (?, ?)", []any{7, 1001, 1002, 9, 1003}, []any{int64(1001), int64(1002), int64(1003)}},
	{"INSERT INTO t_order_1 (order_id, user_id) VALUES (NULL, ?), (DEFAULT, 8), (5, ?)", []any{7, 9},
		"INSERT INTO t_order_1 (order_id, user_id) VALUES (?, ?), (?, 8), (5, ?)", []any{1001, 7, 1002, 9}, []any{int64(1001), int64(1002), int64(5)}},
	{"INSERT INTO t_order (order_id, user_id) VALUES (?, ?), (?, ?)", []any{nil, 7, 5, 8},
		"INSERT INTO t_order (order_id, user_id) VALUES (?, ?), (?, ?)", []any{1001, 7, 5, 8}, []any{int64(1001), int64(5)}},
	{"INSERT INTO t_order SET user_id = ?", []any{7},
		"INSERT INTO t_order SET user_id = ?, `order_id` = ?", []any{7, 1001}, []any{int64(1001)}},
	{"INSERT INTO t_order SET order_id = DEFAULT, user_id = 7", nil,
		"INSERT INTO t_order SET order_id = 1001, user_id = 7", nil, []any{int64(1001)}},
	{"REPLACE t_order (user_id) VALUES (?)", []any{7},
		"REPLACE t_order (user_id, `order_id`) VALUES (?, ?)", []any{7, 1001}, []any{int64(1001)}},
	{"INSERT IGNORE INTO t_order (user_id) VALUES (?)", []any{7},
		"INSERT IGNORE INTO t_order (user_id, `order_id`) VALUES (?, ?)", []any{7, 1001}, []any{int64(1001)}},
	{"INSERT INTO t_order () VALUES (), ()", nil,
		"INSERT INTO t_order (`order_id`) VALUES (1001), (1002)", nil, []any{int64(1001), int64(1002)}},
	{"INSERT INTO `app`.`T_ORDER_1` (`user_id`) VALUE (?) -- x", []any{7},
		"INSERT INTO `app`.`T_ORDER_1` (`user_id`, `order_id`) VALUE (?, ?) -- x", []any{7, 1001}, []any{int64(1001)}},
	{"/* ? */ INSERT INTO t_order (user_id) /* ? */ VALUES (?)", []any{"it's ?"},
		"/* ? */ INSERT INTO t_order (user_id, `order_id`) /* ? */ VALUES (?, ?)", []any{"it's ?", 1001}, []any{int64(1001)}},
	{"INSERT INTO t_order (order_id) VALUES (5), (6)", nil,
		"INSERT INTO t_order (order_id) VALUES (5), (6)", nil, []any{int64(5), int64(6)}},
	{"INSERT INTO t_order (order_id) VALUES (CAST(@x AS SIGNED))", nil,
		"INSERT INTO t_order (order_id) VALUES (SUBSTRING_INDEX(TRIM(LEADING ',' FROM CONCAT_WS(',', TRIM(LEADING '0' FROM CAST((CAST(@x AS SIGNED)) AS DECIMAL(20))), 1002)), ',', 1))", nil, []any{nil}},
	{"INSERT INTO t_order (user_id, order_id) VALUES (1, 2, 3)", nil,
		"INSERT INTO t_order (user_id, order_id) VALUES (~0 + 1, 1, 2, 3)", nil, nil},
}

func TestSent_forms(t *testing.T) {
	key := regexp.MustCompile(`\b100\d\b`)
	for _, f := range sentForms {
		for _, d := range doors[:4] {
			t.Run(d.name+"/"+f.query, func(t *testing.T) {
				base := &fakedb.Server{Result: fakedb.Result{Affected: int64(len(f.keys)), ID: 5}}
				db, _ := openFake(t, base, mustParseRule(t, orderRule), Config{Server: "other"})
				var keys Keys
				res := must(d.exec(WithKeys(t.Context(), &keys), db, f.query, f.args...))(t)
				n, err := res.RowsAffected()
				if err != nil || n != int64(len(f.keys)) || fmt.Sprint(keys.Values()) != fmt.Sprint(f.keys) {
					t.Errorf("have: %d rows, %v, keys %v\nwant: %v", n, err, keys.Values(), f.keys)
				}
				sent, bound := f.sent, f.bound
				if d.name == "Stmt" && bound == nil { // a prepared statement always binds its keys
					for _, key := range key.FindAllString(sent, -1) {
						bound = append(bound, key)
					}
					sent = key.ReplaceAllString(sent, "?")
				}
				equal(t, fmt.Sprint(base.Sent), fmt.Sprintf("[%s %v]", sent, bound), "sent")
			})
		}
	}
}

// The table lists the round trips of INSERT … SELECT.
func TestSent_insertSelect(t *testing.T) {
	base := &fakedb.Server{Kind: fakedb.Skipping, Result: fakedb.Result{Affected: 3},
		Faults: []fakedb.Fault{{At: "ROLLBACK TO", Err: &mysql.MySQLError{Number: 1305}}},
		Query: func(query string) (driver.Rows, error) {
			if !strings.Contains(query, "users") {
				return nil, driver.ErrSkip
			}
			return &fakedb.Rows{Names: []string{"id"}, Values: [][]driver.Value{{int64(1)}, {int64(2)}, {int64(3)}}}, nil
		}}
	db, _ := openFake(t, base, mustParseRule(t, orderRule), Config{Server: "other"})
	res := must(db.Exec("INSERT INTO t_order (user_id) SELECT id FROM users WHERE id < ?", 9))(t)
	equal(t, must(res.LastInsertId())(t), 1001, "LastInsertId")
	var have []string
	for _, call := range base.Calls {
		if _, query, ok := strings.Cut(call, "ontext "); ok && !strings.Contains(call, "prepare") && !strings.HasPrefix(query, "SHOW ") {
			have = append(have, strings.ReplaceAll(query, "  ", " "))
		}
	}
	want := []string{
		"SAVEPOINT shardkey_rows", "ROLLBACK TO SAVEPOINT shardkey_rows", "SET autocommit = 0",
		"SELECT id FROM users WHERE id < ? [{ 1 9}]",
		"INSERT INTO t_order (`user_id`, `order_id`) VALUES (?,?),(?,?),(?,?) [{ 1 1} { 2 1001} { 3 2} { 4 1002} { 5 3} { 6 1003}]",
		"COMMIT", "SET autocommit = 1", "SELECT LAST_INSERT_ID(1001)",
	}
	if len(have) != len(want)+1 || !strings.Contains(have[0], "@@max_allowed_packet") {
		t.Fatalf("have: %s\nwant: a question and %s", lines(have), lines(want))
	}
	for i := range want {
		if !strings.HasPrefix(have[i+1], want[i]) {
			t.Errorf("have: %s\nwant: %s", have[i+1], want[i])
		}
	}
}

// Unreadable columns are an error. The statement isn't sent without a key.
func TestColumns_unreadable(t *testing.T) {
	base := &fakedb.Server{Faults: []fakedb.Fault{{At: "SELECT * FROM `t_order` LIMIT 0", Err: fakedb.Err}}}
	db, _ := openFake(t, base, mustParseRule(t, orderRule), Config{Server: "other"})
	_, err := db.Exec("INSERT INTO t_order VALUES (NULL, 7)")
	if !errors.Is(err, ErrUnsupportedStatement) || !errors.Is(err, fakedb.Err) || len(base.Sent) > 0 {
		t.Errorf("have: %v, sent %v", err, base.Sent)
	}
}

const orderRule = `
rules:
- !SHARDING
  tables:
    t_order:
      actualDataNodes: ds_0.t_order_${0..1}
      keyGenerateStrategy: {column: order_id, keyGeneratorName: counter}
  keyGenerators:
    counter: {type: COUNTER}
`

// The rule doesn't list these tables, but they look like one of its tables.
func TestUnlisted(t *testing.T) {
	const four = "INSERT INTO t_order_4 (user_id) VALUES (1)"
	for _, c := range []struct {
		name, more, policy string // more settings of the strategy
		query              string
		refused            bool
		logged             int
	}{
		{"by default", "", "", four, true, 0},
		{"refuse", "", "refuse", "REPLACE INTO app.T_ORDER_4 SELECT 1", true, 0},
		{"warn", "", "warn", four, false, 1},
		{"pass", "", "pass", four, false, 0},
		{"the rule says pass", ", unlisted: pass", "refuse", four, false, 0},
		{"the rule says refuse", ", unlisted: refuse", "pass", four, true, 0},
		{"another table", "", "", "INSERT INTO t_orders (user_id) VALUES (1)", false, 0},
		{"a query", "", "", "UPDATE t_order_4 SET user_id = 1", false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log bytes.Buffer
			r := mustParseRule(t, strings.Replace(orderRule, "Name: counter", "Name: counter"+c.more, 1))
			base := &fakedb.Server{}
			db, _ := openFake(t, base, r, Config{Server: "other", Unlisted: c.policy}, WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			for range 2 {
				_, err := db.Exec(c.query)
				var unlisted *rule.UnlistedTableError
				refused := errors.As(err, &unlisted) && errors.Is(err, ErrUnsupportedStatement) && unlisted.Like.Logical == "t_order"
				if refused != c.refused || !c.refused && err != nil {
					t.Errorf("have: %v\nwant: refused: %t", err, c.refused)
				}
			}
			if equal(t, strings.Count(log.String(), "similar to the actual tables"), c.logged, "logged"); (len(base.Sent) > 0) == c.refused {
				t.Errorf("sent: %v", base.Sent)
			}
		})
	}
}
