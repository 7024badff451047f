package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/internal/testserver"
)

func TestPrepared_argumentCount(t *testing.T) {
	for _, kind := range fakeKinds {
		fake := &fakeBase{kind: kind}
		c, _ := fake.Connect(context.Background())
		b := base.New(c, nil)
		args := base.Named([]driver.Value{int64(1), int64(2), int64(3)})
		_, err := b.Send(context.Background(), "UPDATE t SET a = ?, b = ?", args, 1, base.WantResult)
		_, err2 := b.Send(context.Background(), "SELECT ?, ?", args, 1, base.WantRows)
		switch kind {
		case "legacy", "direct", "conncheck", "uncounted": // these leave it to the server
			if err != nil || err2 != nil {
				t.Errorf("%s: %v, %v", kind, err, err2)
			}
			continue
		}
		const want = "sql: expected 1 arguments, got 2"
		if fmt.Sprint(err) != want || fmt.Sprint(err2) != want || fake.stmts != 0 {
			t.Errorf("%s, %d statements left\nhave: %v, %v\nwant: %s", kind, fake.stmts, err, err2, want)
		}
	}
}

// What a base's connection or statements take as an argument, they take from a
// filled statement too.
func TestPrepared_argumentTypes(t *testing.T) {
	for _, kind := range fakeKinds {
		for _, arg := range []any{1, fakeWide{3}, oddValuer{}, struct{}{}} {
			base := &fakeBase{kind: kind}
			plain, ours := sql.OpenDB(base), sql.OpenDB(mustConnector(t, base, taggedRule(t, "ruled", 0)))
			_, want := plain.Exec("INSERT INTO other (a) VALUES (?)", arg)
			_, have := ours.Exec("INSERT INTO ruled (a) VALUES (?)", arg)
			if (have == nil) != (want == nil) {
				t.Errorf("%s, %T\nhave: %v\nwant: %v", kind, arg, have, want)
			}
			_, _ = ours.Close(), plain.Close()
			if base.stmts != 0 {
				t.Errorf("%s, %T: %d statements left", kind, arg, base.stmts)
			}
		}
	}
}

// bareRows have none of the optional interfaces.
type bareRows struct{ *fakeRows }

func (r bareRows) HasNextResultSet()           {}
func (r bareRows) NextResultSet()              {}
func (r bareRows) ColumnTypeDatabaseTypeName() {}

type rowsConnector struct{ rows func() driver.Rows }

func (c rowsConnector) Connect(context.Context) (driver.Conn, error) { return rowsConn(c), nil }
func (rowsConnector) Driver() driver.Driver                          { return nil }

type rowsConn struct{ rows func() driver.Rows }

func (rowsConn) Prepare(string) (driver.Stmt, error) { return nil, errFake }
func (rowsConn) Close() error                        { return nil }
func (rowsConn) Begin() (driver.Tx, error)           { return nil, errFake }

func (c rowsConn) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	return c.rows(), nil
}

// TestPrepared_rowsAreAsBare: rows of a statement that is prepared for them are, to
// database/sql, what the rows are.
func TestPrepared_rowsAreAsBare(t *testing.T) {
	fake := &fakeBase{}
	kinds := map[string]func() driver.Rows{
		"bare": func() driver.Rows { return bareRows{&fakeRows{base: fake}} },
		"full": func() driver.Rows { return &fakeRows{base: fake} },
	}
	for name, rows := range kinds {
		want := describeRows(t, rows)
		var ended []error
		have := describeRows(t, func() driver.Rows {
			return base.OnClose(rows(), func(err error) { ended = append(ended, err) })
		})
		if have != want {
			t.Errorf("%s\nhave: %s\nwant: %s", name, have, want)
		}
		if len(ended) != 1 || ended[0] != nil {
			t.Errorf("%s: they ended with %v", name, ended)
		}
	}
	c, _ := fake.Connect(context.Background())
	b := base.New(c, nil)
	r, err := b.Send(context.Background(), "SELECT 1", nil, 0, base.WantRows)
	if err != nil || fake.stmts != 1 {
		t.Fatalf("have: %v, %d statements\nwant: one", err, fake.stmts)
	}
	if err := r.Rows.Close(); err != nil || fake.stmts != 0 {
		t.Errorf("have: %v, %d statements\nwant: none after the rows", err, fake.stmts)
	}
}

func describeRows(t *testing.T, open func() driver.Rows) string {
	t.Helper()
	db := sql.OpenDB(rowsConnector{open})
	defer db.Close()
	rows := must(db.Query("SELECT"))(t)
	defer rows.Close()
	var said strings.Builder
	for more := true; more; more = rows.NextResultSet() {
		types := must(rows.ColumnTypes())(t)
		fmt.Fprintf(&said, "%+v", *types[0])
		for rows.Next() {
			said.WriteString(" row")
		}
	}
	_, _ = rows.Close(), rows.Close()
	return said.String() + fmt.Sprint(rows.Err())
}

// What a written 0 asks for is the sql_mode's affair at each execution.
func TestStmt_zeroFollowsTheMode(t *testing.T) {
	if testserver.Each(t, TestStmt_zeroFollowsTheMode) {
		return
	}
	ours, plain := openScripted(t, scriptRule(t, listed(int64(70), int64(71), int64(72)), "ruled.id"))
	ours.SetMaxOpenConns(1)
	mustExec(t, plain, "CREATE TABLE ruled (id BIGINT PRIMARY KEY, a INT)")
	st := must(ours.Prepare("INSERT INTO ruled (id, a) VALUES (0, ?)"))(t)
	defer st.Close()
	for i, mode := range []string{"", "NO_AUTO_VALUE_ON_ZERO", ""} {
		mustExec(t, ours, "SET sql_mode = '"+mode+"'")
		must(st.Exec(i))(t)
	}
	if have := column(t, plain, "SELECT id FROM ruled ORDER BY a"); have != "71 0 72" { // 70 told what kind of keys there are
		t.Errorf("have: %s\nwant: 71 0 72", have)
	}
}
