package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
)

// fakeBase is a driver whose connections do nothing but write down what is
// asked of them. Its kinds differ in the optional interfaces that they have.
type fakeBase struct {
	kind   string
	calls  []string
	bad    int // how many executions answer driver.ErrBadConn
	open   int // connections
	stmts  int // statements that are not closed
	closed int // Close calls of the connector

	refusal error // what each execution answers, where set
}

// count counts the calls that begin so.
func (b *fakeBase) count(call string) (n int) {
	for _, c := range b.calls {
		if strings.HasPrefix(c, call) {
			n++
		}
	}
	return n
}

var errFake = errors.New("fake: refused")

// The kinds, each with what it has beyond the least.
var fakeKinds = []string{
	"minimal",   // Prepare, Close, Begin; statements with Exec and Query
	"legacy",    // Execer, Queryer; statements with a ColumnConverter
	"direct",    // everything, executing directly
	"skipping",  // everything, answering ErrSkip to a text with arguments, as go-sql-driver does
	"stmtcheck", // minimal, and statements with a NamedValueChecker
	"conncheck", // direct execution with contexts and a NamedValueChecker, statements minimal
	"resetter",  // minimal and a SessionResetter
	"validator", // minimal and a Validator
	"uncounted", // minimal, statements whose NumInput is -1, with a ColumnConverter
}

func (b *fakeBase) log(format string, args ...any) {
	b.calls = append(b.calls, fmt.Sprintf(format, args...))
}

func (b *fakeBase) Connect(context.Context) (driver.Conn, error) {
	b.log("connect")
	b.open++
	c := &fakeConn{b}
	switch b.kind {
	case "legacy":
		return &fakeLegacy{c}, nil
	case "direct", "skipping":
		return &fakeFull{fakeReset{c}, fakeValid{c}, fakeDirect{c}}, nil
	case "conncheck":
		return &fakeDirect{c}, nil
	case "resetter":
		return &fakeReset{c}, nil
	case "validator":
		return &fakeValid{c}, nil
	}
	return c, nil
}

func (b *fakeBase) Driver() driver.Driver { return fakeDriver{b} }

func (b *fakeBase) Close() error { b.closed++; return nil }

// fakeDriver has no DriverContext.
type fakeDriver struct{ base *fakeBase }

func (d fakeDriver) Open(name string) (driver.Conn, error) {
	d.base.log("open %s", name)
	return d.base.Connect(context.Background())
}

func (b *fakeBase) outcome(query string) error {
	switch {
	case b.refusal != nil:
		return b.refusal
	case b.bad > 0:
		b.bad--
		return driver.ErrBadConn
	case strings.Contains(query, "FAIL"):
		return errFake
	}
	return nil
}

func (b *fakeBase) exec(what, query string, args any) (driver.Result, error) {
	b.log("%s %s %v", what, query, args)
	if err := b.outcome(query); err != nil {
		return nil, err
	}
	return fakeResult{}, nil
}

func (b *fakeBase) query(what, query string, args any) (driver.Rows, error) {
	b.log("%s %s %v", what, query, args)
	if err := b.outcome(query); err != nil {
		return nil, err
	}
	return &fakeRows{base: b}, nil
}

type fakeConn struct{ base *fakeBase }

func (c *fakeConn) Prepare(query string) (driver.Stmt, error) { return c.prepare("prepare", query) }

func (c *fakeConn) prepare(what, query string) (driver.Stmt, error) {
	c.base.log("%s %s", what, query)
	if strings.Contains(query, "UNPREPARABLE") {
		return nil, errFake
	}
	c.base.stmts++
	s := &fakeStmt{c.base, query}
	switch c.base.kind {
	case "legacy":
		return fakeConverterStmt{s}, nil
	case "uncounted":
		return fakeUncounted{fakeConverterStmt{s}}, nil
	case "direct", "skipping":
		return fakeFullStmt{fakeCheckerStmt{s}}, nil
	case "stmtcheck":
		return fakeCheckerStmt{s}, nil
	}
	return s, nil
}

func (c *fakeConn) Close() error { c.base.log("close"); c.base.open--; return nil }

func (c *fakeConn) Begin() (driver.Tx, error) { c.base.log("begin"); return fakeTx{c.base}, nil }

type fakeTx struct{ base *fakeBase }

func (t fakeTx) Commit() error   { t.base.log("commit"); return nil }
func (t fakeTx) Rollback() error { t.base.log("rollback"); return nil }

type fakeLegacy struct{ *fakeConn }

func (c *fakeLegacy) Exec(query string, args []driver.Value) (driver.Result, error) {
	return c.base.exec("exec", query, args)
}

func (c *fakeLegacy) Query(query string, args []driver.Value) (driver.Rows, error) {
	return c.base.query("query", query, args)
}

type fakeReset struct{ *fakeConn }

