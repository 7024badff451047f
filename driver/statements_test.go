package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/driver/internal/base"
)

// keepingBase is a server of prepared statements: it counts those that are open,
// and refuses more than max.
type keepingBase struct {
	max, open   int
	prepared    int
	direct      bool // texts with arguments are executed directly
	questions   int  // for the limit
	executed    []string
	failPrepare error
	untold      error   // the question's
	wide        bool    // its answer cannot be read
	fail        []error // of the next executions of prepared statements
}

func (b *keepingBase) Connect(context.Context) (driver.Conn, error) {
	return &keepingConn{base: b}, nil
}
func (b *keepingBase) Driver() driver.Driver { return nil }

type keepingConn struct {
	base *keepingBase
}

func (c *keepingConn) Prepare(query string) (driver.Stmt, error) {
	b := c.base
	if b.failPrepare != nil {
		return nil, b.failPrepare
	}
	if b.open >= b.max {
		return nil, &mysql.MySQLError{Number: 1461, Message: "Can't create more than max_prepared_stmt_count statements"}
	}
	b.prepared++
	b.open++
	return &keepingStmt{base: b, text: query}, nil
}

func (c *keepingConn) Close() error              { return nil }
func (c *keepingConn) Begin() (driver.Tx, error) { return nil, errFake }

func (c *keepingConn) ExecContext(_ context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if len(args) > 0 && !c.base.direct {
		return nil, driver.ErrSkip
	}
	c.base.executed = append(c.base.executed, query)
	return driver.RowsAffected(1), nil
}

func (c *keepingConn) QueryContext(_ context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	switch {
	case len(args) > 0 && !c.base.direct:
		return nil, driver.ErrSkip
	case strings.HasPrefix(query, "SELECT @@max_prepared_stmt_count"):
		if c.base.questions++; c.base.wide {
			return &shownRows{[][]driver.Value{{"1\x000\x00"}}}, nil
		} else if c.base.untold != nil {
			return nil, c.base.untold
		}
		return &shownRows{[][]driver.Value{{int64(c.base.max)}}}, nil
	case strings.HasPrefix(query, "SELECT @@sql_mode"):
		return &shownRows{[][]driver.Value{{"", "utf8mb4"}}}, nil
	}
	return idleRows{}, nil
}

type keepingStmt struct {
	base   *keepingBase
	text   string
	closed bool
}

func (s *keepingStmt) Close() error {
	if !s.closed {
		s.base.open--
	}
	s.closed = true
	return nil
}

func (s *keepingStmt) NumInput() int                               { return strings.Count(s.text, "?") }
func (s *keepingStmt) Exec([]driver.Value) (driver.Result, error)  { return nil, errFake }
func (s *keepingStmt) Query([]driver.Value) (driver.Rows, error)   { return nil, errFake }
func (s *keepingStmt) CheckNamedValue(nv *driver.NamedValue) error { return nil }

func (s *keepingStmt) run() error {
	if s.closed {
		return errors.New("the statement is closed")
	}
	if len(s.base.fail) > 0 {
		err := s.base.fail[0]
		s.base.fail = s.base.fail[1:]
		if err != nil {
			return err
		}
	}
	s.base.executed = append(s.base.executed, s.text)
	return nil
}

func (s *keepingStmt) ExecContext(context.Context, []driver.NamedValue) (driver.Result, error) {
	return driver.RowsAffected(1), s.run()
}

func (s *keepingStmt) QueryContext(context.Context, []driver.NamedValue) (driver.Rows, error) {
	return idleRows{}, s.run()
}

// keeping is a connector over a keepingBase with a connection.
type keeping struct {
	*testing.T
	base      *keepingBase
	connector *Connector
	conn      *conn
}

func newKeeping(t *testing.T, base *keepingBase, mode string) *keeping {
	t.Helper()
	connector := must(NewConnector(base, benchRule(t), Config{Server: "mysql"}, Config{Statements: mode}))(t)
	t.Cleanup(func() { connector.Close() })
	k := &keeping{T: t, base: base, connector: connector}
	k.conn = k.connect()
	return k
}

