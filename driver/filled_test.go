package driver

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/fakedb"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/rule"
)

// These tests check guarantees of the wrapper for INSERTs that get keys, on a server. The
// differential test checks their keys and results.

// openFilled opens a new database with the table ruled (id, a).
func openFilled(t *testing.T, params ...string) (ours, plain *sql.DB) {
	t.Helper()
	ours, plain = openScripted(t, taggedRule(t, "ruled", 0), params...)
	mustExec(t, plain, "CREATE TABLE ruled (id BIGINT PRIMARY KEY, a INT)")
	return ours, plain
}

var bothWays = []string{"interpolateParams=false", "interpolateParams=true"}

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
			db, _ := openFake(t, base, generatorRule(t, counted(), "ruled.id"), Config{Server: "other", Statements: "off"})
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
			fails(t, errOf(db.Exec("INSERT INTO ruled (a) VALUES (?), (?, 1)", 1, 2, 3)), "three arguments for two placeholders")
			equal(t, base.Stmts, 0, "statements left")
		})
	}
}

// hasReturning reports whether the server supports INSERT … RETURNING.
func hasReturning(t *testing.T) bool { return testserver.Has(t, testserver.MariaDB, "RETURNING") }

// A statement is executed once on a good connection. If all connections are bad, the pool's error
// is returned.
func TestFilled_retriedAfterBadConn(t *testing.T) {
	for _, kind := range []fakedb.Kind{fakedb.Direct, fakedb.Skipping} {
		for _, at := range []string{"prepare", "xec"} {
			for bad := range 4 {
				base := &fakedb.Server{Kind: kind}
				db, _ := openFake(t, base, generatorRule(t, counted(), "ruled.id"), Config{Server: "other"})
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

// While the server is down, the underlying driver's errors are returned. Later INSERTs, direct
// and prepared, get keys again.
func TestFilled_serverGoneAndBack(t *testing.T) { onEach(t, testFilled_serverGoneAndBack) }

func testFilled_serverGoneAndBack(t *testing.T) {
	server := testserver.StartSQL(t)
	setup := must(sql.Open("mysql", server.DSN()))(t)
	mustExec(t, setup, "CREATE DATABASE app")
	_ = setup.Close()
	ours, plain := openScriptedOn(t, server.DSN()+"app", taggedRule(t, "ruled", 0))
	mustExec(t, plain, "CREATE TABLE ruled (id BIGINT PRIMARY KEY, a INT)")
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

// Unreadable columns are an error. The statement isn't sent without a key.
func TestColumns_unreadable(t *testing.T) {
	base := &fakedb.Server{Faults: []fakedb.Fault{{At: "SELECT * FROM `t_order` LIMIT 0", Err: fakedb.Err}}}
	db, _ := openFake(t, base, mustParseRule(t, orderRule("")), Config{Server: "other"})
	_, err := db.Exec("INSERT INTO t_order VALUES (NULL, 7)")
	if !errors.Is(err, ErrUnsupportedStatement) || !errors.Is(err, fakedb.Err) || len(base.Sent) > 0 {
		t.Errorf("have: %v, sent %v", err, base.Sent)
	}
}

// orderRule returns a rule with settings of the key column.
func orderRule(settings string) string {
	return ruleText("t_order ds_0.t_order_${0..1} - - order_id:counter", settings, "  keyGenerators: {counter: {type: COUNTER}}\n")
}

// The rule doesn't list the table, but it looks like one of its tables. The setting unlisted says
// whether its INSERTs are sent.
func TestUnlisted(t *testing.T) {
	for _, c := range []struct {
		more    string // more settings of the strategy
		refused bool
		logged  int
	}{
		{"", true, 0}, {", unlisted: refuse", true, 0}, {", unlisted: warn", false, 1}, {", unlisted: pass", false, 0},
	} {
		var log jsonLog
		db, _ := openFake(t, &fakedb.Server{}, mustParseRule(t, orderRule(c.more)), Config{Server: "other"}, WithLogger(log.logger()))
		for range 2 {
			_, err := db.Exec("UPDATE t_order_4 SET user_id = 1")
			noError(t, err)
			if _, err = db.Exec("INSERT INTO t_order_4 (user_id) VALUES (1)"); errors.As(err, new(*rule.UnlistedTableError)) != c.refused || !c.refused && err != nil {
				t.Errorf("%+v\nhave: %v", c, err)
			}
		}
		equal(t, strings.Count(log.String(), "INSERT sent without a key"), c.logged, c)
	}
}

// A row with an explicit key needs none, so the table may be one that the rule forgot.
func TestUnlisted_explicitKeys(t *testing.T) { onEach(t, testUnlisted_explicitKeys) }

func testUnlisted_explicitKeys(t *testing.T) {
	ours, plain := openScripted(t, mustParseRule(t, orderRule("")))
	mustExec(t, plain, "CREATE TABLE t_order_4 (order_id BIGINT AUTO_INCREMENT PRIMARY KEY, user_id INT)")
	mustExec(t, plain, "CREATE TABLE order_9 (token VARCHAR(20) PRIMARY KEY, order_id INT)")
	for i, c := range []struct {
		query   string
		args    []any
		refused bool
	}{
		{"INSERT INTO t_order_4 (order_id, user_id) VALUES (1, 1), (2, 2)", nil, false},
		{"INSERT INTO t_order_4 VALUES (3, 3)", nil, false},
		{"INSERT INTO t_order_4 (order_id, user_id) VALUES (?, ?)", []any{4, 4}, false},
		{"INSERT INTO t_order_4 (order_id, user_id) VALUES (?, ?)", []any{nil, 4}, true},
		{"INSERT INTO t_order_4 (order_id, user_id) VALUES (?, ?)", []any{0, 4}, true},
		{"REPLACE INTO t_order_4 (order_id, user_id) VALUES (?, ?), (6, 6)", []any{5, 5}, false},
		{"INSERT INTO t_order_4 VALUES (?, ?)", []any{7, 4}, false},
		{"INSERT INTO t_order_4 SET order_id = ?, user_id = 1 ON DUPLICATE KEY UPDATE user_id = 5", []any{7}, false},
		{"INSERT INTO t_order_4 (order_id, user_id) VALUES (8, 1), (NULL, 2)", nil, true},
		{"INSERT INTO t_order_4 (order_id, user_id) VALUES (8, 1), (0, 2)", nil, true},
		{"INSERT INTO t_order_4 (order_id, user_id) VALUES (DEFAULT, 2)", nil, true},
		{"INSERT INTO t_order_4 (order_id, user_id) VALUES (1 + 8, 2)", nil, true},
		{"INSERT INTO t_order_4 (user_id) VALUES (1)", nil, true},
		{"INSERT INTO t_order_4 (order_id, user_id) SELECT 9, 1", nil, false},
	} {
		for _, prepared := range []bool{false, true} {
			exec := ours.Exec
			if prepared {
				exec = func(query string, args ...any) (sql.Result, error) {
					st, err := ours.Prepare(query)
					if err != nil {
						return nil, err
					}
					defer st.Close()
					return st.Exec(args...)
				}
			}
			mustExec(t, plain, "DELETE FROM t_order_4 WHERE order_id > 0")
			res, err := exec(c.query, c.args...)
			if refused := errors.As(err, new(*rule.UnlistedTableError)); refused != c.refused || err != nil && !refused {
				t.Errorf("%d %s %v, prepared: %v\nhave: %v\nwant refused: %v", i, c.query, c.args, prepared, err, c.refused)
			} else if err == nil {
				_, err = res.LastInsertId()
				noError(t, err)
			}
		}
	}
	if _, err := ours.Exec("INSERT INTO order_9 (token, order_id) VALUES ('a', 1)"); err != nil {
		t.Error(err) // another name
	}
}

// Arguments decide about an execution, so Plan doesn't refuse them.
func TestUnlisted_plan(t *testing.T) {
	_, c := openFake(t, &fakedb.Server{}, mustParseRule(t, orderRule("")))
	for query, refused := range map[string]bool{
		"INSERT INTO t_order_4 (order_id, user_id) VALUES (1, 1)": false,
		"INSERT INTO t_order_4 (order_id, user_id) VALUES (?, 1)": false,
		"INSERT INTO t_order_4 (user_id) VALUES (?)":              true,
		"INSERT INTO t_order_4 VALUES (?, ?)":                     true,
	} {
		plan, err := c.Plan(query)
		if errors.As(err, new(*rule.UnlistedTableError)) != refused || err == nil && !plan.Detail.Unlisted {
			t.Errorf("%s\nhave: %+v, %v\nwant refused: %v", query, plan, err, refused)
		}
	}
}
