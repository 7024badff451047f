package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

type cannedAnswer struct {
	Err      error
	Affected int64
	AffErr   error
	ID       int64
}

func (a cannedAnswer) LastInsertId() (int64, error) { return a.ID, nil }
func (a cannedAnswer) RowsAffected() (int64, error) { return a.Affected, a.AffErr }

// answering is a connection over a base that answers as it is told.
type answering struct {
	t    *testing.T
	conn *conn
	keys *scriptedKeys
	base *answeringBase
}

// scriptedKeys is a generator that makes the keys it is told.
type scriptedKeys struct {
	next  int64
	fails bool
	calls int
}

func (g *scriptedKeys) GenerateInt64Keys(_ context.Context, _ spi.Column, keys []int64) error {
	if g.calls++; g.fails {
		return errors.New("no keys")
	}
	for i := range keys {
		keys[i] = g.next + int64(i)
	}
	return nil
}

func (g *scriptedKeys) GenerateKeys(ctx context.Context, column spi.Column, n int) ([]any, error) {
	return spi.BoxedKeys(ctx, g, column, n)
}

// textKeys makes the same keys each time.
type textKeys struct{}

func (textKeys) GenerateKeys(_ context.Context, _ spi.Column, n int) ([]any, error) {
	keys := make([]any, n)
	for i := range keys {
		keys[i] = fmt.Sprint("key", i)
	}
	return keys, nil
}

// boxedKeys makes integers, which only the first key shows.
type boxedKeys struct{ next int64 }

func (g *boxedKeys) GenerateKeys(_ context.Context, _ spi.Column, n int) ([]any, error) {
	keys := make([]any, n)
	for i := range keys {
		g.next++
		keys[i] = g.next
	}
	return keys, nil
}

func newAnswering(t *testing.T, kind string, columns [][2]string, server string) *answering {
	t.Helper()
	keys := &scriptedKeys{next: 1}
	scripted = keys
	base := &answeringBase{fakeBase: &fakeBase{kind: kind}, columns: columns}
	// Each side has generators of its own: no rule of the same name and content.
	r := must(rule.Parse(t.Name()+strconv.FormatInt(ruleNumber.Add(1), 10), []byte(`
rules:
- !SHARDING
  tables:
    t_order: {keyGenerateStrategy: {column: order_id, keyGeneratorName: scripted}}
    t_boxed: {keyGenerateStrategy: {column: id, keyGeneratorName: boxed}}
    t_text: {keyGenerateStrategy: {column: id, keyGeneratorName: texts}}
  keyGenerators:
    scripted: {type: ANSWERING_INTS}
    texts: {type: ANSWERING_TEXTS}
    boxed: {type: ANSWERING_BOXED}
`)))(t)
	connector := must(NewConnector(base, r, Config{Server: server}))(t)
	t.Cleanup(func() { connector.Close() })
	c := must(connector.Connect(context.Background()))(t)
	return &answering{t: t, conn: connOf(c), keys: keys, base: base}
}

// ruleNumber tells rules of one test apart: rules of one name and content share their generators.
var ruleNumber atomic.Int64

// scripted is what the next generator of the type ANSWERING_INTS is.
var scripted *scriptedKeys

func init() {
	spi.RegisterKeyGenerator("ANSWERING_INTS", func(spi.Props) (spi.KeyGenerator, error) { return scripted, nil })
	spi.RegisterKeyGenerator("ANSWERING_BOXED", func(spi.Props) (spi.KeyGenerator, error) { return new(boxedKeys), nil })
	spi.RegisterKeyGenerator("ANSWERING_TEXTS", func(spi.Props) (spi.KeyGenerator, error) { return textKeys{}, nil })
}

func connOf(c driver.Conn) *conn { return c.(*conn) }

// answeringBase answers questions about the key column, and executions as it is told.
type answeringBase struct {
	*fakeBase
	columns [][2]string
	answer  cannedAnswer
}

func (b *answeringBase) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := b.fakeBase.Connect(ctx)
	if b.kind == "minimal" {
		return bareConn{&answeringConn{c, b}}, err
	}
	return &answeringConn{c, b}, err
}

// bareConn executes nothing directly.
type bareConn struct{ conn *answeringConn }

func (c bareConn) Prepare(text string) (driver.Stmt, error) { return c.conn.Prepare(text) }
func (c bareConn) Close() error                             { return c.conn.Close() }
func (c bareConn) Begin() (driver.Tx, error)                { return nil, errFake }

type answeringConn struct {
	driver.Conn
	base *answeringBase
}

func (c *answeringConn) exec(text string, args []driver.NamedValue) (driver.Result, error) {
	c.base.log("exec %s %#v", text, args)
	return c.base.answer, c.base.answer.Err
}

func (c *answeringConn) ExecContext(_ context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	if c.base.kind == "skipping" && len(args) > 0 {
		return nil, driver.ErrSkip
	}
	return c.exec(text, args)
}

func (c *answeringConn) QueryContext(_ context.Context, text string, _ []driver.NamedValue) (driver.Rows, error) {
	c.base.log("query %s", text)
	switch {
	case strings.HasPrefix(text, "SELECT @@sql_mode"):
		return &shownRows{[][]driver.Value{{"", "utf8mb4"}}}, nil
	case strings.HasPrefix(text, "SELECT LAST_INSERT_ID("):
		return &shownRows{[][]driver.Value{{int64(77)}}}, nil
	case !strings.HasPrefix(text, "SHOW FULL COLUMNS"):
		return idleRows{}, nil
	}
	rows := &shownRows{}
	for _, column := range c.base.columns {
		rows.rows = append(rows.rows, []driver.Value{column[0], column[1], nil})
	}
	return rows, nil
}

func (c *answeringConn) Prepare(text string) (driver.Stmt, error) {
	c.base.log("prepare %s", text)
	return &answeringStmt{c, text}, nil
}

type answeringStmt struct {
	conn *answeringConn
	text string
}

func (s *answeringStmt) Close() error { return nil }
func (s *answeringStmt) NumInput() int {
	return strings.Count(strings.ReplaceAll(s.text, "'?'", ""), "?")
}

func (s *answeringStmt) Exec([]driver.Value) (driver.Result, error) { return nil, errFake }
func (s *answeringStmt) Query([]driver.Value) (driver.Rows, error)  { return nil, errFake }

func (s *answeringStmt) ExecContext(_ context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.conn.exec(s.text, args)
}

func (s *answeringStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.conn.QueryContext(ctx, s.text, args)
}

type shownRows struct{ rows [][]driver.Value }

func (r *shownRows) Columns() []string {
	if len(r.rows) == 0 {
		return nil
	}
	return make([]string, len(r.rows[0]))
}

func (r *shownRows) Close() error { return nil }

func (r *shownRows) Next(dest []driver.Value) error {
	if len(r.rows) == 0 {
		return io.EOF
	}
	copy(dest, r.rows[0])
	r.rows = r.rows[1:]
	return nil
}
