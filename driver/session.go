package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/rewrite"
)

// session is what is known about the server's session of a connection. Each
// fact is asked for when it is needed first, and forgotten when a statement may
// have changed it. Most connections never ask. What is known holds as long as
// the connection: the base's ResetSession does not reset the server's session,
// whose sql_mode, for one, is what the last user left.
type session struct {
	mode      rewrite.Mode
	modeKnown bool

	database      string
	databaseKnown bool

	// owed is what LAST_INSERT_ID() must return in this session, as an SQL
	// expression, where that is not what the server would say; empty when the
	// server is right. It is paid before a statement that may read it.
	owed string
	// saved: rewrite.SavedID holds a value, and must be NULL again when the
	// debt is paid.
	saved bool
	// prepared: rewrite.SavedID was set in this session.
	prepared bool
}

// owe remembers what LAST_INSERT_ID() must return from now on.
func (s *session) owe(id int64) { s.owed = strconv.FormatInt(id, 10) }

// told is owe for an id that the server knows already. While a saved value is
// about, the debt stands, so that paying it clears that.
func (s *session) told(id int64) {
	s.owed = ""
	if s.saved {
		s.owe(id)
	}
}

// metExisting is called after a guarded statement met an existing row.
func (s *session) metExisting() {
	s.saved = true
	if s.owed == "" {
		s.owed = rewrite.SavedID
	}
}

// passed is called before every statement that passes through: it pays what is
// owed to a statement that may read LAST_INSERT_ID(), and forgets what the
// statement may change.
func (c *conn) passed(ctx context.Context, query string, class rewrite.Class) error {
	if class == rewrite.ClassPass && c.session.owed == "" {
		return nil
	}
	if class != rewrite.ClassPass {
		c.session.forget(query, class)
	}
	if class == rewrite.ClassPass || class == rewrite.ClassSet || class == rewrite.ClassUse {
		if !rewrite.MentionsLastInsertID(query) {
			return nil
		}
	}
	return c.payOwed(ctx)
}

func (s *session) forget(query string, class rewrite.Class) {
	if class == rewrite.ClassCall || rewrite.MentionsSQLMode(query) {
		s.modeKnown = false
	}
	if class == rewrite.ClassUse || class == rewrite.ClassSeveral || class == rewrite.ClassMayInsert {
		s.databaseKnown = false
	}
}

// prepareSaved makes the user variable that guarded statements use.
func (c *conn) prepareSaved(ctx context.Context) error {
	if c.session.prepared {
		return nil
	}
	_, err := c.base.execOrPrepare(ctx, "SET "+rewrite.SavedID+" = NULL", nil, 0)
	c.session.prepared = err == nil
	return err
}

// payOwed makes the server's LAST_INSERT_ID() what it must be.
func (c *conn) payOwed(ctx context.Context) error {
	if c.session.owed == "" {
		return nil
	}
	query := "SELECT LAST_INSERT_ID(" + c.session.owed + ")"
	if c.session.saved {
		query += ", " + rewrite.SavedID + " := NULL"
	}
	if _, err := c.queryRow(ctx, query); err != nil {
		return err
	}
	c.session.owed, c.session.saved = "", false
	return nil
}

// sqlMode asks the server for the session's sql_mode, once. A server that does
// not know it has none that matters.
func (c *conn) sqlMode(ctx context.Context) (rewrite.Mode, error) {
	if !c.session.modeKnown {
		row, err := c.askRow(ctx, "SELECT @@sql_mode")
		if err != nil {
			return 0, err
		}
		c.session.mode, c.session.modeKnown = 0, true
		if len(row) == 1 {
			c.session.mode = rewrite.ParseMode(text(row[0]))
		}
	}
	return c.session.mode, nil
}

// currentDatabase asks the server for the session's database, once.
func (c *conn) currentDatabase(ctx context.Context) (string, error) {
	if !c.session.databaseKnown {
		row, err := c.askRow(ctx, "SELECT DATABASE()")
		if err != nil {
			return "", err
		}
		c.session.database, c.session.databaseKnown = "", true
		if len(row) == 1 {
			c.session.database = text(row[0])
		}
	}
	return c.session.database, nil
}

