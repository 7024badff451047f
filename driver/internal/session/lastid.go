package session

import (
	"context"
	"database/sql/driver"
	"math"
	"strconv"
	"time"

	"github.com/shardkey/shardkey/internal/rewrite"
	"github.com/shardkey/shardkey/internal/sqltext"
)

// LastID is what LAST_INSERT_ID() must return in a session: the value that it would have if
// sharded key columns had AUTO_INCREMENT. Mostly the server has it too, since a statement
// with generated keys carries LAST_INSERT_ID(key). Where the server has another one, it is
// set before the next statement that may read it.
type LastID struct {
	// must is what LAST_INSERT_ID() must return, if it is known.
	must  uint64
	known bool
	// synced: the server returns it too. A value that is not known is always synced.
	synced bool
}

// newLastID is that of a new session, where LAST_INSERT_ID() is 0 (MySQL manual,
// "Information Functions").
func newLastID() LastID { return LastID{known: true, synced: true} }

// Value is what LAST_INSERT_ID() must return, 0 if only the server knows it.
func (l *LastID) Value() uint64 { return l.must }

// Known reports whether the value is known; otherwise the server has the right one.
func (l *LastID) Known() bool { return l.known }

// Lost is called when only the server knows what LAST_INSERT_ID() is now.
func (l *LastID) Lost() { *l = LastID{synced: true} }

// Set is called when LAST_INSERT_ID() must return id from now on, which the server does not know.
func (l *LastID) Set(id uint64) { *l = LastID{must: id, known: true} }

// Told is called when the server returns id for LAST_INSERT_ID(), and this is right.
func (l *LastID) Told(id uint64) { *l = LastID{must: id, known: true, synced: true} }

// Moved is called when a statement has, or may have, changed what the server returns, and
// what LAST_INSERT_ID() must return is still the same.
func (l *LastID) Moved() { l.synced = !l.known }

// Carried is called after a statement that set the server's LAST_INSERT_ID() to now. It must be
// first, the first generated key that was inserted, or, if none was, remain what it was before.
func (l *LastID) Carried(now, first uint64, inserted bool) {
	if inserted {
		l.must = first
	}
	l.synced = l.must == now
}

// KnowLastID asks the server what LAST_INSERT_ID() is, unless that is known: the next
// statement changes it, and may have to restore it.
func (s *Session) KnowLastID(ctx context.Context) error {
	if s.LastID.known {
		return nil
	}
	id, err := s.AskLastID(ctx)
	if err == nil {
		s.LastID.Told(id)
	}
	return err
}

// AskLastID asks the server what LAST_INSERT_ID() is.
func (s *Session) AskLastID(ctx context.Context) (uint64, error) {
	row, err := s.askRow(ctx, "SELECT LAST_INSERT_ID() LIMIT 1")
	if err != nil || len(row) != 1 {
		return 0, err
	}
	id, _ := strconv.ParseUint(Text(row[0]), 10, 64) // only a mock returns no number
	return id, nil
}

// SyncLastID makes the server's LAST_INSERT_ID() what it must be.
func (s *Session) SyncLastID(ctx context.Context) error {
	if s.LastID.synced {
		return nil
	}
	_, err := s.QueryRow(ctx, "SELECT LAST_INSERT_ID("+strconv.FormatUint(s.LastID.must, 10)+")")
	s.LastID.synced = err == nil
	return err
}

// Use is what a statement that passes through may do with the session.
type Use struct {
	reads   bool // LAST_INSERT_ID()
	changes bool // LAST_INSERT_ID(), to what only the server knows
	// inserted is set for an INSERT of plain values, whose result shows whether an
	// AUTO_INCREMENT column generated one.
	inserted *Given
	// transaction is the statement, if it may change or use what is set for the next transaction.
	transaction string
}

// useOf returns what a statement that passes through may do, as far as that matters now.
func (s *Session) useOf(query string, class rewrite.Class, given *Given, rows bool) (u Use) {
	if !s.LastID.known {
		return u // the server is right, and stays so
	}
	all := Use{reads: true, changes: true}
	switch {
	case class.MustParse() && (given == nil || rows || !given.Plain):
		return all
	case class.MustParse():
		u.inserted = given
	case rewrite.SetsLastInsertID(query, class):
		return all
	}
	u.reads = !s.LastID.synced && rewrite.MentionsLastInsertID(query)
	return u
}

// BeforePass is called before every statement that passes through: it makes
// LAST_INSERT_ID() right for a statement that may read it, and forgets what the statement
// may change. given are the values of a statement that inserts, nil if they are not known;
// rows reports whether the statement is sent for rows.
func (s *Session) BeforePass(
	ctx context.Context, query string, class rewrite.Class, given *Given, rows bool,
) (Use, error) {
	if class != rewrite.ClassPass {
		s.forget(query, class)
	}
	u := s.useOf(query, class, given, rows)
	if s.transaction != nil || rewrite.MayChangeTransaction(query, class) {
		u.transaction = query
	}
	if u.reads {
		return u, s.SyncLastID(ctx)
	}
	return u, nil
}

// AfterPass is called after a statement that passed through, with its result, if that is
// what it was sent for. Mostly there is nothing to do.
func (s *Session) AfterPass(ctx context.Context, u Use, args []driver.NamedValue, res driver.Result, err error) {
	if u.transaction != "" && err != driver.ErrSkip {
		s.FollowTransaction(u.transaction, err)
	}
	if u.changes || u.inserted != nil {
		s.passed(ctx, u, args, res, err)
	}
}

func (s *Session) passed(ctx context.Context, u Use, args []driver.NamedValue, res driver.Result, err error) {
	switch {
	case err == driver.ErrSkip:
		// It has not been sent yet.
	case u.changes:
		s.LastID.Lost()
	case err != nil:
		if s.LastID.synced {
			s.LastID.Lost()
		}
	default:
		s.passedInsert(ctx, u.inserted, args, res)
	}
}

// passedInsert learns from the result of an INSERT into a table that is not sharded. Its
// insert id is a generated key, which LAST_INSERT_ID() now returns, or one that the
// statement gave, which changes nothing.
func (s *Session) passedInsert(ctx context.Context, given *Given, args []driver.NamedValue, res driver.Result) {
	if res == nil { // a mock's
		s.LastID.Lost()
		return
	}
	n, err := res.LastInsertId()
	id := uint64(n)
	switch {
	case err == nil && id == 0:
	case err == nil && !given.mayBe(id, args) && id != s.LastID.must:
		s.LastID.Told(id)
	case s.LastID.synced:
		s.LastID.Lost()
	default:
		// Whether the server's value is still the same has to be asked.
		if now, asked := s.AskLastID(ctx); asked == nil && now == id {
			s.LastID.Told(id)
		}
	}
}

// Given is what an INSERT gives its rows. Plain reports whether this is nothing but values,
// NULL, DEFAULT and functions without arguments, and Numbers are the numbers among them.
type Given struct {
	Numbers []float64
	Plain   bool
}

// mayBe reports whether an insert id may be a value that the statement gave.
func (g *Given) mayBe(id uint64, args []driver.NamedValue) bool {
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
		return near(sqltext.LeadingNumber(v), id)
	case []byte:
		return near(sqltext.LeadingNumber(string(v)), id)
	}
	return true
}

// near reports whether a number may become the key in an integer column.
func near(f float64, id uint64) bool {
	return math.Abs(f-float64(id)) <= 1+float64(id)*1e-15
}