func (k *keeping) connect() *conn {
	k.Helper()
	c, err := k.connector.Connect(context.Background())
	if err != nil {
		k.Fatal(err)
	}
	return connOf(c)
}

// warm lets the limit be known.
func (k *keeping) warm() *keeping {
	k.Helper()
	k.exec("INSERT INTO t_order (warm) VALUES (?)", 1)
	k.exec("INSERT INTO t_order (warm) VALUES (?)", 1)
	k.conn.base.ClearCache()
	k.base.prepared, k.base.executed = 0, nil
	return k
}

func (k *keeping) exec(query string, args ...any) {
	k.Helper()
	if err := k.try(k.conn, query, args...); err != nil {
		k.Fatalf("%s %v: %v", query, args, err)
	}
}

func (k *keeping) try(c *conn, query string, args ...any) error {
	named := make([]driver.NamedValue, len(args))
	for i, arg := range args {
		if n, ok := arg.(int); ok {
			arg = int64(n)
		}
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: arg}
	}
	_, err := c.ExecContext(context.Background(), query, named)
	if err == driver.ErrSkip { // as database/sql
		var st driver.Stmt
		if st, err = c.PrepareContext(context.Background(), query); err == nil {
			_, err = st.(driver.StmtExecContext).ExecContext(context.Background(), named)
			st.Close()
		}
	}
	return err
}

func (k *keeping) check(what string, have, want int) {
	k.Helper()
	if have != want {
		k.Errorf("%s\nhave: %d\nwant: %d", what, have, want)
	}
}

func TestStatements_keptOnTheirConnection(t *testing.T) {
	for _, of := range []struct {
		mode                     string
		direct                   bool
		inserts, selects, update int // prepared by ten executions
	}{
		{"", false, 1, 10, 10},
		{"auto", false, 1, 10, 10},
		{"auto", true, 0, 0, 0},
		{"always", true, 1, 0, 0},
		{"always", false, 1, 10, 10},
		{"off", false, 10, 10, 10},
	} {
		t.Run(fmt.Sprintf("%s/direct=%v", of.mode, of.direct), func(t *testing.T) {
			k := newKeeping(t, &keepingBase{max: 1000, direct: of.direct}, of.mode).warm()
			for _, step := range []struct {
				query string
				want  int
			}{
				{"INSERT INTO t_order (a) VALUES (?)", of.inserts},
				{"SELECT ? FROM t_order", of.selects},
				{"UPDATE t_order SET a = ?", of.update},
				{"INSERT INTO t_plain (a) VALUES (?)", of.update},
			} {
				k.base.prepared, k.base.executed = 0, nil
				for range 10 {
					k.exec(step.query, 1)
				}
				k.check("prepared of "+step.query, k.base.prepared, step.want)
				k.check("executed of "+step.query, len(k.base.executed), 10)
			}
			noError(t, k.conn.Close())
			k.check("open statements of a closed connection", k.base.open, 0)
			k.check("statements of the connector", int(k.connector.cache.Stats().Open), 0)
		})
	}
}

func TestStatements_questionComesOnce(t *testing.T) {
	k := newKeeping(t, &keepingBase{max: 1000}, "auto")
	for range 5 {
		k.exec("INSERT INTO t_order (a) VALUES (?)", 1)
	}
	k.check("questions", k.base.questions, 1)
	k.check("prepared", k.base.prepared, 2)
	if text := k.connector.Describe(); !strings.Contains(text, "prepared statements: auto, 1 kept of 125") {
		t.Errorf("have: %s\nwant: what is kept", text)
	}
	// One that reads counts is not refused for it, and does not ask.
	k = newKeeping(t, &keepingBase{max: 1000}, "auto")
	k.exec("INSERT INTO t_order (a) VALUES (?)", 1)
	k.exec("INSERT INTO t_order (a) VALUES (? + ROW_COUNT())", 1)
	k.check("questions before one that reads ROW_COUNT()", k.base.questions, 0)
}

