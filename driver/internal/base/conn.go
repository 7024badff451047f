// Package base calls a connection of any database/sql driver as database/sql does, and caches its
// prepared statements. It doesn't depend on sharding.
//
// The underlying driver must have the methods with contexts; see [New]. If it lacks other optional
// interfaces of database/sql/driver, the methods here do the same as database/sql. Errors of the driver
// are returned unchanged.
package base

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/sqlerr"
)

// MaxPlaceholders is the maximum number of placeholders in a prepared statement, which has 16 bits
// in the protocol (num_params of COM_STMT_PREPARE_OK).
const MaxPlaceholders = 65535

// ErrTooManyPlaceholders is in the chain of the error for a statement with more than
// MaxPlaceholders placeholders.
var ErrTooManyPlaceholders = errors.New("shardkey: too many placeholders")

// TooManyPlaceholders returns the error for a statement with user placeholders of the program and
// added placeholders for keys.
func TooManyPlaceholders(user, added int) error {
	return fmt.Errorf("%w: %d of the statement and %d for its keys are more than the %d that the server accepts; "+
		"insert fewer rows at a time, or set interpolateParams=true", ErrTooManyPlaceholders, user, added, MaxPlaceholders)
}

// contextConn has the methods that a connection of the underlying driver must have. They exist since
// Go 1.8.
type contextConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
}

// Conn is a connection of the underlying driver with its optional interfaces. One goroutine at a
// time uses it.
type Conn struct {
	conn     contextConn
	pinger   driver.Pinger
	checker  driver.NamedValueChecker
	resetter driver.SessionResetter
	valid    driver.Validator

	broken    bool // see Retire
	discarded bool // closed by discard
	cached    statements
}

// New returns a Conn. If cache is nil, it caches no statements. The error wraps
// errors.ErrUnsupported and names an interface that the connection lacks.
func New(conn driver.Conn, cache *Cache) (c Conn, err error) {
	var ok bool
	if c.conn, ok = conn.(contextConn); !ok {
		return c, lacks(conn, reflect.TypeFor[driver.ExecerContext](), reflect.TypeFor[driver.QueryerContext](),
			reflect.TypeFor[driver.ConnPrepareContext](), reflect.TypeFor[driver.ConnBeginTx]())
	}
	c.cached.cache = cache
	c.pinger, _ = conn.(driver.Pinger)
	c.checker, _ = conn.(driver.NamedValueChecker)
	c.resetter, _ = conn.(driver.SessionResetter)
	c.valid, _ = conn.(driver.Validator)
	return c, nil
}

// lacks returns the error for a connection or statement that doesn't implement all of these interfaces.
func lacks(of any, all ...reflect.Type) error {
	typ := reflect.TypeOf(of)
	all = slices.DeleteFunc(all, typ.Implements)
	return fmt.Errorf("shardkey: %w: the underlying driver's %s doesn't implement %s; "+
		"use a version of the driver, or of its wrapper, that supports contexts", errors.ErrUnsupported, typ, all[0])
}

// IsMySQL reports whether a connection is go-sql-driver's, which writes the arguments of a statement
// to the network before it returns. Another driver, for example one that logs statements, may keep them.
func IsMySQL(conn driver.Conn) bool {
	t := reflect.TypeOf(conn)
	return t.Kind() == reflect.Pointer && t.Elem().PkgPath() == reflect.TypeFor[mysql.MySQLDriver]().PkgPath()
}

// Unwrap returns the underlying driver's connection.
func (c *Conn) Unwrap() driver.Conn { return c.conn }

// Prepare prepares a query. If the server can't hold another statement, it closes the cached ones
// and tries again.
func (c *Conn) Prepare(ctx context.Context, query string) (Stmt, error) {
	stmt, err := c.prepare(ctx, query)
	if cache := c.cached.cache; cache != nil && cache.open.Load() > 0 && sqlerr.Is(err, sqlerr.TooManyStatements) {
		c.cached.full()
		stmt, err = c.prepare(ctx, query)
	}
	if err != nil {
		return Stmt{}, err
	}
	return NewStmt(c, stmt)
}

// RefusesToPrepare reports whether the server refuses to prepare a query with the same error that its
// execution returned. It then refused it before it executed any part of it.
func (c *Conn) RefusesToPrepare(ctx context.Context, query string, executed error) bool {
	stmt, err := c.prepare(ctx, query)
	if err == nil {
		_ = stmt.Close()
		return false
	}
	var first, again *mysql.MySQLError
	return errors.As(executed, &first) && errors.As(err, &again) && *first == *again
}

func (c *Conn) prepare(ctx context.Context, query string) (driver.Stmt, error) {
	stmt, err := c.conn.PrepareContext(ctx, query)
	if err == nil && stmt == nil {
		err = ErrNoAnswer
	}
	return stmt, c.noted(err)
}

