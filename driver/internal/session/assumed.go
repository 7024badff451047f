package session

import (
	"fmt"
	"slices"

	"github.com/shardkey/shardkey/driver/internal/facts"
	"github.com/shardkey/shardkey/internal/sqltoken"
)

// Assumed are the answers in a session without a server. They are those of a new MySQL server.
type Assumed struct {
	Mode    string   // sql_mode
	Columns []string // of the statement's table; nil if unknown
	// Err is the answer to other questions. The session treats it like an unsupported query.
	Err error
	// Notes are the assumptions that were used.
	Notes []string
}

// Assume returns a session without a server, which answers as assumed. It uses a copy of the facts that
// other sessions have learned, and doesn't change c. database is its current database, unless it is
// empty and the other sessions have one.
func (c *Cache) Assume(as *Assumed, database string) *Session {
	to := &Cache{Kind: c.Kind, Client: c.Client}
	to.server.Store(c.server.Load())
	c.tables.CopyTo(&to.tables)
	if database == "" {
		database = c.Database()
	}
	s := New(nil, to)
	s.assumed, s.database, s.databaseKnown = as, database, true
	return &s
}

// IsAssumed reports whether the session has no server.
func (s *Session) IsAssumed() bool { return s.assumed != nil }

// Assumes implements facts.Server.
func (s *Session) Assumes(of facts.Name) bool {
	if s.assumed == nil {
		return false
	}
	s.assumed.note("the columns of " + sqltoken.QuoteTable(of.Database, of.Table) + " store values as they are written")
	return true
}

func (a *Assumed) mode() sqltoken.Mode {
	a.note(fmt.Sprintf("sql_mode is %q, and the character set is utf8mb4", a.Mode))
	return sqltoken.ParseMode(a.Mode)
}

func (a *Assumed) server() string {
	a.note("the server is MySQL")
	return ServerMySQL
}

func (a *Assumed) note(fact string) {
	if !slices.Contains(a.Notes, fact) {
		a.Notes = append(a.Notes, fact)
	}
}