func TestStatements_notKept(t *testing.T) {
	k := newKeeping(t, &keepingBase{max: 1000}, "auto").warm()
	for _, query := range []string{
		"INSERT INTO t_order (a) VALUES (? + @u)",
		"INSERT INTO t_order (a) VALUES (?) /* " + strings.Repeat("x", 16<<10) + " */",
	} {
		k.base.prepared = 0
		for range 3 {
			k.exec(query, 1)
		}
		k.check("prepared of "+query[:30], k.base.prepared, 3)
		k.check("open", k.base.open, 0)
	}
}

func TestStatements_byTypesOfArguments(t *testing.T) {
	k := newKeeping(t, &keepingBase{max: 1000}, "auto").warm()
	values := []any{int64(1), uint64(1), 1.5, true, "text", []byte("bytes"), nil, time.Now()}
	for _, v := range values {
		k.base.prepared = 0
		k.exec("INSERT INTO t_order (a, b) VALUES (?, ?)", v, v)
		k.check(fmt.Sprintf("prepared for the first %T", v), k.base.prepared, 1)
		k.exec("INSERT INTO t_order (a, b) VALUES (?, ?)", v, v)
		k.check(fmt.Sprintf("prepared for the second %T", v), k.base.prepared, 1)
	}
	k.check("kept for one text", int(k.connector.cache.Stats().Open), 4)
	for _, next := range [][2]any{{int64(1), nil}, {"text", []byte("bytes")}} {
		k.conn.base.ClearCache()
		k.base.prepared = 0
		k.exec("INSERT INTO t_order (a) VALUES (?)", next[0])
		k.exec("INSERT INTO t_order (a) VALUES (?)", next[1])
		k.check(fmt.Sprintf("prepared for %T and %T", next[0], next[1]), k.base.prepared, 2)
	}
	k.exec("INSERT INTO t_order (a, b) VALUES (?, ?)", nil, nil)
	k.base.prepared = 0
	k.exec("INSERT INTO t_order (a, b) VALUES (?, ?)", []byte(nil), nil)
	k.check("prepared for bytes that are nil, as nil", k.base.prepared, 0)
	k.exec("INSERT INTO t_order (a, b) VALUES (?, ?)", struct{}{}, nil)
	k.exec("INSERT INTO t_order (a, b) VALUES (?, ?)", struct{}{}, nil)
	k.check("prepared for types that are not known", k.base.prepared, 2)
}

func TestStatements_ended(t *testing.T) {
	for query, ends := range map[string]bool{
		"SET NAMES latin1":                                  true,
		"SET sql_mode = ''":                                 true,
		"SET collation_connection = 'latin1_bin'":           true,
		"USE other":                                         true,
		"CALL p()":                                          true,
		"EXECUTE s":                                         true,
		"SELECT 1; SET sql_mode = ''":                       true,
		"SET STATEMENT sql_mode = '' FOR DO 1":              true,
		"DROP DATABASE app":                                 true,
		"SELECT 1":                                          false,
		"UPDATE t_order SET a = 1":                          false,
		"INSERT INTO t_plain VALUES (1)":                    false,
		"REPLACE INTO t_plain VALUES (1);":                  false,
		"INSERT INTO t_order (a) VALUES (1)":                false,
		"CREATE TEMPORARY TABLE t_order (a INT)":            false,
		"ALTER TABLE t_order ADD b INT":                     false,
		"XA START 'x'":                                      false,
		"COMMIT":                                            false,
		"LOCK TABLES t_order WRITE":                         false,
		"INSERT INTO t_plain VALUES (1); SET sql_mode = ''": true,
		"INSERT INTO t_plain VALUES (1); SELECT 1":          true,
	} {
		k := newKeeping(t, &keepingBase{max: 1000}, "auto").warm()
		k.exec("INSERT INTO t_order (a) VALUES (?)", 1)
		k.exec(query)
		want := 1
		if ends {
			want = 0
		}
		k.check("kept after "+query, int(k.connector.cache.Stats().Open), want)
		k.check("open after "+query, k.base.open, want)
	}
}

