package session

import (
	"context"
	"database/sql/driver"
	"math"
	"strconv"
	"time"

	"github.com/shardkey/shardkey/driver/internal/outcome"
	"github.com/shardkey/shardkey/internal/sqlerr"
	"github.com/shardkey/shardkey/internal/sqltoken"
)

// LastID returns the state of LAST_INSERT_ID().
func (s *Session) LastID() outcome.LastID { return s.lastID }

// SetLastID records the state of LAST_INSERT_ID() after a statement.
func (s *Session) SetLastID(l outcome.LastID) { s.lastID = l }

// changeLastID records a change of LAST_INSERT_ID() by a statement without generated keys.
func (s *Session) changeLastID(c outcome.Change) { s.SetLastID(s.lastID.After(c)) }

// KnowLastID queries LAST_INSERT_ID() unless it is known. The next statement changes it, and the
// driver may have to restore it.
func (s *Session) KnowLastID(ctx context.Context) error {
	if s.lastID.Known() {
		return nil
	}
	id, err := s.AskLastID(ctx)
	if err == nil {
		s.changeLastID(outcome.Told(id))
	}
	return err
}

// AskLastID queries LAST_INSERT_ID().
func (s *Session) AskLastID(ctx context.Context) (uint64, error) {
	row, err := s.askRow(ctx, "SELECT LAST_INSERT_ID() LIMIT 1")
	if err != nil || len(row) != 1 {
		return 0, err
	}
	id, _ := strconv.ParseUint(Text(row[0]), 10, 64) // only a mock returns another type
	return id, nil
}

// SyncLastID sets the server's LAST_INSERT_ID() to the value that it must return.
func (s *Session) SyncLastID(ctx context.Context) error {
	if s.lastID.Synced() {
		return nil
	}
	value := s.lastID.Value()
	_, err := s.QueryRow(ctx, "SELECT LAST_INSERT_ID("+strconv.FormatUint(value, 10)+") LIMIT 1") // under sql_select_limit = 0 too
	switch {
	case sqlerr.Is(err, sqlerr.FunctionRefused):
		s.changeLastID(outcome.Lost) // no statement can read it
		return nil
	case err == nil:
		s.changeLastID(outcome.Told(value))
	}
	return err
}

// ClearLastID sets the server's LAST_INSERT_ID() to 0, although it must return the same as before.
func (s *Session) ClearLastID(ctx context.Context) error {
	s.changeLastID(outcome.Moved)
	_, err := s.QueryRow(ctx, "SELECT LAST_INSERT_ID(0) LIMIT 1")
	return err
}

// RefusesLastID asks whether LAST_INSERT_ID() is refused in queries, so that none that contains it is
// executed. MySQL Router does so if connections of clients share those to the server
// (connection_sharing), since the function would return another client's value.
func (s *Session) RefusesLastID(ctx context.Context) bool {
	_, err := s.QueryRow(ctx, "SELECT LAST_INSERT_ID() LIMIT 1")
	return sqlerr.Is(err, sqlerr.FunctionRefused)
}

// Silence makes the connector's plans report no keys to the server for a while. It reports whether
// they did so far.
func (s *Session) Silence(last time.Duration) (before bool) {
	before = s.SilentUntil().IsZero()
	until := time.Now().Add(last)
	s.cache.silent.Store(&until)
	return before
}

// SilentUntil returns until when plans report no keys to the server; zero if they may.
func (s *Session) SilentUntil() time.Time {
	until := s.cache.silent.Load()
	if until == nil || !time.Now().Before(*until) {
		return time.Time{}
	}
	return *until
}

// Use describes how a statement that is passed through may use the session. It has so few fields that it
// stays in registers.
type Use struct {
	// inserted is set for an INSERT of plain values, whose result shows whether an AUTO_INCREMENT
	// column generated one.
	inserted *Given
	// transaction is the statement, if it may set or use the characteristics of the next
	// transaction.
	transaction *sqltoken.Query
	changes     bool // it changes LAST_INSERT_ID() to a value that only the server knows
	alters      bool // it may alter tables
}

// useOf returns how a statement that is passed through may use LAST_INSERT_ID(), as far as it matters now.
func (s *Session) useOf(q *sqltoken.Query, given *Given, rows bool) (reads, changes bool, inserted *Given) {
	switch {
	case !s.lastID.Known(): // the server's value is right and doesn't change
		return false, false, nil
	case q.MustParse() && (given == nil || rows || !given.Plain):
		return true, true, nil
	case q.MustParse():
		inserted = given
	case q.SetsLastInsertID():
		return true, true, nil
	}
	return !s.lastID.Synced() && q.ReadsLastInsertID(), false, inserted
}

