package driver

import (
	"context"
	"database/sql/driver"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/shardkey/shardkey/internal/sqltext"
	"github.com/shardkey/shardkey/rewrite"
)

// lastID is what LAST_INSERT_ID() must return in a session: what it would if
// ruled key columns had AUTO_INCREMENT. Mostly the server says so itself, since a
// filled statement carries LAST_INSERT_ID(key) in its text. Where it does not, it
// is set before the next statement that may read it.
type lastID struct {
	// must is what LAST_INSERT_ID() must return, if it is known.
	must  uint64
	known bool
	// synced: the server says so too. What is not known is always synced.
	synced bool
}

// newLastID is that of a new session, where LAST_INSERT_ID() is 0 (MySQL manual,
// "Information Functions").
func newLastID() lastID { return lastID{known: true, synced: true} }

// lost is called when only the server knows what LAST_INSERT_ID() is now.
func (l *lastID) lost() { *l = lastID{synced: true} }

// set is called when LAST_INSERT_ID() must return id from now on, which the
// server does not know.
func (l *lastID) set(id uint64) { *l = lastID{must: id, known: true} }

// told is called when the server says that LAST_INSERT_ID() is id, and this is
// right.
func (l *lastID) told(id uint64) { *l = lastID{must: id, known: true, synced: true} }

// moved is called when a statement has, or may have, changed what the server
// says, and what must be is still the same.
func (l *lastID) moved() { l.synced = !l.known }

// carried is called after a statement that told the server something, which now
// says that LAST_INSERT_ID() is said. Must be is first, the first generated key
// that was inserted, or, where none was, what must be before.
func (l *lastID) carried(said, first uint64, inserted bool) {
	if inserted {
		l.must = first
	}
	l.synced = l.must == said
}

// knowLastID asks the server what LAST_INSERT_ID() is, unless that is known: the
// next statement changes it, and may have to restore it.
func (s *session) knowLastID(ctx context.Context) error {
	if s.lastID.known {
		return nil
	}
	id, err := s.askLastID(ctx)
	if err == nil {
		s.lastID.told(id)
	}
	return err
}

func (s *session) askLastID(ctx context.Context) (uint64, error) {
	row, err := s.askRow(ctx, "SELECT LAST_INSERT_ID() LIMIT 1")
	if err != nil || len(row) != 1 {
		return 0, err
	}
	id, _ := strconv.ParseUint(text(row[0]), 10, 64) // only a mock returns no number
	return id, nil
}

// syncLastID makes the server's LAST_INSERT_ID() what it must be.
func (s *session) syncLastID(ctx context.Context) error {
	if s.lastID.synced {
		return nil
	}
	_, err := s.queryRow(ctx, "SELECT LAST_INSERT_ID("+strconv.FormatUint(s.lastID.must, 10)+")")
	s.lastID.synced = err == nil
	return err
}

// keepLastIDOfAll remembers what LAST_INSERT_ID() must return after a string of several
// statements: what the last of them left that changed it. ids are the insert ids of the
// statements, nil where they are not known.
func (e *execution) keepLastIDOfAll(ctx context.Context, ids []int64) {
	l := &e.session.lastID
	before, i := l.must, e.inserts()-1
	l.lost()
	for at := e.plan.Statements - 1; i >= 0; at-- {
		k := e.insert(i)
		if k.in.Statement == at {
			i--
		}
		if k.in.Statement < at || k.column.isBeside() {
			if e.serverChangedLastID(ctx, before, ids, at) {
				return
			}
			continue
		}
		if first, ok := k.firstInserted(); ok && k.table.kind() != rewrite.KindText {
			l.set(uint64(first))
			l.synced = k.carries
			return
		}
		if k.in.MentionsLastID { // it may have called LAST_INSERT_ID(expr)
			return
		}
	}
}

// serverChangedLastID reports whether a statement without a key of ours changed what the
// server returns, which was before. An insert id may also be a key that the statement
// gave, which changes nothing.
func (e *execution) serverChangedLastID(ctx context.Context, before uint64, ids []int64, at int) bool {
	if ids != nil && ids[at] == 0 {
		return false
	}
	now, err := e.session.askLastID(ctx)
	return err != nil || now != before && !e.carried(now) && (ids == nil || now == uint64(ids[at]))
}

// carried reports whether the server was told a key by one of the inserts.
func (e *execution) carried(id uint64) bool {
	for i := range e.inserts() {
		if k := e.insert(i); k.carries && uint64(k.carriedKey()) == id {
			return true
		}
	}
	return false
}

