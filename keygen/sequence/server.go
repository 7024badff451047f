package sequence

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/keygen/internal/mysqldb"
	"github.com/shardkey/shardkey/spi"
)

// claim is how numbers are claimed from a server. Errors other than the server's own are
// explained already. One goroutine at a time uses it.
type claim interface {
	// connected checks a new connection.
	connected(ctx context.Context, conn *sql.Conn) error
	// step is the fewest numbers to claim, known once there was a connection.
	step() int64
	// claim claims n numbers. Claimed twice, they only leave a gap.
	claim(ctx context.Context, conn *sql.Conn, n int64) (run, error)
}

// server is a database that has numbers. It keeps one connection of its own: a claim
// inside a caller's transaction would be rolled back with it, and with several
// connections a process would deadlock with itself. One goroutine at a time uses it.
type server struct {
	claim
	words
	name      string // network, address and database
	connector driver.Connector
	clock     spi.Clock
	warning   atomic.Value // string: for Health

	db     *sql.DB   // opened by the first use: until then there is no goroutine
	conn   *sql.Conn // nil until it is checked
	opened time.Time

	refused error // why it is never asked again

	// The generator's mutex guards these.
	pause  time.Duration // 0 while it is up
	until  time.Time     // not before this is it asked again
	failed error         // nil while it is up
}

// lifetime bounds the use of a connection: what was checked when it was opened is seen
// again when it has changed.
const lifetime = 10 * time.Minute

// newServer makes a server without connecting. prop is the property with its address.
func newServer(prop string, cfg *mysql.Config, w words, clock spi.Clock) (*server, error) {
	connector, err := mysqldb.NewConnector(prop, cfg)
	if err != nil {
		return nil, err
	}
	return &server{words: w, name: mysqldb.Name(cfg), connector: connector, clock: clock}, nil
}

func (s *server) up() { s.pause, s.failed = 0, nil }

func (s *server) down(now time.Time, err error) {
	s.pause = min(max(2*s.pause, firstPause), maxPause)
	s.until, s.failed = now.Add(s.pause), err
}

// try calls do, and again when another client came in between or the server
// chose the claim as a deadlock's victim, and, on a new connection, when the connection
// broke or its server has become read-only.
func (s *server) try(ctx context.Context, do func(context.Context) error) error {
	const (
		mostContended = 100
		mostLost      = 5
	)
	for contended, lost := 0, 0; ; {
		err := do(ctx)
		switch {
		case err == nil:
			return nil
		case mysqldb.IsDeadlock(err), errors.Is(err, errRaced), errors.Is(err, errScattered):
			contended++
		case mysqldb.IsBroken(err), mysqldb.IsReadOnly(err):
			s.disconnect()
			lost++
		default:
			contended = mostContended
		}
		pause := rand.N(time.Duration(min(contended+lost, 10)) * time.Millisecond)
		if contended == mostContended || lost == mostLost || s.clock.Sleep(ctx, pause) != nil {
			s.disconnect()
			return s.explain(ctx, err)
		}
	}
}

// fetch claims numbers.
func (s *server) fetch(ctx context.Context, size func(step int64) int64) (run, error) {
	if err := s.connect(ctx); err != nil {
		return run{}, err
	}
	return s.claim.claim(ctx, s.conn, size(s.step()))
}

// connect opens and checks a connection, unless there is one that is not too old.
func (s *server) connect(ctx context.Context) error {
	if s.refused != nil {
		return s.refused
	}
	now := s.clock.Now()
	if s.conn != nil && now.Sub(s.opened) < lifetime {
		return nil
	}
	s.disconnect()
	if s.db == nil {
		s.db = sql.OpenDB(s.connector)
		s.db.SetMaxOpenConns(1)
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	s.conn, s.opened = conn, now
	if err := s.connected(ctx, conn); err != nil {
		s.disconnect()
		return err
	}
	return nil
}

// disconnect ends the connection instead of giving it back to database/sql: the
// next one is checked again.
func (s *server) disconnect() {
	if s.conn == nil {
		return
	}
	_ = s.conn.Raw(func(any) error { return driver.ErrBadConn })
	_ = s.conn.Close()
	s.conn = nil
}

func (s *server) close() error {
	s.disconnect()
	if s.db == nil {
		return nil
	}
	return s.explain(context.Background(), s.db.Close())
}

// storeError is an error of the server. Its kind may be nil.
func (s *server) storeError(kind error, format string, args ...any) *spi.StoreError {
	return &spi.StoreError{Store: s.title + " at " + s.name, Kind: kind, Detail: fmt.Sprintf(format, args...)}
}

// explain adds to the database's error what failed and what to do. Errors that are
// explained already are left as they are.
func (s *server) explain(ctx context.Context, err error) error {
	var known *spi.StoreError
	if err == nil || errors.As(err, &known) {
		return err
	}
	e := s.storeError(nil, "no numbers")
	e.Cause = err
	switch mysqldb.Number(err) {
	case 0: // not the server's
		if ctx.Err() != nil && !errors.Is(err, ctx.Err()) {
			e.Cause = fmt.Errorf("%w: %w", ctx.Err(), err)
		}
	case mysqldb.ErrNoSuchTable:
		e.Advice = "make the table with " + s.ddl
	case mysqldb.ErrNoDatabase:
		e.Advice = "name the database in " + s.address
	case mysqldb.ErrDBAccessDenied, mysqldb.ErrTableDenied:
		e.Advice = "GRANT " + s.grant
	case mysqldb.ErrAccessDenied:
		e.Advice = "check the user and the password"
	case mysqldb.ErrReadOnly, mysqldb.ErrReadOnlyTransaction, mysqldb.ErrReadOnlyMode:
		e.Advice = "the address must be that of a server that can be written to"
	case mysqldb.ErrOutOfRange, mysqldb.ErrOutOfRangeColumn, mysqldb.ErrOutOfRangeMariaDB,
		mysqldb.ErrNoAutoIncrement, mysqldb.ErrDuplicateKey: // MySQL makes the last id again at the column's end
		e.Kind, e.Detail = errExhausted, s.end
	}
	return e
}
