package leaf

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardkey/shardkey/keygen/internal/mysqldb"
	"github.com/shardkey/shardkey/keygen/internal/stats"
	"github.com/shardkey/shardkey/spi"
)

// store is where segments come from: one row of leaf_alloc, or a test's fake.
// Its errors are *Error, or of the context. Its methods are called by many
// goroutines at once.
type store interface {
	// baseStep reads the row's own step.
	baseStep(ctx context.Context) (int64, error)
	// claim raises max_id by n, provided that it is at or above least, and
	// returns the first of the n numbers, which is above 0.
	claim(ctx context.Context, n, least int64) (first int64, err error)
	// close closes the connections.
	close() error
}

// noLeast is the least of a generator that has claimed nothing yet.
const noLeast = math.MinInt64

// sqlStore keeps a pool of its own: a claim inside a caller's transaction would
// be rolled back with it, and would lock the row until its end.
type sqlStore struct {
	key       string
	connector driver.Connector // nil when no address is known
	addr      string
	clock     spi.Clock
	conns     int   // the pool's size
	gap       int64 // left when the server is another one than before; 0: none
	logger    *slog.Logger
	warning   atomic.Value // string: for Health

	mu     sync.Mutex
	db     *sql.DB   // opened by the first use
	one    *sql.Stmt // claimOne, prepared
	closed bool

	echo atomic.Int32 // what is known of the server's OK packets
}

// What a server does with LAST_INSERT_ID(expr) of an UPDATE.
const (
	echoUnknown = iota // nothing known yet
	echoYes            // its OK packet carries the value
	echoNo             // it does not
)

const (
	selectStep = "SELECT step FROM leaf_alloc WHERE biz_tag = ?"
	// claimOne is the whole of a fetch where the server echoes.
	claimOne = "UPDATE leaf_alloc SET max_id = LAST_INSERT_ID(max_id + ?) " +
		"WHERE biz_tag = ? AND max_id >= ? AND max_id <= ?"
	selectRow = "SELECT LEAST(max_id, 9223372036854775807) FROM leaf_alloc WHERE biz_tag = ? FOR UPDATE"
	// claimSwap is the second statement of the transaction. Comparing max_id
	// keeps it right on an engine whose FOR UPDATE locks nothing.
	claimSwap = "UPDATE leaf_alloc SET max_id = LAST_INSERT_ID(?) WHERE biz_tag = ? AND max_id = ?"
)

func (s *sqlStore) baseStep(ctx context.Context) (int64, error) {
	db, err := s.open()
	if err != nil {
		return 0, err
	}
	return retry(ctx, s, func() (int64, error) {
		steps, err := integers(ctx, db, selectStep, s.key)
		if err != nil {
			return 0, err
		}
		step, err := s.onlyRow(steps)
		if err == nil && step < 1 {
			err = storeError(s.key, fmt.Sprintf("the row's step is %d; set it to 1 or more, 1000 for example", step), errBadRow, nil)
		}
		return step, err
	})
}

func (s *sqlStore) claim(ctx context.Context, n, least int64) (int64, error) {
	db, err := s.open()
	if err != nil {
		return 0, err
	}
	return retry(ctx, s, func() (int64, error) {
		if s.echo.Load() == echoYes {
			first, err := s.claimOne(ctx, db, n, least)
			if err != nil || first > 0 {
				return first, err
			}
		}
		return s.claimSwap(ctx, db, n, least)
	})
}

// claimOne claims with one statement. It returns 0 when that claimed nothing
// that could be handed out; the transaction then does it or finds the reason.
func (s *sqlStore) claimOne(ctx context.Context, db *sql.DB, n, least int64) (int64, error) {
	stmt, err := s.prepared(ctx, db)
	if err != nil {
		return 0, err
	}
	res, err := stmt.ExecContext(ctx, n, s.key, least, math.MaxInt64-n)
	if err != nil {
		return 0, err
	}
	switch rows, _ := res.RowsAffected(); {
	case rows == 0:
		return 0, nil
	case rows > 1:
		return 0, s.notUnique()
	}
	if end, _ := res.LastInsertId(); end > n && end-n >= least {
		return end - n, nil
	}
	// Another server behind the same address, one that does not echo: the
	// numbers just claimed are a gap.
	s.echo.Store(echoNo)
	return 0, nil
}

// claimSwap claims with a transaction as Leaf does, and finds out whether the
// server echoes.
func (s *sqlStore) claimSwap(ctx context.Context, db *sql.DB, n, least int64) (int64, error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	values, err := integers(ctx, tx, selectRow, s.key)
	if err != nil {
		return 0, err
	}
	maxID, err := s.onlyRow(values)
	if err != nil {
		return 0, err
	}
	switch {
	case maxID < least:
		return 0, storeError(s.key, fmt.Sprintf(
			"max_id is %d, but numbers below %d were claimed before; find out who else has claimed numbers since, and set max_id above all of them", maxID, least), errMovedBack, nil)
	case maxID > math.MaxInt64-n:
		return 0, s.exhausted(nil)
	}
	first := max(maxID, 1) // 0 and less are not keys
	res, err := tx.ExecContext(ctx, claimSwap, first+n, s.key, maxID)
	if err != nil {
		return 0, err
	}
	if rows, _ := res.RowsAffected(); rows != 1 {
		return 0, errRaced
	}
	if err := tx.Commit(); err != nil {
		return 0, err
	}
	if echoed, _ := res.LastInsertId(); echoed == first+n {
		s.echo.CompareAndSwap(echoUnknown, echoYes)
	} else {
		s.echo.Store(echoNo)
	}
	return first, nil
}