// BeforePass prepares the session for a statement that is passed through. It synchronizes
// LAST_INSERT_ID() for a statement that may read it, and forgets facts that the statement may
// change. The values of a statement that inserts are in given, nil if unknown. rows reports whether
// the caller reads rows.
func (s *Session) BeforePass(ctx context.Context, q *sqltoken.Query, given *Given, rows bool) (u Use, err error) {
	u.alters = s.forget(ctx, q)
	var reads bool
	reads, u.changes, u.inserted = s.useOf(q, given, rows)
	if s.transaction != nil || mayChangeTransaction(q) {
		u.transaction = q
	}
	if reads {
		err = s.SyncLastID(ctx)
	}
	return u, err
}

// AfterPass updates the session after a statement that was passed through. res is its result, nil
// if the caller reads rows.
func (s *Session) AfterPass(ctx context.Context, u Use, args []driver.NamedValue, res driver.Result, err error) {
	if u.alters {
		s.tables.ForgetShared() // a session may have asked before the statement altered the table
	}
	if u.transaction != nil && err != driver.ErrSkip {
		s.FollowTransaction(u.transaction.Text, err)
	}
	switch {
	case !u.changes && u.inserted == nil, err == driver.ErrSkip: // with ErrSkip, it was not sent yet
	case u.changes:
		s.changeLastID(outcome.Lost)
	case err != nil:
		// The value is undefined after an error (MySQL manual, "Information Functions").
		if s.lastID.Synced() {
			s.changeLastID(outcome.Lost)
		}
	default:
		s.passedInsert(ctx, u.inserted, args, res)
	}
}

// passedInsert updates LAST_INSERT_ID() from the result of an INSERT into another table. Its insert
// ID is either a generated value, which LAST_INSERT_ID() now returns, or an explicit value, which
// changes nothing (MySQL C API, mysql_insert_id).
func (s *Session) passedInsert(ctx context.Context, given *Given, args []driver.NamedValue, res driver.Result) {
	if res == nil { // a mock may return nil
		s.changeLastID(outcome.Lost)
		return
	}
	n, err := res.LastInsertId()
	id := uint64(n)
	switch {
	case err == nil && id == 0:
	case err == nil && !given.mayBe(id, args) && id != s.lastID.Value():
		s.changeLastID(outcome.Told(id))
	case s.lastID.Synced():
		s.changeLastID(outcome.Lost)
	default:
		// Only a query shows whether the server's value is the same.
		if now, asked := s.AskLastID(ctx); asked == nil && now == id {
			s.changeLastID(outcome.Told(id))
		}
	}
}

// Given describes the values of an INSERT. Plain reports whether they are only literals, arguments,
// NULL, DEFAULT and functions without arguments. Numbers are the numbers among them, NaN for one that only the
// server knows.
type Given struct {
	Numbers []float64
	Plain   bool
}

// mayBe reports whether an insert ID may be an explicit value of the statement. A value out of the range of
// its column may be stored as the limit of the column's type.
func (g *Given) mayBe(id uint64, args []driver.NamedValue) bool {
	if isLimit(id) {
		return true
	}
	for _, f := range g.Numbers {
		if near(f, id) {
			return true
		}
	}
	for i := range args {
		if boundMayBe(args[i].Value, id) {
			return true
		}
	}
	return false
}

func boundMayBe(bound driver.Value, id uint64) bool {
	switch v := bound.(type) {
	case nil, time.Time:
		return false
	case int64:
		return uint64(v) == id
	case uint64:
		return v == id
	case bool:
		return id == 1
	case float64:
		return near(v, id)
	case string:
		return near(sqltoken.LeadingNumber(v), id)
	case []byte:
		return near(sqltoken.LeadingNumber(string(v)), id)
	}
	return true
}

// near reports whether a number may become the key in an integer column.
func near(f float64, id uint64) bool {
	key := float64(id)
	if f < 0 {
		key = float64(int64(id))
	}
	return math.IsNaN(f) || math.Abs(f-key) <= 1+math.Abs(key)*1e-15
}

// isLimit reports whether an insert ID is the largest or the smallest number of an integer type.
func isLimit(id uint64) bool {
	for _, bits := range []int{8, 16, 24, 32, 64} {
		largest := uint64(1)<<(bits-1) - 1
		if id == largest || id == largest<<1|1 || id == ^largest {
			return true
		}
	}
	return false
}
