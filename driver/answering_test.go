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

type shortAnswer struct {
	Err      error
	Affected int64
	AffErr   error
	ID       int64
}

func (a shortAnswer) LastInsertId() (int64, error) { return a.ID, nil }
func (a shortAnswer) RowsAffected() (int64, error) { return a.Affected, a.AffErr }

// shortSide is a connection over a base that answers as it is told.
type shortSide struct {
	t    *testing.T
	conn *conn
	keys *scriptedKeys
	base *shortBase
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

func newShortSide(t *testing.T, kind string, columns [][2]string, server string) *shortSide {
	t.Helper()
	keys := &scriptedKeys{next: 1}
	scripted = keys
	base := &shortBase{fakeBase: &fakeBase{kind: kind}, columns: columns}
	// Each side has generators of its own: no rule of the same name and content.
	r, err := rule.Parse(t.Name()+strconv.FormatInt(sides.Add(1), 10), []byte(`
rules:
- !SHARDING
  tables:
    t_order: {keyGenerateStrategy: {column: order_id, keyGeneratorName: scripted}}
    t_text: {keyGenerateStrategy: {column: id, keyGeneratorName: texts}}
  keyGenerators:
    scripted: {type: SHORT_SCRIPTED}
    texts: {type: SHORT_TEXTS}
`))
	if err != nil {
		t.Fatal(err)
	}
	connector, err := NewConnector(base, r, Config{Server: server})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connector.Close() })
	c, err := connector.Connect(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return &shortSide{t: t, conn: connOf(c), keys: keys, base: base}
}

// sides counts the sides.
var sides atomic.Int64

// scripted is what the next generator of the type SHORT_SCRIPTED is.
var scripted *scriptedKeys

func init() {
	spi.RegisterKeyGenerator("SHORT_SCRIPTED", func(spi.Props) (spi.KeyGenerator, error) { return scripted, nil })
	spi.RegisterKeyGenerator("SHORT_TEXTS", func(spi.Props) (spi.KeyGenerator, error) { return textKeys{}, nil })
}

func connOf(c driver.Conn) *conn { return c.(*conn) }

// shortBase answers questions about the key column, and executions as it is told.
type shortBase struct {
	*fakeBase
	columns [][2]string
	answer  shortAnswer
}

func (b *shortBase) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := b.fakeBase.Connect(ctx)
	if b.kind == "minimal" {
		return bareConn{&shortConn{c, b}}, err
	}
	return &shortConn{c, b}, err
}

// bareConn executes nothing directly.
type bareConn struct{ conn *shortConn }

func (c bareConn) Prepare(text string) (driver.Stmt, error) { return c.conn.Prepare(text) }
func (c bareConn) Close() error                             { return c.conn.Close() }
func (c bareConn) Begin() (driver.Tx, error)                { return nil, errFake }

type shortConn struct {
	driver.Conn
	base *shortBase
}

func (c *shortConn) exec(text string, args []driver.NamedValue) (driver.Result, error) {
	c.base.log("exec %s %#v", text, args)
	return c.base.answer, c.base.answer.Err
}

func (c *shortConn) ExecContext(_ context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	if c.base.kind == "skipping" && len(args) > 0 {
		return nil, driver.ErrSkip
	}
	return c.exec(text, args)
}

func (c *shortConn) QueryContext(_ context.Context, text string, _ []driver.NamedValue) (driver.Rows, error) {
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

func (c *shortConn) Prepare(text string) (driver.Stmt, error) {
	c.base.log("prepare %s", text)
	return &shortStmt{c, text}, nil
}

type shortStmt struct {
	conn *shortConn
	text string
}

func (s *shortStmt) Close() error  { return nil }
func (s *shortStmt) NumInput() int { return strings.Count(strings.ReplaceAll(s.text, "'?'", ""), "?") }

func (s *shortStmt) Exec([]driver.Value) (driver.Result, error) { return nil, errFake }
func (s *shortStmt) Query([]driver.Value) (driver.Rows, error)  { return nil, errFake }

func (s *shortStmt) ExecContext(_ context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.conn.exec(s.text, args)
}

func (s *shortStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
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
