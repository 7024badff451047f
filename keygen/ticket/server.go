package ticket

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/shardkey/shardkey/keygen/internal/mysqldb"
	"github.com/shardkey/shardkey/keygen/internal/stats"
	"github.com/shardkey/shardkey/spi"
)

// block is a run of numbers: first, first+stride, …
type block struct {
	first, count, stride int64
}

// cut takes n numbers off the front.
func (b *block) cut(n int64) block {
	head := block{b.first, n, b.stride}
	b.first += n * b.stride
	b.count -= n
	return head
}

// server is one ticket server. One goroutine at a time uses it: the fetch under
// way. It keeps one connection, so that a process does not deadlock with itself.
type server struct {
	name      string // network, address and database
	connector driver.Connector
	clock     spi.Clock
	table     string // quoted
	increment int64

	db   *sql.DB
	conn *sql.Conn // nil until checked
	// What the checks of the connection found.
	offset int64
	column string // quoted name of the AUTO_INCREMENT column
	end    int64  // the first number that must not be used
	noLock bool   // the server does not lock tables for this user

	last    int64 // the highest number handed out
	refused error // why it is never asked again
}

// newServer makes a server without connecting.
func newServer(c config, dsn string) (*server, error) {
	cfg, err := parseDSN(dsn, c.Timeout)
	if err != nil {
		return nil, err
	}
	connector, err := mysqldb.NewConnector("dsns", cfg)
	if err != nil {
		return nil, err
	}
	table, _ := mysqldb.QuoteTable(c.Table) // checked by withDefaults
	return &server{
		name:      mysqldb.Name(cfg),
		connector: connector, clock: c.Clock, table: table, increment: c.Increment,
	}, nil
}

// fetch asks for n numbers. On a connection that has been idle and broke, or whose
// server has become read-only, it asks once more on a new one: a REPLACE done twice only
// leaves a gap.
func (s *server) fetch(ctx context.Context, n int64) (block, error) {
	if s.refused != nil {
		return block{}, s.refused
	}
	idle := s.conn != nil
	b, err := s.fetchOnce(ctx, n)
	if err != nil && s.conn == nil && idle && (mysqldb.IsBroken(err) || mysqldb.IsReadOnly(err)) {
		b, err = s.fetchOnce(ctx, n)
	}
	if err != nil {
		return block{}, s.explain(err)
	}
	return b, nil
}

func (s *server) fetchOnce(ctx context.Context, n int64) (block, error) {
	if err := s.connect(ctx); err != nil {
		return block{}, err
	}
	b, err := s.replace(ctx, n)
	if err != nil {
		s.disconnect()
		return block{}, err
	}
	return b, s.accept(b)
}

func insertID(res sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return res.LastInsertId()
}

// accept checks numbers before they become keys.
func (s *server) accept(b block) error {
	e := storeError(s.name, "", nil, nil)
	last := b.first + (b.count-1)*b.stride
	switch {
	case b.first == 0:
		e.Detail = "REPLACE returned no LAST_INSERT_ID; the table must have an AUTO_INCREMENT column"
	case b.first < 0 || last < b.first || last >= s.end:
		e.Kind, e.Detail = errExhausted, fmt.Sprintf("the AUTO_INCREMENT column of %s is at its end, %d; make it bigint unsigned, or use another table", s.table, s.end)
	case (b.first-s.offset)%s.increment != 0:
		e.Kind, e.Detail = errSettings, fmt.Sprintf("it returned %d, which auto_increment_increment %d and auto_increment_offset %d cannot make", b.first, s.increment, s.offset)
	case b.first <= s.last:
		e.Kind, e.Detail = errRepeated, fmt.Sprintf("it returned %d after %d; set AUTO_INCREMENT of %s above all keys in use and start again", b.first, s.last, s.table)
		// Used further, it would repeat numbers that others have.
		s.refused = e
	default:
		s.last = last
		return nil
	}
	s.disconnect()
	return e
}

// noEnd is the end of a 64-bit column: keys are int64.
const noEnd = math.MaxInt64