func (c *fakeReset) ResetSession(context.Context) error { c.base.log("reset"); return nil }

type fakeValid struct{ *fakeConn }

func (c *fakeValid) IsValid() bool { c.base.log("valid"); return true }

type fakeDirect struct{ *fakeConn }

func (c *fakeDirect) ExecContext(_ context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if c.base.kind == "skipping" && len(args) > 0 {
		c.base.log("execContext skips")
		return nil, driver.ErrSkip
	}
	return c.base.exec("execContext", query, args)
}

func (c *fakeDirect) QueryContext(_ context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if c.base.kind == "skipping" && len(args) > 0 {
		c.base.log("queryContext skips")
		return nil, driver.ErrSkip
	}
	return c.base.query("queryContext", query, args)
}

func (c *fakeDirect) CheckNamedValue(nv *driver.NamedValue) error {
	return fakeCheck(c.base, "conn", nv)
}

// fakeWide is a type that only a NamedValueChecker of the base takes.
type fakeWide struct{ n int }

func fakeCheck(b *fakeBase, who string, nv *driver.NamedValue) error {
	b.log("%s checks %T", who, nv.Value)
	switch v := nv.Value.(type) {
	case fakeWide:
		nv.Value = int64(v.n)
		return nil
	case nil:
		return driver.ErrRemoveArgument
	}
	return driver.ErrSkip
}

type fakeFull struct {
	fakeReset
	fakeValid
	fakeDirect
}

func (c *fakeFull) Prepare(query string) (driver.Stmt, error) { return c.fakeDirect.Prepare(query) }
func (c *fakeFull) Close() error                              { return c.fakeDirect.Close() }
func (c *fakeFull) Begin() (driver.Tx, error)                 { return c.fakeDirect.Begin() }

func (c *fakeFull) PrepareContext(_ context.Context, query string) (driver.Stmt, error) {
	return c.fakeDirect.prepare("prepareContext", query)
}

func (c *fakeFull) BeginTx(_ context.Context, opts driver.TxOptions) (driver.Tx, error) {
	c.fakeDirect.base.log("beginTx %+v", opts)
	return fakeTx{c.fakeDirect.base}, nil
}

func (c *fakeFull) Ping(context.Context) error { c.fakeDirect.base.log("ping"); return errFake }

type fakeStmt struct {
	base *fakeBase
	text string
}

func (s *fakeStmt) Close() error  { s.base.log("stmt close"); s.base.stmts--; return nil }
func (s *fakeStmt) NumInput() int { return strings.Count(s.text, "?") }

func (s *fakeStmt) Exec(args []driver.Value) (driver.Result, error) {
	return s.base.exec("stmt exec", s.text, args)
}

func (s *fakeStmt) Query(args []driver.Value) (driver.Rows, error) {
	return s.base.query("stmt query", s.text, args)
}

type fakeConverterStmt struct{ *fakeStmt }

func (s fakeConverterStmt) ColumnConverter(idx int) driver.ValueConverter {
	s.base.log("converter %d", idx)
	return driver.DefaultParameterConverter
}

type fakeUncounted struct{ fakeConverterStmt }

func (fakeUncounted) NumInput() int { return -1 }

type fakeCheckerStmt struct{ *fakeStmt }

func (s fakeCheckerStmt) CheckNamedValue(nv *driver.NamedValue) error {
	return fakeCheck(s.base, "stmt", nv)
}

type fakeFullStmt struct{ fakeCheckerStmt }

func (s fakeFullStmt) ExecContext(_ context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.base.exec("stmt execContext", s.text, args)
}

func (s fakeFullStmt) QueryContext(_ context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.base.query("stmt queryContext", s.text, args)
}

type fakeResult struct{}

func (fakeResult) LastInsertId() (int64, error) { return 7, nil }
func (fakeResult) RowsAffected() (int64, error) { return 1, nil }

// fakeRows are two result sets of one row each.
type fakeRows struct {
	base      *fakeBase
	set, read int
}

func (r *fakeRows) Columns() []string { return []string{"c"} }
func (r *fakeRows) Close() error      { r.base.log("rows close"); return nil }

func (r *fakeRows) Next(dest []driver.Value) error {
	if r.read++; r.read > 1 {
		return io.EOF
	}
	dest[0] = int64(r.set)
	return nil
}

func (r *fakeRows) HasNextResultSet() bool { return r.set == 0 }

func (r *fakeRows) NextResultSet() error {
	if r.set++; r.set > 1 {
		return io.EOF
	}
	r.read = 0
	return nil
}

func (r *fakeRows) ColumnTypeDatabaseTypeName(int) string { return "FAKE" }

// The deprecated interfaces of connections.
type (
	oldExecer interface {
		Exec(query string, args []driver.Value) (driver.Result, error)
	}
	oldQueryer interface {
		Query(query string, args []driver.Value) (driver.Rows, error)
	}
)