// ErrNoAnswer is the error for a driver, for example a mock, that returns neither an error nor a
// result.
var ErrNoAnswer = errors.New("shardkey: the base driver returned nil without an error")

// answered returns an error for nil rows, which would crash the process in database/sql.
func answered(rows driver.Rows, err error) (driver.Rows, error) {
	if err == nil && rows == nil {
		err = ErrNoAnswer
	}
	return rows, err
}

// BeginTx starts a transaction.
func (c *Conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	tx, err := c.conn.BeginTx(ctx, opts)
	return tx, c.noted(err)
}

// Ping pings the server. It returns nil if the driver can't ping, as database/sql does.
func (c *Conn) Ping(ctx context.Context) error {
	if c.pinger == nil {
		return nil
	}
	return c.pinger.Ping(ctx)
}

// noted returns err, and retires the connection if its session can't be used any more. After a
// failed transaction, Vitess answers each statement with VT09032 until a ROLLBACK (pull request
// 17669), which a program outside a transaction doesn't send.
func (c *Conn) noted(err error) error {
	if err != nil && err != driver.ErrSkip {
		c.note(err)
	}
	return err
}

func (c *Conn) note(err error) {
	if my, ok := errors.AsType[*mysql.MySQLError](err); ok && (strings.Contains(my.Message, "VT15001") || strings.Contains(my.Message, "VT09032")) {
		c.broken = true
	}
}

// Retire makes the pool close the connection after its current use. Call it if the session's state
// has changed for the next user.
func (c *Conn) Retire() { c.broken = true }

// errMoreResults is the error for an answer that announces another one, which no query asked for.
var errMoreResults = errors.New("the answer is followed by another one")

// ReadRows calls each for every row of a query, and closes the rows. If the answer can't be read to
// its end, it closes the connection instead: go-sql-driver's Close reads the rest of the answer
// without the query's context (rows.go, mysqlRows.Close), so a damaged one would block it forever.
func (c *Conn) ReadRows(rows driver.Rows, each func([]driver.Value)) error {
	row := make([]driver.Value, len(rows.Columns()))
	err := rows.Next(row)
	for ; err == nil; err = rows.Next(row) {
		each(row)
	}
	if err == io.EOF && IsMySQL(c.conn) {
		err = atEnd(rows)
	}
	switch more, ok := rows.(driver.RowsNextResultSet); {
	case err == io.EOF && ok && more.HasNextResultSet():
		return c.discard(errMoreResults)
	case err == io.EOF:
		return rows.Close()
	case errors.As(err, new(*mysql.MySQLError)): // the answer's end
		_ = rows.Close()
		return err
	}
	return c.discard(err)
}

// atEnd returns io.EOF if the answer ends after a row for which go-sql-driver returned io.EOF. It also
// returns that for a row that is too short (utils.go, readLengthEncodedString). Without values to
// read, a further row can't be too short.
func atEnd(rows driver.Rows) error {
	if err := rows.Next(nil); err != nil {
		return err
	}
	return mysql.ErrMalformPkt
}

// discard closes the connection after an error, and returns it as an error of the connection.
func (c *Conn) discard(err error) error {
	c.Retire()
	c.discarded = true
	_ = c.conn.Close()
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%w: %w", mysql.ErrInvalidConn, err)
}

// ResetSession prepares the connection for its next user. If the driver has no ResetSession, it
// does nothing.
func (c *Conn) ResetSession(ctx context.Context) error {
	switch {
	case c.broken:
		return driver.ErrBadConn
	case c.resetter == nil:
		return nil
	}
	return c.resetter.ResetSession(ctx)
}

// IsValid reports whether the pool may reuse the connection. A connection without this method is
// valid, as in database/sql.
func (c *Conn) IsValid() bool { return !c.broken && (c.valid == nil || c.valid.IsValid()) }

// Close closes the cached statements and the connection.
func (c *Conn) Close() error {
	c.cached.clear()
	if c.discarded {
		return nil
	}
	return c.conn.Close()
}

// CheckNamedValue converts an argument as the driver's connection does. It returns driver.ErrSkip
// for the default conversion.
func (c *Conn) CheckNamedValue(nv *driver.NamedValue) error {
	if c.checker == nil {
		return driver.ErrSkip
	}
	return c.checker.CheckNamedValue(nv)
}

// Convert converts an argument to a type that the driver accepts, as database/sql does.
func (c *Conn) Convert(nv *driver.NamedValue) (err error) {
	if err = c.CheckNamedValue(nv); err == driver.ErrSkip {
		nv.Value, err = driver.DefaultParameterConverter.ConvertValue(nv.Value)
	}
	return err
}

// Named numbers the arguments of a deprecated method.
func Named(values []driver.Value) []driver.NamedValue {
	named := make([]driver.NamedValue, len(values))
	for i, v := range values {
		named[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return named
}
