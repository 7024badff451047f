// Package facts learns and remembers what is known of tables. It is the only memory about tables.
//
// A fact is keyed by the table's database and name. It ends after [MaxAge], and when a statement of
// the connector may have altered a table. The connections of a connector share a [Store]. A session
// that may have temporary tables has its own. An execution keeps the facts that it began with until
// its result is known, so what others do can't change its conclusions.
package facts

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// MaxAge is how long facts are used, since another process may alter the table. One query per
	// table in this time costs little compared with the INSERTs.
	MaxAge = 10 * time.Second
	// dueAge is the age from which one execution asks again while the others use the facts.
	dueAge = 8 * time.Second
	// maxTables limits a store. Beyond it the store is emptied.
	maxTables = 10000
)

// Name is the database and the name of a table.
type Name struct{ Database, Table string }

// Store has the facts about tables. Its zero value is ready to use. It is safe for concurrent use.
type Store struct {
	shared *Store // nil: this is the store that all sessions share
	// altered counts the statements that may have altered a table of this store.
	altered atomic.Uint64

	mu     sync.Mutex
	tables map[Name]*Entry
}

// Own returns a new store for one session, whose facts also end with those of s.
func (s *Store) Own() *Store { return &Store{shared: s.root()} }

func (s *Store) root() *Store {
	if s.shared != nil {
		return s.shared
	}
	return s
}

// Forget ends all facts of the store.
func (s *Store) Forget() { s.altered.Add(1) }

// ForgetShared ends the facts of all sessions.
func (s *Store) ForgetShared() { s.root().Forget() }

// Entry returns the entry of a table, which many sessions share.
func (s *Store) Entry(n Name) *Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.tables[n]
	if e == nil {
		if s.tables == nil || len(s.tables) >= maxTables {
			s.tables = map[Name]*Entry{}
		}
		e = &Entry{own: &s.altered, shared: &s.root().altered}
		s.tables[n] = e
	}
	return e
}

// CopyTo copies the facts to an empty store, however old they are.
func (s *Store) CopyTo(to *Store) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, e := range s.tables {
		own := to.Entry(name)
		if t := e.table.Load(); t != nil && e.holds(t.Reading) {
			own.Put(t.as(own.Begin()))
		}
		if n := e.names.Load(); n != nil && e.holds(n.Reading) {
			own.PutNames(n.list, own.Begin())
		}
	}
}

// Entry has the facts about one table.
type Entry struct {
	own, shared *atomic.Uint64 // see Store.altered
	table       atomic.Pointer[Table]
	names       atomic.Pointer[names]
}

// names are the columns of an INSERT without a column list.
type names struct {
	*Reading
	list []string
}

// Table returns the known facts, nil if there are none or if the caller should ask again.
func (e *Entry) Table() *Table {
	if t := e.table.Load(); t != nil && e.holds(t.Reading) && t.mayBeUsed() {
		return t
	}
	return nil
}

// Names returns the names of the columns of an INSERT without a column list, nil if they are unknown
// or if the caller should ask again.
func (e *Entry) Names() []string {
	if n := e.names.Load(); n != nil && e.holds(n.Reading) && n.mayBeUsed() {
		return n.list
	}
	return nil
}

// Begin returns a Reading for facts that are queried now.
func (e *Entry) Begin() *Reading {
	r := &Reading{altered: e.altered()}
	time.AfterFunc(dueAge, func() { r.state.Store(due) })
	time.AfterFunc(MaxAge, func() { r.state.Store(old) })
	return r
}

// Put stores the facts, unless a table may have been altered since they were queried.
func (e *Entry) Put(t *Table) {
	if e.holds(t.Reading) {
		e.table.Store(t)
	}
}

// PutNames stores the names of columns.
func (e *Entry) PutNames(list []string, r *Reading) { e.names.Store(&names{r, list}) }

// Forget ends the facts about the table.
func (e *Entry) Forget() {
	e.table.Store(nil)
	e.names.Store(nil)
}

// altered counts the statements that may have altered the table.
func (e *Entry) altered() uint64 { return e.own.Load() + e.shared.Load() }

func (e *Entry) holds(r *Reading) bool { return r.altered == e.altered() }

// Reading is when facts were queried. Timers end it, so executions read no clock.
type Reading struct {
	altered uint64 // the count before the query
	state   atomic.Uint32
}

const (
	fresh uint32 = iota
	due
	asked // again, by another execution
	old
)

// mayBeUsed reports whether facts aren't too old. Of the callers that find them due, it returns false
// to one, which asks again.
func (r *Reading) mayBeUsed() bool {
	state := r.state.Load()
	if state == fresh {
		return true
	}
	return state == asked || state == due && !r.state.CompareAndSwap(due, asked)
}
