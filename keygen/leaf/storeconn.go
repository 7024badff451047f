package leaf

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/spi"
)

// newSQLStore makes the store without connecting. conns is the pool's size.
func newSQLStore(c Config, conns int) (*sqlStore, error) {
	cfg, err := c.mysqlConfig()
	if err != nil {
		return nil, err
	}
	s := &sqlStore{key: c.Key, clock: c.Clock, conns: conns}
	if cfg == nil {
		return s, nil
	}
	if s.connector, err = mysql.NewConnector(cfg); err != nil {
		return nil, badDSN(err)
	}
	s.addr = fmt.Sprintf("%s(%s)/%s", cfg.Net, cfg.Addr, cfg.DBName)
	return s, nil
}

// open starts the pool at the first use: until then there is no goroutine.
func (s *sqlStore) open() (*sql.DB, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, spi.ErrClosed
	case s.connector == nil:
		return nil, &Error{Key: s.key, Detail: "no database is known; give leaf.jdbc.url or dsn"}
	case s.db == nil:
		s.db = sql.OpenDB(s.connector)
		s.db.SetMaxOpenConns(s.conns)
		s.db.SetMaxIdleConns(s.conns)
	}
	return s.db, nil
}

// prepared is the statement of a fetch: one round trip each, and no text with
// values in it, whatever the connection's character set.
func (s *sqlStore) prepared(ctx context.Context, db *sql.DB) (*sql.Stmt, error) {
	s.mu.Lock()
	stmt := s.one
	s.mu.Unlock()
	if stmt != nil {
		return stmt, nil
	}
	stmt, err := db.PrepareContext(ctx, claimOne)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.one != nil || s.closed {
		defer stmt.Close()
	}
	switch {
	case s.closed:
		return nil, spi.ErrClosed
	case s.one == nil:
		s.one = stmt
	}
	return s.one, nil
}

func (s *sqlStore) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.db == nil {
		return nil
	}
	if s.one != nil {
		_ = s.one.Close()
	}
	return s.db.Close()
}

// Numbers of MySQL's and MariaDB's errors that have a way out of their own.
const (
	errDBAccessDenied   = 1044
	errAccessDenied     = 1045
	errNoDatabase       = 1046
	errTableDenied      = 1142
	errNoSuchTable      = 1146
	errOutOfRangeColumn = 1264
	errReadOnly         = 1290
	errOutOfRange       = 1690
)

const ddl = "CREATE TABLE leaf_alloc (biz_tag varchar(128) NOT NULL DEFAULT '', max_id bigint NOT NULL DEFAULT 1, step int NOT NULL, " +
	"description varchar(256) DEFAULT NULL, update_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, " +
	"PRIMARY KEY (biz_tag)) ENGINE=InnoDB"

// explain puts the database's error into words. Errors that are explained
// already, and the context's own, are left as they are.
func (s *sqlStore) explain(ctx context.Context, err error) error {
	var known *Error
	if errors.As(err, &known) || errors.Is(err, spi.ErrClosed) {
		return err
	}
	e := &Error{Key: s.key, Cause: err, Detail: "no segment from " + s.addr}
	var server *mysql.MySQLError
	if !errors.As(err, &server) {
		if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
			e.Cause = fmt.Errorf("%w: %w", ctx.Err(), err)
		}
		return e
	}
	switch server.Number {
	case errNoSuchTable:
		e.Detail += "; make the table with " + ddl
	case errNoDatabase:
		e.Detail += "; name the database in leaf.jdbc.url or dsn"
	case errTableDenied:
		e.Detail += "; GRANT SELECT, UPDATE ON leaf_alloc"
	case errAccessDenied, errDBAccessDenied:
		e.Detail += "; check leaf.jdbc.username and leaf.jdbc.password"
	case errReadOnly:
		e.Detail += "; the address must be that of the primary"
	case errOutOfRange, errOutOfRangeColumn:
		return s.exhausted(err)
	}
	return e
}