// connect opens the connection and checks the settings that it has; a
// connection keeps them whatever becomes of the server's.
func (s *server) connect(ctx context.Context) error {
	if s.conn != nil {
		return nil
	}
	if s.db == nil {
		s.db = sql.OpenDB(s.connector)
		s.db.SetMaxOpenConns(1)
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	s.conn = conn
	for _, check := range []func(context.Context) error{s.readSettings, s.readColumns} {
		if err := check(ctx); err != nil {
			s.disconnect()
			return err
		}
	}
	return nil
}

// disconnect ends the connection instead of giving it back to the pool: the
// next one is checked again.
func (s *server) disconnect() {
	if s.conn == nil {
		return
	}
	_ = s.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = s.conn.Close()
	s.conn = nil
}

func (s *server) readSettings(ctx context.Context) error {
	var increment, offset int64
	var version string
	err := s.conn.QueryRowContext(ctx, "SELECT @@auto_increment_increment, @@auto_increment_offset, VERSION()").Scan(&increment, &offset, &version)
	if err != nil {
		return err
	}
	s.offset = offset
	// TiDB ignores LOCK TABLES unless it is enabled:
	// https://docs.pingcap.com/tidb/stable/sql-statement-lock-tables-and-unlock-tables/
	s.noLock = strings.Contains(strings.ToLower(version), "tidb")
	switch {
	case increment != s.increment:
		return s.settings("auto_increment_increment is %d, not %d; set it, or the property increment", increment, s.increment)
	case offset > increment:
		// The server would ignore it and count from 1.
		return s.settings("auto_increment_offset %d is above auto_increment_increment %d; set it to one of 1..%d", offset, increment, increment)
	}
	return nil
}

func (s *server) settings(format string, args ...any) error {
	return storeError(s.name, fmt.Sprintf(format, args...), errSettings, nil)
}

// readColumns finds the AUTO_INCREMENT column and its type's end.
func (s *server) readColumns(ctx context.Context) error {
	rows, err := s.conn.QueryContext(ctx, "SHOW COLUMNS FROM "+s.table)
	if err != nil {
		return err
	}
	defer rows.Close()
	s.column = ""
	for rows.Next() {
		var field, typ, extra string
		var null, key, def sql.NullString
		if err := rows.Scan(&field, &typ, &null, &key, &def, &extra); err != nil {
			return err
		}
		if strings.Contains(strings.ToLower(extra), "auto_increment") {
			s.column, s.end = mysqldb.QuoteName(field), columnEnd(typ)
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if s.column == "" {
		return storeError(s.name, "the table has no AUTO_INCREMENT column; make it with "+s.ddl(), nil, nil)
	}
	return nil
}

// columnEnd is the largest value of an integer type: the one at which
// AUTO_INCREMENT stays.
func columnEnd(typ string) int64 {
	typ = strings.ToLower(typ)
	bits := map[string]uint{"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32}[strings.FieldsFunc(typ+" ", func(r rune) bool { return r == '(' || r == ' ' })[0]]
	switch {
	case bits == 0:
		return noEnd
	case strings.Contains(typ, "unsigned"):
		return 1<<bits - 1
	}
	return 1<<(bits-1) - 1
}

func (s *server) ddl() string {
	return "CREATE TABLE " + s.table + " (id bigint unsigned NOT NULL AUTO_INCREMENT, stub char(1) NOT NULL DEFAULT '', PRIMARY KEY (id), UNIQUE KEY stub (stub)) ENGINE=InnoDB"
}

// close closes the connection.
func (s *server) close() error {
	if s.db == nil {
		return nil
	}
	s.disconnect()
	if err := s.db.Close(); err != nil {
		return storeError(s.name, "closing the connection", nil, err)
	}
	return nil
}

// explain puts the server's error into words.
func (s *server) explain(err error) error {
	var known *stats.StoreError
	if errors.As(err, &known) {
		return err
	}
	e := storeError(s.name, "no number", nil, err)
	switch mysqldb.Number(err) {
	case mysqldb.ErrNoSuchTable:
		e.Advice = "make the table with " + s.ddl()
	case mysqldb.ErrNoDatabase:
		e.Advice = "name the database in the DSN"
	case mysqldb.ErrDBAccessDenied, mysqldb.ErrTableDenied:
		e.Advice = "GRANT SELECT, INSERT, DELETE, LOCK TABLES ON the database of " + s.table
	case mysqldb.ErrAccessDenied:
		e.Advice = "check user and password"
	case mysqldb.ErrReadOnly:
		e.Advice = "a ticket server must be writable"
	case mysqldb.ErrOutOfRangeMariaDB, mysqldb.ErrOutOfRangeColumn, mysqldb.ErrNoAutoIncrement, mysqldb.ErrDuplicateKey: // MySQL makes the last id again at the column's end
		e.Kind, e.Detail = errExhausted, "the AUTO_INCREMENT column of "+s.table+" is at its end; make it bigint unsigned, or use another table"
	}
	return e
}