// keepLastIDAfterFailure is keepLastIDOfAll for a string of which a statement failed.
// Which one it was shows by the keys that are in the tables.
func (e *execution) keepLastIDAfterFailure(ctx context.Context) {
	l := &e.session.lastID
	before := *l
	l.lost()
	now, err := e.session.askLastID(ctx)
	if err != nil {
		return
	}
	carried := e.carried(now)
	changed, next := !carried && now != before.must, e.plan.Statements-1
	for i := e.inserts() - 1; i >= 0; i-- {
		k := e.insert(i)
		if changed && (e.plan.InsertsElsewhere(k.in.Statement, next) || k.column.isBeside()) {
			return // another table's AUTO_INCREMENT column, as far as that can be known
		}
		next = k.in.Statement
		if k.in.Refused || k.column.isBeside() || k.keys.Len() == 0 || k.table.kind() == rewrite.KindText {
			continue
		}
		e.verify(ctx, k, returned)
		if first, ok := k.firstInserted(); ok {
			l.set(uint64(first))
			l.synced = now == uint64(first)
			return
		}
	}
	if carried {
		*l = before
		l.moved()
	}
}

// lastIDUse is what a statement that passes through may do with
// LAST_INSERT_ID().
type lastIDUse struct {
	reads   bool
	changes bool // to what only the server knows
	// generates: it is an INSERT of plain values, whose result says whether an
	// AUTO_INCREMENT column generated one.
	generates bool
	// transaction is the text, where it may change or use what is set for the next
	// transaction.
	transaction string
}

// useOfLastID returns what a text that passes through may do, as far as that
// matters now. p is the plan of one that inserts, and rows says that it is sent
// for rows.
func (s *session) useOfLastID(query string, class rewrite.Class, p *plan, rows bool) (u lastIDUse) {
	if !s.lastID.known {
		return u // the server is right, and stays so
	}
	all := lastIDUse{reads: true, changes: true}
	switch {
	case class.MustParse() && (p == nil || rows || !p.given().plain):
		return all
	case class.MustParse():
		u.generates = true
	case rewrite.SetsLastInsertID(query, class):
		return all
	}
	u.reads = !s.lastID.synced && rewrite.MentionsLastInsertID(query)
	return u
}

// beforePass is called before every statement that passes through: it makes
// LAST_INSERT_ID() right for a statement that may read it, and forgets what the
// statement may change.
func (s *session) beforePass(ctx context.Context, query string, class rewrite.Class, p *plan, rows bool) (lastIDUse, error) {
	if class != rewrite.ClassPass {
		s.forget(query, class)
	}
	u := s.useOfLastID(query, class, p, rows)
	if s.transaction != nil || rewrite.MayChangeTransaction(query, class) {
		u.transaction = query
	}
	if u.reads {
		return u, s.syncLastID(ctx)
	}
	return u, nil
}

// afterPass is called after a statement that passed through, with its result, if
// that is what it was sent for. Mostly there is nothing to do.
func (s *session) afterPass(ctx context.Context, u lastIDUse, p *plan, args []driver.NamedValue, res driver.Result, err error) {
	if u.transaction != "" && err != driver.ErrSkip {
		s.followTransaction(u.transaction, err)
	}
	if u.changes || u.generates {
		s.passed(ctx, u, p, args, res, err)
	}
}

func (s *session) passed(ctx context.Context, u lastIDUse, p *plan, args []driver.NamedValue, res driver.Result, err error) {
	switch {
	case err == driver.ErrSkip:
		// It has not been sent yet.
	case u.changes:
		s.lastID.lost()
	case u.generates && err != nil:
		if s.lastID.synced {
			s.lastID.lost()
		}
	case u.generates:
		s.passedInsert(ctx, p.given(), args, res)
	}
}

// passedInsert learns from the result of an INSERT without rule. Its insert id is
// a generated key, which LAST_INSERT_ID() now returns, or one that the statement
// gave, which changes nothing.
func (s *session) passedInsert(ctx context.Context, given *givenNumbers, args []driver.NamedValue, res driver.Result) {
	if res == nil { // a mock's
		s.lastID.lost()
		return
	}
	n, err := res.LastInsertId()
	id := uint64(n)
	switch {
	case err == nil && id == 0:
	case err == nil && !given.mayBe(id, args) && id != s.lastID.must:
		s.lastID.told(id)
	case s.lastID.synced:
		s.lastID.lost()
	default:
		// Whether the server's value is still the same has to be asked.
		if now, asked := s.askLastID(ctx); asked == nil && now == id {
			s.lastID.told(id)
		}
	}
}

// givenNumbers are the numbers that an INSERT's text has as values, and
// whether it is plain: values, NULL, DEFAULT and functions without arguments are
// all that it has.
type givenNumbers struct {
	once    sync.Once
	numbers []float64
	plain   bool
}

func (p *plan) given() *givenNumbers {
	g := &p.givenNumbers
	g.once.Do(func() { g.numbers, g.plain = p.GivenNumbers() })
	return g
}

// mayBe reports whether an insert id may be a value that the statement gave.
func (g *givenNumbers) mayBe(id uint64, args []driver.NamedValue) bool {
	for _, f := range g.numbers {
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
