package ticket

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/go-sql-driver/mysql"
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

	last    int64 // the highest number given
	refused error // why it is never asked again
}

// newServer makes a server without connecting.
func newServer(c Config, dsn string) (*server, error) {
	cfg, err := parseDSN(dsn)
	if err != nil {
		return nil, err
	}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, badDSN(err)
	}
	return &server{
		name:      fmt.Sprintf("%s(%s)/%s", cfg.Net, cfg.Addr, cfg.DBName),
		connector: connector, clock: c.Clock, table: c.quotedTable(), increment: c.Increment,
	}, nil
}

// fetch asks for n numbers. On a connection that has been idle and broke it
// asks once more on a new one: a REPLACE done twice only leaves a gap.
func (s *server) fetch(ctx context.Context, n int64) (block, error) {
	if s.refused != nil {
		return block{}, s.refused
	}
	idle := s.conn != nil
	b, err := s.fetchOnce(ctx, n)
	if err != nil && s.conn == nil && idle && broken(err) {
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
	e := &Error{Server: s.name}
	last := b.first + (b.count-1)*b.stride
	switch {
	case b.first == 0:
		e.Detail = "REPLACE gave no LAST_INSERT_ID; the table must have an AUTO_INCREMENT column"
	case b.first < 0 || last < b.first || last >= s.end:
		e.Kind, e.Detail = ErrExhausted, fmt.Sprintf("the AUTO_INCREMENT column of %s is at its end, %d; make it bigint unsigned, or use another table", s.table, s.end)
	case (b.first-s.offset)%s.increment != 0:
		e.Kind, e.Detail = ErrSettings, fmt.Sprintf("it gave %d, which auto_increment_increment %d and auto_increment_offset %d do not give", b.first, s.increment, s.offset)
	case b.first <= s.last:
		e.Kind, e.Detail = ErrRepeated, fmt.Sprintf("it gave %d after %d; set AUTO_INCREMENT of %s above all keys in use and start again", b.first, s.last, s.table)
		// Asked on, it would count up through numbers that others were given.
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

func deadlock(err error) bool {
	var server *mysql.MySQLError
	return errors.As(err, &server) && (server.Number == 1213 || server.Number == 1205)
}

// broken says that the connection was lost, rather than that the server
// answered with an error.
func broken(err error) bool {
	for _, e := range []error{driver.ErrBadConn, mysql.ErrInvalidConn, io.EOF, io.ErrUnexpectedEOF, sql.ErrConnDone} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
