// Package session queries and caches facts about a connection's session and tables. It doesn't
// depend on rules, plans or generated keys.
package session

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/driver/internal/facts"
	"github.com/shardkey/shardkey/driver/internal/outcome"
	"github.com/shardkey/shardkey/internal/sqlerr"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
)

// Session is the server's session of one connection. It queries a fact when it is first needed, and
// forgets it when a statement may have changed it. Most connections never query one.
//
// Facts stay valid as long as the connection, since the underlying driver's ResetSession doesn't
// reset the server's session (go-sql-driver/mysql issue 1273). For example, sql_mode keeps the last
// user's value. One goroutine at a time uses a Session.
type Session struct {
	// Base is the connection.
	Base *base.Conn

	lastID outcome.LastID

	cache   *Cache
	assumed *Assumed     // nil: there is a server
	tables  *facts.Store // shared by the cache, until the session may have temporary tables
	used    usedTables
	own     *facts.Store // names that aren't in ASCII, in the session's character set

	origin *Origin // of statements that are prepared now

	// mode and charset are @@sql_mode and @@character_set_client, which one query returns.
	mode      sqltoken.Mode
	charset   sqltoken.Charset
	modeKnown bool

	database      string
	databaseKnown bool

	several *bool // see Several; nil: not asked yet

	// transaction are statements such as SET TRANSACTION READ ONLY that apply only to the next
	// transaction (MySQL manual, "SET TRANSACTION Statement").
	transaction []string
}

// Cache has the facts that the sessions of a connector share: the server and the tables' columns.
// Set its fields before its first use. It is safe for concurrent use.
type Cache struct {
	Kind   string // the value of Config.Server
	Client Client
	Logger *slog.Logger // of the sessions' own queries; nil for none

	server atomic.Pointer[Server]    // nil: unknown
	silent atomic.Pointer[time.Time] // see Silence
	tables facts.Store
	// database is the current database of the sessions, as far as they have asked; see Database.
	database atomic.Pointer[string]
}

// New returns the session of a new connection.
func New(conn *base.Conn, cache *Cache) Session {
	return Session{Base: conn, cache: cache, tables: &cache.tables, own: cache.tables.Own(), origin: new(Origin)}
}

// Begin sets the database of a new connection, if it is known from the DSN.
func (s *Session) Begin(database string) {
	if database != "" {
		s.database, s.databaseKnown = database, true
	}
}

// Database returns the current database of all sessions that have asked for it, empty if they
// differ.
func (c *Cache) Database() string {
	if known := c.database.Load(); known != nil {
		return *known
	}
	return ""
}

// noteDatabase records the current database of a session.
func (c *Cache) noteDatabase(database string) {
	if !c.database.CompareAndSwap(nil, &database) && c.Database() != database {
		c.database.Store(new(string))
	}
}

// Client returns the facts about the connections from the underlying driver's DSN.
func (s *Session) Client() *Client { return &s.cache.Client }

// forget forgets the facts that a statement may change. It reports whether the statement may alter
// tables that other sessions use.
func (s *Session) forget(ctx context.Context, q *sqltoken.Query) (alters bool) {
	c := changesOf(q, s.mode, s.charset)
	if c == (changes{}) {
		return false
	}
	if c.Reading || c.Database || c.Variables && q.Has(sqltoken.WordCollation) {
		s.leaveOrigin(ctx, *q)
	}
	reading := c
	if reading.Columns = false; reading != (changes{}) {
		s.Base.ClearCache()
	}
	if c.Reading {
		s.modeKnown = false
		s.own.Forget()
	}
	if c.Database {
		s.databaseKnown = false
	}
	return c.Columns && s.forgetTables(*q)
}

// Mode returns the session's sql_mode and character set. It queries them once. If the server
// doesn't support them, it returns zero values.
func (s *Session) Mode(ctx context.Context) (sqltoken.Mode, sqltoken.Charset, error) {
	if s.modeKnown {
		return s.mode, s.charset, nil
	}
	if s.assumed != nil {
		s.mode, s.charset, s.modeKnown = s.assumed.mode(), sqltoken.UTF8, true
		return s.mode, s.charset, nil
	}
	// LIMIT overrides the session's sql_select_limit.
	row, err := s.askRow(ctx, "SELECT @@sql_mode, @@character_set_client LIMIT 1")
	switch {
	case err != nil:
		return 0, 0, err
	case row == nil:
		s.mode, s.charset = 0, sqltoken.UTF8
	case len(row) != 2 || row[1] == nil:
		return 0, 0, fmt.Errorf("%w: the server's values of @@sql_mode and @@character_set_client are not supported: %q",
			rewrite.ErrUnsupportedStatement, row)
	default:
		charset := cmp.Or(Text(row[1]), "unknown")
		s.mode, s.charset = sqltoken.ParseMode(Text(row[0])), sqltoken.ParseCharset(charset)
	}
	s.modeKnown = true
	return s.mode, s.charset, nil
}

