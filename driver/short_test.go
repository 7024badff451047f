package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// TestShort_sameAsGeneral executes the same random statements on two connections,
// one of which never takes the short way. What reaches the base, what is returned
// and what is known of the session afterwards are the same.
func TestShort_sameAsGeneral(t *testing.T) {
	const seeds, statements = 60, 80
	taken := 0
	for seed := range uint64(seeds) {
		rnd := rand.New(rand.NewPCG(seed, 12))
		server := []string{"mysql", "other"}[rnd.IntN(2)]
		column := shortColumns[rnd.IntN(len(shortColumns))]
		kind := []string{"direct", "skipping", "minimal"}[rnd.IntN(3)]
		var both [2]*shortSide
		for i := range both {
			both[i] = newShortSide(t, kind, column, server, i == 1)
		}
		for range statements {
			stmt := randomShortStatement(rnd)
			have, want := both[0].execute(stmt), both[1].execute(stmt)
			if have != want {
				t.Fatalf("seed %d, %s, %v on %s over a %s base\nstatement: %+v\nhave: %s\nwant: %s", seed, server, column, "t_order", kind, stmt, have, want)
			}
		}
		taken += both[0].short
		if n := both[1].short; n != 0 {
			t.Fatalf("the general connection took the short way %d times", n)
		}
	}
	if taken < seeds*statements/20 {
		t.Errorf("statements that took the short way\nhave: %d of %d\nwant: a twentieth at least", taken, seeds*statements)
	}
}

// shortColumns are the columns that SHOW COLUMNS tells of: the key column first.
var shortColumns = [][][2]string{
	{{"order_id", "bigint(20)"}},
	{{"order_id", "bigint(20)"}},
	{{"order_id", "bigint(20) unsigned"}},
	{{"order_id", "int(11)"}},
	{{"order_id", "decimal(30,0)"}},
	{{"order_id", "varchar(36)"}},
	{{"order_id", "bigint(20)"}, {"other", "int(11)"}}, // which has AUTO_INCREMENT
	{},
}

// shortStatement is one statement, and what the base answers.
type shortStatement struct {
	query    string
	args     []driver.NamedValue
	prepared bool
	keys     bool // WithKeys
	next     int64
	fails    bool // the generator
	answer   shortAnswer
}

type shortAnswer struct {
	Err      error
	Affected int64
	AffErr   error
	ID       int64
}

func (a shortAnswer) LastInsertId() (int64, error) { return a.ID, nil }
func (a shortAnswer) RowsAffected() (int64, error) { return a.Affected, a.AffErr }

func randomShortStatement(rnd *rand.Rand) shortStatement {
	pick := func(of ...string) string { return of[rnd.IntN(len(of))] }
	var s shortStatement
	switch rnd.IntN(10) {
	case 0:
		s.query = pick("SELECT LAST_INSERT_ID()", "SELECT 1", "UPDATE t_order SET a = 1", "CALL p()", "SET @a = 1", "INSERT INTO t_plain (a) VALUES (?)")
	case 1:
		s.query = pick("INSERT INTO t_order (a) VALUES (?), (?)", "INSERT INTO t_order (a) VALUES (1)", "INSERT INTO t_order (order_id, a) VALUES (?, ?)",
			"INSERT INTO t_order (a) VALUES (?); INSERT INTO t_order (a) VALUES (?)", "INSERT INTO t_order (a) VALUES (LAST_INSERT_ID() + ?)",
			"INSERT INTO t_order (a) VALUES (?) ON DUPLICATE KEY UPDATE a = ?", "INSERT INTO t_text (a) VALUES (?)", "INSERT INTO t_order (a) VALUES (?, ?)")
	default:
		s.query = pick("INSERT", "INSERT", "INSERT IGNORE", "REPLACE", "insert /* c */") + " INTO " + pick("t_order", "t_order", "`t_order`", "app.t_order") +
			pick(" (a) VALUES (?)", " (a, b) VALUES (?, ?)", " (a, b, c) VALUES (?, 5, ?)", " (a, b, c, d) VALUES (?, ?, ?, ?)", " SET a = ?, b = ?",
				" (a, order_id, b) VALUES (?, DEFAULT, ?)", " (order_id, a) VALUES (NULL, ?)", " (order_id, a) VALUES (0, ?)", " (a) VALUES ('?')")
	}
	n := strings.Count(strings.ReplaceAll(s.query, "'?'", ""), "?")
	if rnd.IntN(30) == 0 {
		n += rnd.IntN(3) - 1
	}
	for i := range n {
		s.args = append(s.args, driver.NamedValue{Ordinal: i + 1, Value: randomValue(rnd)})
	}
	s.prepared, s.keys, s.fails = rnd.IntN(3) == 0, rnd.IntN(4) == 0, rnd.IntN(50) == 0
	s.next = rnd.Int64N(1 << 62)
	switch rnd.IntN(12) {
	case 0:
		s.next = -s.next - 1
	case 1:
		s.next = int64(math.MaxInt32) - rnd.Int64N(3)
	}
	s.answer = shortAnswer{Affected: 1, ID: pickInt(rnd, s.next, s.next, 0, 77)}
	switch rnd.IntN(16) {
	case 0:
		s.answer = shortAnswer{Err: &mysql.MySQLError{Number: []uint16{1062, 1054, 1143, 1213}[rnd.IntN(4)], Message: "refused"}}
	case 1:
		s.answer.Affected = pickInt(rnd, 0, 2, 3)
	case 2:
		s.answer.AffErr = errors.New("not told")
	case 3:
		s.answer = shortAnswer{Err: driver.ErrBadConn}
	}
	return s
}

