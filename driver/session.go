package driver

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/rewrite"
)

// session asks the server of a connection, and keeps what is known about the
// server's session. Each fact is asked for when it is needed first, and forgotten
// when a statement may have changed it. Most connections never ask. What is known
// holds as long as the connection: the base's ResetSession does not reset the
// server's session, whose sql_mode, for one, is what the last user left.
type session struct {
	base    base.Conn
	servers *serverCache
	columns *columnCache // the connector's, until the session may have temporary tables

	// mode and charset are @@sql_mode and @@character_set_client, asked for in
	// one question.
	mode      rewrite.Mode
	charset   rewrite.Charset
	modeKnown bool

	database      string
	databaseKnown bool

	lastID lastID

	// transaction are the statements, such as SET TRANSACTION READ ONLY, that the next
	// transaction alone takes its characteristics from.
	transaction []string

	// forInsert is the INSERT before which questions are asked now.
	forInsert string
}

func (s *session) forget(query string, class rewrite.Class) {
	changes := rewrite.ChangesOf(query, class)
	reading := changes
	if reading.Columns = false; reading != (rewrite.Changes{}) {
		s.base.ClearCache()
	}
	if changes.Mode || changes.Charset {
		s.modeKnown = false
	}
	if changes.Database {
		s.databaseKnown = false
	}
	if changes.Columns {
		s.forgetColumns(query)
	}
}

// readingMode asks the server how it reads the session's texts: sql_mode and
// character set, once. A server that does not know them has none that matters.
func (s *session) readingMode(ctx context.Context) (rewrite.Mode, rewrite.Charset, error) {
	if s.modeKnown {
		return s.mode, s.charset, nil
	}
	// The limit stands above the session's own sql_select_limit.
	row, err := s.queryRow(ctx, "SELECT @@sql_mode, @@character_set_client LIMIT 1")
	switch {
	case err != nil && isFatal(ctx, err):
		return 0, 0, err
	case err != nil:
		s.mode, s.charset = 0, rewrite.CharsetUTF8
	case len(row) != 2 || row[1] == nil || strings.Contains(text(row[0])+text(row[1]), "\x00"):
		// character_set_results may be one that this package cannot read.
		return 0, 0, fmt.Errorf("%w: the server's answer for @@sql_mode and @@character_set_client is not understood: %q; is character_set_results one of UTF-16?", ErrUnsupportedStatement, row)
	default:
		s.mode, s.charset = rewrite.ParseMode(text(row[0])), rewrite.ParseCharset(text(row[1]))
	}
	s.modeKnown = true
	return s.mode, s.charset, nil
}

// sqlMode is the session's sql_mode.
func (s *session) sqlMode(ctx context.Context) (rewrite.Mode, error) {
	mode, _, err := s.readingMode(ctx)
	return mode, err
}

// currentDatabase asks the server for the session's database, once.
func (s *session) currentDatabase(ctx context.Context) (string, error) {
	if !s.databaseKnown {
		row, err := s.askRow(ctx, "SELECT DATABASE() LIMIT 1")
		if err != nil {
			return "", err
		}
		s.database, s.databaseKnown = "", true
		if len(row) == 1 {
			s.database = text(row[0])
		}
	}
	return s.database, nil
}

// queryRow asks the server on this connection, which nothing else uses now, and
// returns the first row, nil when there is none.
func (s *session) queryRow(ctx context.Context, query string) ([]driver.Value, error) {
	var first []driver.Value
	err := s.queryRows(ctx, query, func(row []driver.Value) {
		if first == nil {
			first = append(first, row...)
		}
	})
	return first, err
}

// errReadsCounts is the error for an INSERT that reads what the statement
// before it returned, and would read what a query of ours returned.
var errReadsCounts = fmt.Errorf("%w: it reads FOUND_ROWS() or ROW_COUNT(), and a question to the server, which changes them, must come before it; "+
	"SELECT the value by a statement of its own, and bind it", ErrUnsupportedStatement)

// ask sends a question of ours.
func (s *session) ask(ctx context.Context, query string) (driver.Rows, error) {
	if s.forInsert != "" && rewrite.ReadsCounts(s.forInsert, s.mode) {
		return nil, errReadsCounts
	}
	r, err := s.base.Send(ctx, query, nil, 0, base.WantRows)
	return r.Rows, err
}

