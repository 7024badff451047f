// Package session asks the server of one connection about its session and its tables, and
// keeps the answers. It knows nothing of rules, plans or generated keys.
package session

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/internal/rewrite"
)

// Session is the server's session of one connection. A fact is asked for when it is needed first,
// and forgotten when a statement may have changed it; most connections never ask. What is known
// holds as long as the connection: the underlying driver's ResetSession doesn't reset the server's
// session, whose sql_mode, for example, is what the last user set. One goroutine at a time uses it.
type Session struct {
	// Base is the connection.
	Base *base.Conn
	// LastID is what LAST_INSERT_ID() must return.
	LastID LastID
	// ForInsert is the INSERT before which questions are asked now, otherwise empty.
	ForInsert string

	cache  *Cache
	tables *tables // the cache's, until the session may have temporary tables

	// mode and charset are @@sql_mode and @@character_set_client, asked for in one question.
	mode      rewrite.Mode
	charset   rewrite.Charset
	modeKnown bool

	database      string
	databaseKnown bool

	transport *Transport // nil: to be asked for

	// transaction are the statements, such as SET TRANSACTION READ ONLY, that set
	// characteristics of the next transaction alone.
	transaction []string
}

// Cache is what the sessions of one connector share: the server and the tables' columns.
// Its fields are set before its use. Many goroutines use it.
type Cache struct {
	Kind   string // the value of Config.Server
	Client Client

	assumed bool // see Assume

	server atomic.Pointer[Server] // nil: not known yet
	tables tables
}

// New returns the session of a new connection.
func New(conn *base.Conn, cache *Cache) Session {
	return Session{Base: conn, LastID: newLastID(), cache: cache, tables: &cache.tables}
}

// Assume returns a copy for sessions without a server: their connections answer questions with
// assumptions. Nothing that these sessions learn is kept in c.
func (c *Cache) Assume() *Cache {
	to := &Cache{Kind: c.Kind, Client: c.Client, assumed: true}
	to.server.Store(c.server.Load())
	c.tables.copyTo(&to.tables)
	return to
}

// Database returns the current database of all sessions that have read columns, empty if they
// differ.
func (c *Cache) Database() string { return c.tables.database() }

// IsAssumed reports whether the session has no server; see [Cache.Assume].
func (s *Session) IsAssumed() bool { return s.cache.assumed }

// Client is what the underlying driver's DSN shows about the connections.
func (s *Session) Client() *Client { return &s.cache.Client }

// Settled reports whether there is nothing to do before and after a statement that neither
// reads nor changes anything of the session.
func (s *Session) Settled() bool { return s.LastID.synced && s.transaction == nil }

// forget forgets what a statement may change.
func (s *Session) forget(query string, class rewrite.Class) {
	changes := rewrite.ChangesOf(query, class)
	reading := changes
	if reading.Columns = false; reading != (rewrite.Changes{}) {
		s.Base.ClearCache()
		s.transport = nil
	}
	if changes.Mode || changes.Charset {
		s.modeKnown = false
	}
	if changes.Database {
		s.databaseKnown = false
	}
	if changes.Columns {
		s.forgetTables(query)
	}
}

// Mode asks the server how it reads the session's statements: sql_mode and character set,
// once. A server that doesn't know them has none that matters.
func (s *Session) Mode(ctx context.Context) (rewrite.Mode, rewrite.Charset, error) {
	if s.modeKnown {
		return s.mode, s.charset, nil
	}
	// The limit stands above the session's own sql_select_limit.
	row, err := s.askRow(ctx, "SELECT @@sql_mode, @@character_set_client LIMIT 1")
	switch {
	case err != nil:
		return 0, 0, err
	case row == nil:
		s.mode, s.charset = 0, rewrite.CharsetUTF8
	case len(row) != 2 || row[1] == nil:
		return 0, 0, fmt.Errorf("%w: the server's answer for @@sql_mode and @@character_set_client is not understood: %q",
			rewrite.ErrUnsupportedStatement, row)
	default:
		s.mode, s.charset = rewrite.ParseMode(Text(row[0])), rewrite.ParseCharset(Text(row[1]))
	}
	s.modeKnown = true
	return s.mode, s.charset, nil
}

// KnownMode is Mode as far as it is known.
func (s *Session) KnownMode() (mode rewrite.Mode, charset rewrite.Charset, known bool) {
	if !s.modeKnown {
		return 0, 0, false
	}
	return s.mode, s.charset, true
}

// currentDatabase asks the server for the session's database, once.
func (s *Session) currentDatabase(ctx context.Context) (string, error) {
	if !s.databaseKnown {
		row, err := s.askRow(ctx, "SELECT DATABASE() LIMIT 1")
		if err != nil {
			return "", err
		}
		s.database, s.databaseKnown = "", true
		if len(row) == 1 {
			s.database = Text(row[0])
		}
	}
	return s.database, nil
}

// forgetTables is called before a statement that may alter tables. A statement that may
// make a temporary table, which hides another one from this session alone, also ends the
// sharing of columns with other sessions.
func (s *Session) forgetTables(query string) {
	query = strings.ToUpper(query)
	mentions := func(words ...string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(query, word) })
	}
	hidden := mentions("TEMPORARY", "EXECUTE", "CALL")
	if !hidden && !mentions("ALTER", "CREATE", "DROP", "RENAME", "TRUNCATE") {
		return
	}
	s.tables.clear()
	if hidden {
		s.tables = new(tables)
	}
}

// PendingTransaction reports whether a statement such as SET TRANSACTION READ ONLY has set
// characteristics of the next transaction, which hasn't begun.
func (s *Session) PendingTransaction() bool { return s.transaction != nil }

// TransactionBegan is called when the next transaction has begun, or has been one statement.
func (s *Session) TransactionBegan() { s.transaction = nil }

// FollowTransaction is called after a statement of the user's, with its error: it may have
// set the characteristics of the next transaction, or been that transaction.
func (s *Session) FollowTransaction(query string, err error) {
	const syntaxError, unknownTable, readOnly = 1064, 1146, 1792 // nothing was read or written
	switch {
	case err == nil:
		s.transaction = rewrite.NextTransaction(s.transaction, query, s.mode, s.charset)
	case !base.IsServerError(err, readOnly, syntaxError, unknownTable):
		s.transaction = nil
	}
}

// setTransactionAgain is called after a question, which was the next transaction if it read
// a table, and took the characteristics that were set for it.
func (s *Session) setTransactionAgain(ctx context.Context) error {
	const inTransaction = 1568
	for _, query := range s.transaction {
		// With autocommit off the question began the transaction that they are for.
		_, err := s.Base.Send(ctx, query, nil, 0, base.WantResult)
		if err != nil && !base.IsServerError(err, inTransaction) {
			return err
		}
	}
	return nil
}
