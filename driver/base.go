package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// The deprecated interfaces, declared again here: a base may have nothing newer.
type (
	execer interface {
		Exec(query string, args []driver.Value) (driver.Result, error)
	}
	queryer interface {
		Query(query string, args []driver.Value) (driver.Rows, error)
	}
	columnConverter interface {
		ColumnConverter(idx int) driver.ValueConverter
	}
)

// baseConn is a connection of the base with its optional interfaces, found once
// at connect. Its methods do what database/sql does (ctxutil.go) where the base
// lacks one; errors of the base come back as the same values.
type baseConn struct {
	conn     driver.Conn
	preparer driver.ConnPrepareContext
	execCtx  driver.ExecerContext
	exec     execer
	queryCtx driver.QueryerContext
	query    queryer
	beginner driver.ConnBeginTx
	pinger   driver.Pinger
	checker  driver.NamedValueChecker
	resetter driver.SessionResetter
	valid    driver.Validator

	// preparesAll says that the base knows no direct execution. database/sql
	// then shows arguments to its statements only, which may take other types
	// than its connection does.
	preparesAll bool
	// ruined: what the server keeps of the session is not to be met by the next user,
	// and the pool is told to close the connection.
	ruined bool

	kept keptStatements
}

func newBaseConn(conn driver.Conn) baseConn {
	b := baseConn{conn: conn}
	b.preparer, _ = conn.(driver.ConnPrepareContext)
	b.execCtx, _ = conn.(driver.ExecerContext)
	b.exec, _ = conn.(execer)
	b.queryCtx, _ = conn.(driver.QueryerContext)
	b.query, _ = conn.(queryer)
	b.beginner, _ = conn.(driver.ConnBeginTx)
	b.pinger, _ = conn.(driver.Pinger)
	b.checker, _ = conn.(driver.NamedValueChecker)
	b.resetter, _ = conn.(driver.SessionResetter)
	b.valid, _ = conn.(driver.Validator)
	b.preparesAll = b.execCtx == nil && b.exec == nil && b.queryCtx == nil && b.query == nil
	return b
}

// execContext returns driver.ErrSkip when the base does or cannot execute a
// text directly.
func (b *baseConn) execContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	switch {
	case b.execCtx != nil:
		res, err := b.execCtx.ExecContext(ctx, query, args)
		return res, b.noted(err)
	case b.exec == nil:
		return nil, driver.ErrSkip
	}
	values, err := namedToValues(args)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	res, err := b.exec.Exec(query, values)
	return res, b.noted(err)
}

// queryContext is execContext for statements that return rows.
func (b *baseConn) queryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	switch {
	case b.queryCtx != nil:
		rows, err := answered(b.queryCtx.QueryContext(ctx, query, args))
		return rows, b.noted(err)
	case b.query == nil:
		return nil, driver.ErrSkip
	}
	values, err := namedToValues(args)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	rows, err := answered(b.query.Query(query, values))
	return rows, b.noted(err)
}

// prepareContext makes room at the server, where it has none, by closing what is
// kept.
func (b *baseConn) prepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	stmt, err := b.prepareNow(ctx, query)
	const tooManyStatements = 1461
	if b.kept.total == nil || b.kept.total.n.Load() == 0 || !isServerError(err, tooManyStatements) {
		return stmt, err
	}
	b.kept.noRoom()
	return b.prepareNow(ctx, query)
}

func (b *baseConn) prepareNow(ctx context.Context, query string) (stmt driver.Stmt, err error) {
	if b.preparer != nil {
		stmt, err = b.preparer.PrepareContext(ctx, query)
	} else {
		stmt, err = b.conn.Prepare(query)
	}
	switch {
	case err != nil:
		return stmt, b.noted(err)
	case stmt == nil:
		return nil, errNoAnswer
	case b.preparer == nil && ctx.Err() != nil:
		_ = stmt.Close() // the context has ended: its error is the one to return
		return nil, ctx.Err()
	}
	return stmt, err
}

// errNoAnswer is the error for a base that returns neither an error nor what was
// asked for, as a mock may.
var errNoAnswer = errors.New("shardkey: the base driver returned nil without an error")

// answered refuses rows that are nil, which end the process in database/sql.
func answered(rows driver.Rows, err error) (driver.Rows, error) {
	if err == nil && rows == nil {
		err = errNoAnswer
	}
	return rows, err
}

func (b *baseConn) beginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	switch {
	case b.beginner != nil:
		tx, err := b.beginner.BeginTx(ctx, opts)
		return tx, b.noted(err)
	case opts.Isolation != 0:
		return nil, errors.New("sql: driver does not support non-default isolation level")
	case opts.ReadOnly:
		return nil, errors.New("sql: driver does not support read-only transactions")
	}
	tx, err := b.begin()
	if err == nil && ctx.Err() != nil {
		_ = tx.Rollback()
		return nil, ctx.Err()
	}
	return tx, err
}

// begin is the deprecated method, which every connection has.
func (b *baseConn) begin() (driver.Tx, error) {
	return b.conn.(interface{ Begin() (driver.Tx, error) }).Begin()
}