// What changes how the server reads texts has arguments here, and is not kept.
func TestStatements_endedByArguments(t *testing.T) {
	k := newKeeping(t, &keepingBase{max: 1000}, "auto").warm()
	for _, query := range []string{"SET sql_mode = ?", "SET STATEMENT sql_mode = ? FOR DO 1"} {
		k.exec("INSERT INTO t_order (a) VALUES (?)", 1)
		k.base.prepared = 0
		k.exec(query, "")
		k.exec(query, "")
		k.check("prepared of "+query, k.base.prepared, 2)
		k.check("kept after "+query, int(k.connector.cache.Stats().Open), 0)
		k.check("open after "+query, k.base.open, 0)
	}
}

func TestStatements_bounded(t *testing.T) {
	k := newKeeping(t, &keepingBase{max: 800}, "auto").warm()
	text := func(i int) string { return fmt.Sprintf("INSERT INTO t_order (c%d) VALUES (?)", i) }
	for i := range 3 * 16 {
		k.exec(text(i), 1)
	}
	k.check("kept by a connection", int(k.connector.cache.Stats().Open), 16)
	k.check("open", k.base.open, 16)
	k.base.prepared = 0
	k.exec(text(3*16-16), 1)
	k.check("prepared for the oldest of the kept", k.base.prepared, 0)
	k.exec(text(3*16), 1)
	k.exec(text(3*16-16), 1)
	k.check("prepared for one that was used since", k.base.prepared, 1)

	// An eighth of 800 is the connector's: the others prepare and close.
	for range 20 {
		c := k.connect()
		for i := range 16 {
			noError(t, k.try(c, text(i), 1))
		}
	}
	k.check("open of the connector", k.base.open, 100)
	k.check("counted of the connector", int(k.connector.cache.Stats().Open), 100)
}

func TestStatements_noRoomAtTheServer(t *testing.T) {
	k := newKeeping(t, &keepingBase{max: 80}, "auto").warm()
	other := k.connect()
	text := func(i int) string { return fmt.Sprintf("INSERT INTO t_order (c%d) VALUES (?)", i) }
	for i := range 5 {
		k.exec(text(i), 1)
		noError(t, k.try(other, text(i), 1))
	}
	k.check("kept", k.base.open, 10)
	k.base.max = 9 // others took the rest
	k.exec(text(9), 1)
	k.check("open after the connection had no room", k.base.open, 5)
	noError(t, k.try(other, text(9), 1))
	k.check("open after the other connection did something", k.base.open, 0)
	k.base.prepared = 0
	k.exec(text(9), 1)
	k.exec(text(9), 1)
	k.check("prepared from then on", k.base.prepared, 2)
	k.check("open from then on", k.base.open, 0)

	// A statement of the user's makes room as well.
	k = newKeeping(t, &keepingBase{max: 80}, "auto").warm()
	for i := range 5 {
		k.exec(text(i), 1)
	}
	k.base.max = 5
	st := must(k.conn.PrepareContext(context.Background(), "SELECT ?"))(t)
	st.Close()
	k.check("open", k.base.open, 0)
}