func (s *sqlStore) onlyRow(values []int64) (int64, error) {
	switch len(values) {
	case 0:
		return 0, storeError(s.key, fmt.Sprintf(
			"leaf_alloc at %s has no row for it; INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('%s', 1, 1000), with max_id above every key in use", s.addr, s.key), errUnknownKey, nil)
	case 1:
		return values[0], nil
	}
	return 0, s.notUnique()
}

func (s *sqlStore) notUnique() error {
	return storeError(s.key, "leaf_alloc has several rows for it; make biz_tag the primary key", errBadRow, nil)
}

func (s *sqlStore) exhausted(cause error) error {
	return storeError(s.key, "max_id cannot be raised within its type; its numbers are used up, or it was set wrongly", errExhausted, cause)
}

// newSQLStore makes the store without connecting. conns is the pool's size.
func newSQLStore(c config, conns int) (*sqlStore, error) {
	cfg, err := c.mysqlConfig()
	if err != nil {
		return nil, err
	}
	s := &sqlStore{key: c.Key, clock: c.Clock, conns: conns, gap: c.FailoverGap, logger: c.Logger}
	if cfg == nil {
		return s, nil
	}
	s.addr = mysqldb.Name(cfg)
	connector, err := mysqldb.NewConnector("dsn", cfg)
	s.connector = mysqldb.Looking{Connector: connector, Look: s.look}
	return s, err
}

// open starts the pool at the first use: until then there is no goroutine.
func (s *sqlStore) open() (*sql.DB, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, spi.ErrClosed
	case s.connector == nil:
		return nil, storeError(s.key, "no database is known; give leaf.jdbc.url or dsn", nil, nil)
	case s.db == nil:
		s.db = sql.OpenDB(s.connector)
		s.db.SetMaxOpenConns(s.conns)
		s.db.SetMaxIdleConns(s.conns)
		s.db.SetConnMaxLifetime(10 * time.Minute)
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
	if err := s.db.Close(); err != nil {
		return storeError(s.key, "closing the connections to "+s.addr, nil, err)
	}
	return nil
}

const ddl = "CREATE TABLE leaf_alloc (biz_tag varchar(128) NOT NULL DEFAULT '', max_id bigint NOT NULL DEFAULT 1, step int NOT NULL, " +
	"description varchar(256) DEFAULT NULL, update_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, " +
	"PRIMARY KEY (biz_tag)) ENGINE=InnoDB"

// explain puts the database's error into words. Errors that are explained
// already, and the context's own, are left as they are.
func (s *sqlStore) explain(ctx context.Context, err error) error {
	var known *stats.StoreError
	if errors.As(err, &known) || errors.Is(err, spi.ErrClosed) {
		return err
	}
	e := storeError(s.key, "no segment from "+s.addr, nil, err)
	switch mysqldb.Number(err) {
	case 0: // not the server's
		if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
			e.Cause = fmt.Errorf("%w: %w", ctx.Err(), err)
		}
		if errors.Is(err, driver.ErrBadConn) {
			e.Advice = "connections to a server that is read-only end too: the address must be that of the primary"
		}
	case mysqldb.ErrNoSuchTable:
		e.Advice = "make the table with " + ddl
	case mysqldb.ErrNoDatabase:
		e.Advice = "name the database in leaf.jdbc.url or dsn"
	case mysqldb.ErrTableDenied:
		e.Advice = "GRANT SELECT, UPDATE ON leaf_alloc"
	case mysqldb.ErrAccessDenied, mysqldb.ErrDBAccessDenied:
		e.Advice = "check leaf.jdbc.username and leaf.jdbc.password"
	case mysqldb.ErrReadOnly:
		e.Advice = "the address must be that of the primary"
	case mysqldb.ErrOutOfRange, mysqldb.ErrOutOfRangeColumn:
		return s.exhausted(err)
	}
	return e
}

// errRaced says that another client changed the row between read and write.
var errRaced = errors.New("shardkey: leaf_alloc's row was changed by another client")

// retry repeats a claim after transient errors: deadlocks, a connection that
// broke. Doing an UPDATE twice only leaves a gap. A lost race is no failure of
// the store, since somebody else's claim went through, so it may be repeated
// more often: on an engine that locks no rows each claim is a race.
func retry(ctx context.Context, s *sqlStore, do func() (int64, error)) (int64, error) {
	const (
		attempts  = 5
		races     = 100
		longPause = 50 * time.Millisecond
	)
	failed, lost := 0, 0
	for {
		v, err := do()
		switch {
		case err == nil:
			return v, nil
		case errors.Is(err, errRaced):
			lost++
		case isTransient(err):
			failed++
		default:
			return 0, s.explain(ctx, err)
		}
		pause := min(time.Duration(failed+lost)*10*time.Millisecond, longPause)
		if failed == attempts || lost == races || s.clock.Sleep(ctx, rand.N(pause)) != nil {
			return 0, s.explain(ctx, err)
		}
	}
}

func isTransient(err error) bool {
	return mysqldb.IsDeadlock(err) || mysqldb.IsBroken(err)
}

type queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// integers reads the integers of a query's one column.
func integers(ctx context.Context, q queryer, query string, args ...any) (values []int64, err error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var v int64
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, rows.Err()
}