// queryColumns is queryRows for a question of so many columns, at least; an answer
// that has fewer is an error.
func (s *session) queryColumns(ctx context.Context, columns int, query string, each func([]driver.Value)) error {
	var short error
	err := s.queryRows(ctx, query, func(row []driver.Value) {
		if len(row) >= columns {
			each(row)
		} else {
			short = fmt.Errorf("shardkey: the server answers %d columns where %d were asked for", len(row), columns)
		}
	})
	return cmp.Or(err, short)
}

// queryRows calls each with every row, whose values are valid until it returns.
func (s *session) queryRows(ctx context.Context, query string, each func([]driver.Value)) error {
	err := s.readRows(ctx, query, each)
	return cmp.Or(err, s.setTransactionAgain(ctx))
}

// setTransactionAgain is called after a question, which took the characteristics that were
// set for the next transaction: it was one, where it read a table.
func (s *session) setTransactionAgain(ctx context.Context) error {
	const inTransaction = 1568
	for _, query := range s.transaction {
		// With autocommit off the question began the transaction that they are for.
		if _, err := s.base.Send(ctx, query, nil, 0, base.WantResult); err != nil && !base.IsServerError(err, inTransaction) {
			return err
		}
	}
	return nil
}

// followTransaction is called after a statement of the user's, with its error: it may have
// set the characteristics of the next transaction, or been that transaction.
func (s *session) followTransaction(query string, err error) {
	const readOnly = 1792 // nothing was read or written
	switch {
	case err == nil:
		s.transaction = rewrite.NextTransaction(s.transaction, query, s.mode, s.charset)
	case !base.IsServerError(err, readOnly, syntaxError, unknownTable):
		s.transaction = nil
	}
}

func (s *session) readRows(ctx context.Context, query string, each func([]driver.Value)) (err error) {
	rows, err := s.ask(ctx, query)
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

// allRows ends a question of whatever number of rows: sql_select_limit holds for
// a SELECT that has no limit of its own.
const allRows = " LIMIT 9223372036854775807" // Vitess takes no larger one

// askRow is queryRow for questions that a server may not understand: then the
// row is nil. Errors are those after which the statement at hand would fail too,
// and answers that are none.
func (s *session) askRow(ctx context.Context, query string) ([]driver.Value, error) {
	row, err := s.queryRow(ctx, query)
	switch {
	case err != nil && isFatal(ctx, err):
		return nil, err
	case err != nil:
		return nil, nil
	case row == nil:
		return nil, fmt.Errorf("%w: the server's answer to %q is empty, so that it is not known how to read the statement", ErrUnsupportedStatement, query)
	case slices.ContainsFunc(row, func(v driver.Value) bool { return isWide(text(v)) }):
		return nil, fmt.Errorf("%w: %w", ErrUnsupportedStatement, errWide)
	}
	return row, nil
}

// errWide is the error for answers in a character set of two bytes or more for
// each character.
var errWide = errors.New("the server answers in UTF-16 or UTF-32; SET character_set_results to utf8mb4")

func isWide(answer string) bool { return strings.IndexByte(answer, 0) >= 0 }

// isFatal reports whether err comes from the connection, the context or a query
// that must not be sent, and is not an answer of the server (or a mock).
func isFatal(ctx context.Context, err error) bool {
	return ctx.Err() != nil || err == errReadsCounts || errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn)
}

// text returns a value as the text protocol would.
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

// askCacheLimit asks the server how many statements the connector may cache, once,
// before the INSERT after the first one for which that was needed. An INSERT that reads
// what the statement before it returned goes without.
func (s *session) askCacheLimit(ctx context.Context) error {
	if !s.base.NeedsLimit() || rewrite.ReadsCounts(s.forInsert, s.mode) {
		return nil
	}
	row, err := s.queryRow(ctx, "SELECT @@max_prepared_stmt_count LIMIT 1")
	if err != nil && isFatal(ctx, err) {
		return err
	}
	limit := ""
	if err == nil && len(row) == 1 {
		limit = text(row[0])
	}
	s.base.SetLimit(limit)
	return nil
}