func TestStatements_preparedAnewOnce(t *testing.T) {
	gone, other := &mysql.MySQLError{Number: 1243}, &mysql.MySQLError{Number: 1062}
	changed := &mysql.MySQLError{Number: 1615}
	for _, of := range []struct {
		name     string
		fail     []error
		err      error
		prepared int
		kept     int
	}{
		{"unknown to the server", []error{gone}, nil, 1, 1},
		{"not fit for what has changed", []error{changed}, nil, 1, 1},
		{"twice", []error{gone, changed}, changed, 1, 0},
		{"another error", []error{other}, other, 0, 0},
		{"bad connection", []error{driver.ErrBadConn}, driver.ErrBadConn, 0, 0},
		{"ended context", []error{context.Canceled}, context.Canceled, 0, 0},
	} {
		t.Run(of.name, func(t *testing.T) {
			k := newKeeping(t, &keepingBase{max: 1000}, "auto").warm()
			k.exec("INSERT INTO t_order (a) VALUES (?)", 1)
			k.base.prepared, k.base.executed, k.base.fail = 0, nil, of.fail
			equal(t, k.try(k.conn, "INSERT INTO t_order (a) VALUES (?)", 1), of.err)
			k.check("prepared", k.base.prepared, of.prepared)
			k.check("kept", int(k.connector.cache.Stats().Open), of.kept)
			k.check("open", k.base.open, of.kept)
			executed := 0
			if of.err == nil {
				executed = 1
			}
			k.check("executed", len(k.base.executed), executed)
		})
	}
	t.Run("at first", func(t *testing.T) {
		k := newKeeping(t, &keepingBase{max: 1000}, "auto").warm()
		k.base.fail = []error{gone}
		equal(t, k.try(k.conn, "INSERT INTO t_order (a) VALUES (?)", 1), error(gone))
	})
	t.Run("not in the protocol", func(t *testing.T) {
		k := newKeeping(t, &keepingBase{max: 1000, direct: true}, "always").warm()
		k.base.failPrepare = &mysql.MySQLError{Number: 1295}
		k.exec("INSERT INTO t_order (a) VALUES (?)", 1)
		k.check("executed", len(k.base.executed), 1)
	})
	t.Run("cannot be prepared", func(t *testing.T) {
		k := newKeeping(t, &keepingBase{max: 1000, failPrepare: nil}, "auto").warm()
		k.base.failPrepare = errFake
		equal(t, k.try(k.conn, "INSERT INTO t_order (a) VALUES (?)", 1), errFake)
		k.check("counted", int(k.connector.cache.Stats().Open), 0)
	})
}

func TestStatements_limit(t *testing.T) {
	for server, want := range map[string]int64{
		"16382": 2047, "100": 12, "7": 0, "0": 0, "4194304": 2048, "-1": 2048, "": 256, "1\x006\x00": 256,
	} {
		cache := base.NewCache(false)
		if cache.SetLimit(server); cache.Stats().Limit != want {
			t.Errorf("%q\nhave: %d\nwant: %d", server, cache.Stats().Limit, want)
		}
	}
	// A server that does not know the question, and one whose answer cannot be read,
	// are no reason to refuse an INSERT.
	for _, k := range []*keeping{newKeeping(t, &keepingBase{max: 1000, untold: errFake}, "auto"), newKeeping(t, &keepingBase{max: 1000, wide: true}, "auto")} {
		for range 3 {
			k.exec("INSERT INTO t_order (a) VALUES (?)", 1)
		}
		k.check("prepared", k.base.prepared, 2)
		k.check("limit", int(k.connector.cache.Stats().Limit), 256)
	}
	// A connection that is bad is.
	k := newKeeping(t, &keepingBase{max: 1000, untold: driver.ErrBadConn}, "auto")
	k.exec("INSERT INTO t_order (a) VALUES (?)", 1)
	equal(t, k.try(k.conn, "INSERT INTO t_order (a) VALUES (?)", 1), driver.ErrBadConn)
}

func TestStatements_option(t *testing.T) {
	_, err := NewConnector(&keepingBase{}, benchRule(t), Config{Statements: "some"})
	var wrong *DSNError
	if !errors.As(err, &wrong) || wrong.Param != paramStatements {
		t.Errorf("have: %v\nwant: an error about shardkeyStatements", err)
	}
	if _, err := (Driver{}).OpenConnector("u@/app?shardkeyRule=x&shardkeyStatements=some"); err == nil {
		t.Error("have: no error for a value that is none")
	}
}
