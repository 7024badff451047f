package driver

import (
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/internal/test/fakedb"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

// TestPlan_form: a plan knows whether its statement is cached, and whether it has a single row whose key no
// clause affects.
func TestPlan_form(t *testing.T) {
	r := mustParseRule(t, ruleText(`
		plain  -                   - -          id:ids
		byuser ds.byuser_${0..1}   - user_id:m2 id:ids
	`, "", `
  shardingAlgorithms:
    m2: {type: INLINE, props: {algorithm-expression: "byuser_${user_id % 2}"}}
  keyGenerators:
    ids: {type: SNOWFLAKE, props: {worker-id: 1}}
`))
	c := openConn(t, &fakedb.Server{Quiet: true}, r, Config{Server: "mariadb"})
	for _, of := range []struct {
		query  string
		single bool
	}{
		{"INSERT INTO plain (a) VALUES (?)", true},
		{"INSERT INTO plain (a) VALUES (1)", true},
		{"INSERT INTO plain (a) VALUES (?), (?)", false},
		{"INSERT INTO plain (id, a) VALUES (?, ?)", false},
		{"INSERT INTO plain (id, a) VALUES (NULL, ?)", true},
		{"INSERT INTO plain (a) VALUES (@a)", true},
		{"INSERT IGNORE INTO plain (a) VALUES (?)", true},
		{"INSERT INTO plain (a) VALUES (?) RETURNING a", false},
		{"INSERT INTO plain (a) VALUES (LAST_INSERT_ID())", false},
		{"INSERT INTO plain (a) VALUES (?) ON DUPLICATE KEY UPDATE a = 1", false},
		{"INSERT INTO plain (a) VALUES (?, ?)", false},
		{"INSERT INTO plain (a) SELECT a FROM t", false},
		{"INSERT INTO byuser_1 (user_id) VALUES (?)", true},
		{"INSERT INTO byuser_1 (user_id) VALUES (?) ON DUPLICATE KEY UPDATE user_id = ?", false},
	} {
		var have planned
		noError(t, c.planFor(t.Context(), of.query, &have))
		p := have.plan
		equal(t, p.how == base.AnyTypes, !strings.Contains(of.query, "@"), of.query, "is cached")
		equal(t, p.single, of.single, of.query, "is single")
	}
}

// TestArguments_unnumbered: arguments of a caller that doesn't number them, as database/sql does, are sent as they are.
func TestArguments_unnumbered(t *testing.T) {
	s := &fakedb.Server{}
	c := openConn(t, s, generatorRule(t, textKeys{}, "t.id"), Config{Server: "mariadb"})
	wide := fakedb.Wide{N: 3}
	must(c.ExecContext(t.Context(), "INSERT INTO t (a, b) VALUES (?, ?)", []driver.NamedValue{{Value: wide}, {Value: 1}}))(t)
	sent := s.Sent[len(s.Sent)-1]
	equal(t, strings.Contains(fmt.Sprint(sent), fmt.Sprint(wide)), true, sent)
}

// keepingArgs is a driver that keeps the arguments of all executions, as one that logs them later does.
type keepingArgs struct {
	driver.Connector
	args *[][]driver.NamedValue
}

func (k keepingArgs) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := k.Connector.Connect(ctx)
	return keepingConn{c.(fakedb.Conn), k.args}, err
}

type keepingConn struct {
	fakedb.Conn
	args *[][]driver.NamedValue
}

func (c keepingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	*c.args = append(*c.args, args)
	return c.Conn.ExecContext(ctx, query, args)
}

// TestArguments_kept: arguments that a driver keeps don't change later. go-sql-driver keeps none, so a
// connection gives it the same buffer again.
func TestArguments_kept(t *testing.T) {
	var kept [][]driver.NamedValue
	db, _ := openFake(t, keepingArgs{&fakedb.Server{}, &kept}, benchRule(t), Config{Server: "mysql", Statements: "off"})
	var want []any
	for i, rows := range []int{1, 5, 1, 100, 2} {
		var keys Keys
		args := slices.Repeat([]any{i}, rows)
		_ = must(db.ExecContext(WithKeys(t.Context(), &keys), "INSERT INTO t_order (a) VALUES (?)"+strings.Repeat(", (?)", rows-1), args...))(t)
		for _, key := range keys.Values() {
			want = append(want, int64(i), key)
		}
	}
	var have []any
	for _, args := range kept {
		for _, arg := range args {
			have = append(have, arg.Value)
		}
	}
	equalSlices(t, have, want)
}

// TestArguments_buffer: a connection of go-sql-driver has its buffer, and doesn't keep the values in it.
func TestArguments_buffer(t *testing.T) {
	under := must(mysql.MySQLDriver{}.OpenConnector(testserver.Database(t)))(t)
	c := openConn(t, under, benchRule(t))
	exec := func(query string, args ...driver.NamedValue) {
		must(c.ExecContext(t.Context(), query, args))(t)
	}
	exec("CREATE TABLE t_order (order_id BIGINT PRIMARY KEY, user_id INT, amount INT)")
	exec(benchInsert, benchArgs(2)...)
	equal(t, cap(c.buffer) >= 3, true, "the connection has a buffer")
	equal(t, slices.ContainsFunc(c.buffer[:cap(c.buffer)], func(arg driver.NamedValue) bool { return arg.Value != nil }), false, "it keeps values")
	buffer := &c.buffer[:1][0]
	exec(benchInsert, benchArgs(2)...)
	equal(t, &c.buffer[:1][0], buffer)
}