// KnownMode is Mode without a query.
func (s *Session) KnownMode() (mode sqltoken.Mode, charset sqltoken.Charset, known bool) {
	if !s.modeKnown {
		return 0, 0, false
	}
	return s.mode, s.charset, true
}

// currentDatabase returns the session's database. It queries the database once. A server that
// doesn't show it has one database.
func (s *Session) currentDatabase(ctx context.Context) (string, error) {
	if !s.databaseKnown {
		row, err := s.QueryRow(ctx, "SELECT DATABASE() LIMIT 1")
		if err != nil && (IsFatal(ctx, err) || s.ReportsInsertIDs()) {
			return "", err
		}
		database := ""
		if len(row) == 1 {
			database = Text(row[0])
		}
		s.knowDatabase(database)
	}
	return s.database, nil
}

func (s *Session) knowDatabase(database string) {
	s.database, s.databaseKnown = database, true
	s.cache.noteDatabase(database)
}

// forgetTables is called before a statement that may alter tables. It reports whether other sessions
// may use them. If the statement may create a temporary table, which only this session sees, the
// session no longer shares facts with others.
func (s *Session) forgetTables(q sqltoken.Query) (alters bool) {
	const altering = sqltoken.WordAlter | sqltoken.WordCreate | sqltoken.WordDrop | sqltoken.WordRename | sqltoken.WordExecute
	temporary := q.Has(sqltoken.WordTemporary)
	alters = q.Has(altering) && !(temporary && q.Class == sqltoken.ClassDDL)
	if alters {
		s.tables.ForgetShared()
	}
	if !temporary && !q.Has(sqltoken.WordExecute|sqltoken.WordCall) {
		return alters
	}
	if !s.HasOwnTables() {
		s.tables, s.used = s.tables.Own(), usedTables{}
	}
	s.tables.Forget()
	s.Base.ClearCache() // a statement that was prepared for a view inserts into its table, whatever hides the view
	return alters
}

// PendingTransaction reports whether a statement such as SET TRANSACTION READ ONLY applies to the
// next transaction, which hasn't begun.
func (s *Session) PendingTransaction() bool { return s.transaction != nil }

// TransactionBegan is called after the next transaction has begun, or was a single statement.
func (s *Session) TransactionBegan() {
	if s.transaction != nil { // usually it isn't, and writing it would cost a cache line
		s.transaction = nil
	}
}

// FollowTransaction is called after a statement of the program, with its error. The statement may
// have set the characteristics of the next transaction, or may have been that transaction.
func (s *Session) FollowTransaction(query string, err error) {
	switch {
	case err == nil:
		s.transaction = nextTransaction(s.transaction, query, s.mode, s.charset)
	case s.transaction != nil && !s.failedEarly(query, err):
		s.transaction = nil
	}
}

// failedEarly reports whether a statement failed before it was a transaction. The servers reset the
// characteristics of the next transaction when they roll back a statement that has opened a table
// (sql/transaction.cc, trans_rollback_stmt), or by an implicit COMMIT (MySQL manual, "Statements
// That Cause an Implicit Commit"). MySQL checks the names of columns before it opens the tables for
// reading. An empty statement is refused before anything runs. A test runs such statements on each server.
func (s *Session) failedEarly(query string, err error) bool {
	lx := sqltoken.NewLexer(query, s.mode, s.charset)
	verb := lx.Next()
	_, readsNoTable, _ := follow(&lx, verb)
	server := s.cache.server.Load()
	switch {
	case verb.Kind == sqltoken.EOF, sqlerr.Is(err, sqlerr.SyntaxError, sqlerr.ReadOnlyTransaction):
		return true
	case sqltoken.Scan(query, true).Class == sqltoken.ClassSeveral:
		return false
	case readsNoTable, lx.Is(verb, "RELEASE", "ROLLBACK", "KILL", "XA"):
		return true
	case lx.Is(verb, "CALL", "EXECUTE", "HANDLER"):
		return sqlerr.Is(err, sqlerr.UnknownTable, sqlerr.NotOpen, sqlerr.UnknownStatement, sqlerr.DoesNotExist)
	case lx.Is(verb, "CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE", "LOCK", "GRANT", "REVOKE"):
		return false // an implicit COMMIT comes first
	case server != nil && server.Kind == ServerMySQL && sqlerr.Is(err, sqlerr.AmbiguousColumn, sqlerr.UnknownColumn):
		return true
	}
	return sqlerr.Is(err, sqlerr.UnknownDatabase, sqlerr.UnknownTable)
}

// SetTransactionAgain is called after a metadata query. If the query read a table, it was a
// transaction and used up the characteristics that were set for the next one.
func (s *Session) SetTransactionAgain(ctx context.Context) error {
	for _, query := range s.transaction {
		// With autocommit off, the query began the transaction with these characteristics, and
		// the server refuses to set them in it (MySQL manual, "SET TRANSACTION Statement").
		_, err := s.do(ctx, base.Request{Text: query})
		if err != nil && !sqlerr.Is(err, sqlerr.InTransaction) {
			return err
		}
	}
	return nil
}