// queryRow asks the server on this connection, which nothing else uses now, and
// returns the first row, nil when there is none.
func (c *conn) queryRow(ctx context.Context, query string) ([]driver.Value, error) {
	var first []driver.Value
	err := c.queryRows(ctx, query, func(row []driver.Value) {
		if first == nil {
			first = append(first, row...)
		}
	})
	return first, err
}

// queryRows calls each with every row, whose values are valid until it returns.
func (c *conn) queryRows(ctx context.Context, query string, each func([]driver.Value)) (err error) {
	rows, err := c.base.queryOrPrepare(ctx, query, nil, 0)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := rows.Close(); err == nil {
			err = cerr
		}
	}()
	row := make([]driver.Value, len(rows.Columns()))
	for {
		switch err := rows.Next(row); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		for i, v := range row {
			if b, ok := v.([]byte); ok {
				row[i] = string(b) // the base reuses its buffer
			}
		}
		each(row)
	}
}

// askRow is queryRow for questions that a server may not understand: then the
// row is nil. Errors are those after which the statement at hand would fail too.
func (c *conn) askRow(ctx context.Context, query string) ([]driver.Value, error) {
	row, err := c.queryRow(ctx, query)
	if err == nil || !isFatal(ctx, err) {
		return row, nil
	}
	return nil, err
}

// isFatal tells errors of the connection or the context from answers of the
// server (and of mocks).
func isFatal(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn)
}

// text is a value as the text protocol would give it.
func text(v driver.Value) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case []byte:
		return string(v)
	}
	return fmt.Sprint(v)
}

// server is what a connector knows about the engine at its other end.
type server struct {
	// lastInsertID: LAST_INSERT_ID(expr) in an INSERT's values becomes the
	// statement's insert id. MySQL and MariaDB do so; engines that speak their
	// protocol may not, or may refuse an expression for a sharding column.
	lastInsertID bool
	// foundRows: the connection may have clientFoundRows, so that ON DUPLICATE
	// KEY UPDATE reports 1 for a row that existed and did not change.
	foundRows bool
}

// The values of the parameter shardkeyServer.
const (
	serverAuto    = "auto"
	serverMySQL   = "mysql"
	serverMariaDB = "mariadb"
	serverOther   = "other"
)

// checkServer refuses a value that shardkeyServer does not have.
func checkServer(kind string) error {
	switch kind {
	case "", serverAuto, serverMySQL, serverMariaDB, serverOther:
		return nil
	}
	return &DSNError{Param: paramServer, Reason: fmt.Sprintf("%q is none of auto, mysql, mariadb, other", kind)}
}

// serverOf returns what is known about the server, and asks it once per
// connector unless the DSN tells.
func (c *conn) serverOf(ctx context.Context) (*server, error) {
	if s := c.connector.server.Load(); s != nil {
		return s, nil
	}
	s := &server{foundRows: mayFindRows(c.connector.host.DSN)}
	switch c.connector.serverKind {
	case serverMySQL, serverMariaDB:
		s.lastInsertID = true
	case serverOther:
	default:
		row, err := c.askRow(ctx, "SELECT VERSION(), @@version_comment")
		if err != nil {
			return nil, err
		}
		s.lastInsertID = len(row) == 2 && echoesLastInsertID(text(row[0]), text(row[1]))
	}
	c.connector.server.Store(s)
	return s, nil
}

// echoesLastInsertID knows MariaDB by its version, and MySQL by the comments of
// its builds. Whoever else speaks the protocol is treated with care.
func echoesLastInsertID(version, comment string) bool {
	if strings.Contains(version, "MariaDB") {
		return true
	}
	for _, other := range []string{"TiDB", "Vitess", "ShardingSphere", "Dolt", "OceanBase", "Doris", "StarRocks", "PolarDB", "SingleStore", "Databend"} {
		if strings.Contains(version, other) || strings.Contains(comment, other) {
			return false
		}
	}
	for _, build := range []string{"MySQL", "Percona", "Source distribution", "Ubuntu", "Debian", "Google", "Homebrew"} {
		if strings.Contains(comment, build) {
			return true
		}
	}
	return false
}

func mayFindRows(dsn string) bool {
	cfg, err := mysql.ParseDSN(dsn)
	return dsn == "" || err != nil || cfg.ClientFoundRows
}