// With one more placeholder than the server takes, the short way is not taken.
func TestShort_manyPlaceholders(t *testing.T) {
	side := newShortSide(t, "direct", shortColumns[0], "mysql", false)
	for _, n := range []int{base.MaxPlaceholders - 1, base.MaxPlaceholders} {
		p, err := side.conn.planFor(t.Context(), "INSERT INTO t_order (a) VALUES (CONCAT(?"+strings.Repeat(",?", n-1)+"))")
		if err != nil {
			t.Fatal(err)
		}
		if want := n+p.added <= base.MaxPlaceholders; p.Params() != n || p.short != want {
			t.Errorf("%d placeholders and %d added\nhave: short %v\nwant: %v", p.Params(), p.added, p.short, want)
		}
	}
}

// The short way does nothing with a rule that was replaced, and holds none longer
// than it needs it.
func TestShort_ruleReplacedBeforeUse(t *testing.T) {
	const query = "INSERT INTO t_order (a) VALUES (?)"
	k := newKeeping(t, &keepingBase{max: 1000}, "auto").warm()
	p, err := k.conn.planFor(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	args := []driver.NamedValue{{Ordinal: 1, Value: int64(1)}}
	if !p.isShort(&k.conn.session, args) {
		t.Fatal("have: an INSERT that does not take the short way")
	}
	if _, err := p.execute(t.Context(), &k.conn.session, nil, nil, args, base.WantResult); err != nil {
		t.Fatal(err)
	}
	if n := p.rules.refs.Load(); n != 1 {
		t.Errorf("users of the rule afterwards\nhave: %d\nwant: 1, the connector", n)
	}
	if err := k.connector.SetRule(benchRule(t)); err != nil {
		t.Fatal(err)
	}
	k.base.executed = nil
	if _, err := p.execute(t.Context(), &k.conn.session, nil, nil, args, base.WantResult); err != errReplan || len(k.base.executed) > 0 {
		t.Errorf("have: %v, executed %v\nwant: errReplan", err, k.base.executed)
	}
}

func pickInt(rnd *rand.Rand, of ...int64) int64 { return of[rnd.IntN(len(of))] }

func randomValue(rnd *rand.Rand) driver.Value {
	return []driver.Value{nil, rnd.Int64(), -rnd.Int64(), rnd.Float64(), true, "text", "", []byte("bytes"), []byte(nil), uint64(math.MaxUint64),
		time.Unix(rnd.Int64N(1<<32), 0).UTC()}[rnd.IntN(11)]
}

// shortSide is a connection over a base that answers as it is told.
type shortSide struct {
	t       *testing.T
	conn    *conn
	keys    *scriptedKeys
	base    *shortBase
	general bool
	short   int // results of the short way
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

func newShortSide(t *testing.T, kind string, columns [][2]string, server string, general bool) *shortSide {
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
	return &shortSide{t: t, conn: connOf(c), keys: keys, base: base, general: general}
}

// sides counts the sides.
var sides atomic.Int64

// scripted is what the next generator of the type SHORT_SCRIPTED is.
var scripted *scriptedKeys

func init() {
	spi.RegisterKeyGenerator("SHORT_SCRIPTED", func(spi.Props) (spi.KeyGenerator, error) { return scripted, nil })
	spi.RegisterKeyGenerator("SHORT_TEXTS", func(spi.Props) (spi.KeyGenerator, error) { return textKeys{}, nil })
}

func connOf(c driver.Conn) *conn {
	switch c := c.(type) {
	case resetConn:
		return c.conn
	case validConn:
		return c.conn
	case resetValidConn:
		return c.conn
	}
	return c.(*conn)
}

// execute returns all that came of a statement.
func (s *shortSide) execute(st shortStatement) string {
	s.keys.next, s.keys.fails = st.next, st.fails
	s.base.answer, s.base.calls = st.answer, nil
	ctx, keys := context.Background(), Keys{}
	if st.keys {
		ctx = WithKeys(ctx, &keys)
	}
	res, err := s.send(ctx, st)
	var b strings.Builder
	fmt.Fprintf(&b, "calls of the base: %s; %d of the generator; error %v; keys %v; last id %+v", strings.Join(s.base.calls, "; "), s.keys.calls, err, keys, s.conn.lastID)
	if _, ok := res.(*short); ok {
		s.short++
	}
	if res != nil {
		id, idErr := res.LastInsertId()
		n, nErr := res.RowsAffected()
		fmt.Fprintf(&b, "; result %v %v %v %v", id, idErr, n, nErr)
	}
	if res, ok := res.(KeysResult); ok {
		fmt.Fprintf(&b, "; %v %v %v", res.Keys(), res.AllLastInsertIds(), res.AllRowsAffected())
	}
	return b.String()
}

func (s *shortSide) send(ctx context.Context, st shortStatement) (driver.Result, error) {
	args := slices.Clone(st.args)
	if s.general {
		s.generalize(ctx, st.query)
	}
	if !st.prepared {
		return s.conn.ExecContext(ctx, st.query, args)
	}
	prepared, err := s.conn.PrepareContext(ctx, st.query)
	if err != nil {
		return nil, err
	}
	defer prepared.Close()
	return prepared.(driver.StmtExecContext).ExecContext(ctx, args)
}

// generalize plans a text, and lets its plan not take the short way.
func (s *shortSide) generalize(ctx context.Context, query string) {
	if p, err := s.conn.planFor(ctx, query); err == nil && p != nil {
		p.short = false
	}
}

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