// noted returns an error as it is, and notes when it says that the server's session is
// of no use: after a transaction has failed, Vitess answers everything with
// VT09032 until a ROLLBACK, which nobody sends whose statement was in no transaction
// of his own.
func (b *baseConn) noted(err error) error {
	if err == nil || err == driver.ErrSkip {
		return err
	}
	var my *mysql.MySQLError
	if errors.As(err, &my) && (strings.Contains(my.Message, "VT15001") || strings.Contains(my.Message, "VT09032")) {
		b.ruined = true
	}
	return err
}

// ruin lets the connection go, whose session is not what the next user may expect.
func (b *baseConn) ruin() {
	if b.ruined = true; b.valid == nil && b.resetter == nil {
		_ = b.conn.Close() // else nothing would tell the pool
	}
}

// resetSession and isValid are the base's, where it has them, for a connection that
// another may use.
func (b *baseConn) resetSession(ctx context.Context) error {
	if b.ruined {
		return driver.ErrBadConn
	}
	return b.resetter.ResetSession(ctx)
}

func (b *baseConn) isValid() bool { return !b.ruined && b.valid.IsValid() }

func (b *baseConn) ping(ctx context.Context) error {
	if b.pinger == nil {
		return nil // as database/sql: a connection is there
	}
	return b.pinger.Ping(ctx)
}

// checkNamedValue converts an argument as the base's connection does, and
// returns driver.ErrSkip where the default conversion holds.
func (b *baseConn) checkNamedValue(nv *driver.NamedValue) error {
	if b.checker == nil {
		return driver.ErrSkip
	}
	return b.checker.CheckNamedValue(nv)
}

// convertKey converts a key to a type that the base takes, as database/sql does
// with the user's arguments.
func (b *baseConn) convertKey(nv *driver.NamedValue) error {
	if b.preparesAll {
		return nil // the base's statement is asked later
	}
	if err := b.checkNamedValue(nv); err != driver.ErrSkip {
		return err
	}
	return defaultCheck(nv)
}

// namedToValues drops the ordinals, for the deprecated methods.
func namedToValues(named []driver.NamedValue) ([]driver.Value, error) {
	values := make([]driver.Value, len(named))
	for i, nv := range named {
		if nv.Name != "" {
			return nil, errors.New("sql: driver does not support the use of Named Parameters")
		}
		values[i] = nv.Value
	}
	return values, nil
}

// valuesToNamed numbers the arguments of a deprecated method.
func valuesToNamed(values []driver.Value) []driver.NamedValue {
	named := make([]driver.NamedValue, len(values))
	for i, v := range values {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return named
}

// baseStmt is a prepared statement, of the base or a fill of ours, with its
// optional interfaces, found once.
type baseStmt struct {
	driver.Stmt
	conn      *baseConn
	execCtx   driver.StmtExecContext
	queryCtx  driver.StmtQueryContext
	checker   driver.NamedValueChecker
	converter columnConverter
}

func newBaseStmt(conn *baseConn, stmt driver.Stmt) baseStmt {
	s := baseStmt{Stmt: stmt, conn: conn}
	s.execCtx, _ = stmt.(driver.StmtExecContext)
	s.queryCtx, _ = stmt.(driver.StmtQueryContext)
	s.checker, _ = stmt.(driver.NamedValueChecker)
	s.converter, _ = stmt.(columnConverter)
	return s
}

func (s *baseStmt) execContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if s.execCtx != nil {
		res, err := s.execCtx.ExecContext(ctx, args)
		return res, s.conn.noted(err)
	}
	values, err := namedToValues(args)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.exec(values)
}

func (s *baseStmt) queryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if s.queryCtx != nil {
		rows, err := answered(s.queryCtx.QueryContext(ctx, args))
		return rows, s.conn.noted(err)
	}
	values, err := namedToValues(args)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return s.query(values)
}

// exec and query are the deprecated methods, which every statement has.
func (s *baseStmt) exec(values []driver.Value) (driver.Result, error) {
	res, err := s.Stmt.(interface {
		Exec(args []driver.Value) (driver.Result, error)
	}).Exec(values)
	return res, s.conn.noted(err)
}

func (s *baseStmt) query(values []driver.Value) (driver.Rows, error) {
	rows, err := answered(s.Stmt.(interface {
		Query(args []driver.Value) (driver.Rows, error)
	}).Query(values))
	return rows, s.conn.noted(err)
}

// checkNamedValue does what database/sql does with an argument of this
// statement: the statement's checker, else the connection's, and where they
// skip or are not there, the statement's converter or the default one. A
// statement with a converter gets driver.ErrSkip for the last step, so that
// database/sql itself asks it.
func (s *baseStmt) checkNamedValue(conn *baseConn, nv *driver.NamedValue) error {
	var err error
	if s.checker != nil {
		err = s.checker.CheckNamedValue(nv)
	} else {
		err = conn.checkNamedValue(nv)
	}
	if err != driver.ErrSkip || s.converter != nil {
		return err
	}
	return defaultCheck(nv)
}

// columnConverter is asked only where checkNamedValue skips.
func (s *baseStmt) columnConverter(idx int) driver.ValueConverter {
	if s.converter == nil {
		return driver.DefaultParameterConverter
	}
	return s.converter.ColumnConverter(idx)
}

func defaultCheck(nv *driver.NamedValue) (err error) {
	nv.Value, err = driver.DefaultParameterConverter.ConvertValue(nv.Value)
	return err
}
