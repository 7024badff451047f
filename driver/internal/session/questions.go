package session

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
	"github.com/shardkey/shardkey/internal/rewrite"
	"github.com/shardkey/shardkey/internal/sqltext"
)

// errReadsCounts is the error for an INSERT that reads what the statement before it
// returned, and would read what a question returned.
var errReadsCounts = fmt.Errorf("%w: it calls ROW_COUNT() or FOUND_ROWS(), which shardkey's metadata query would "+
	"change; read the value in a separate SELECT and pass it as an argument", rewrite.ErrUnsupportedStatement)

// CheckAsk returns an error if no question may be asked before a statement: the statement
// calls FOUND_ROWS() or ROW_COUNT(), which a question changes.
func (s *Session) CheckAsk(query string) error {
	if query != "" && rewrite.ReadsCounts(query, s.mode) {
		return errReadsCounts
	}
	return nil
}

// ask sends a question.
func (s *Session) ask(ctx context.Context, query string) (driver.Rows, error) {
	if err := s.CheckAsk(s.ForInsert); err != nil {
		return nil, err
	}
	r, err := s.Base.Send(ctx, query, nil, 0, base.WantRows)
	return r.Rows, err
}

// AllRows ends a question with any number of rows: sql_select_limit holds for a SELECT
// without LIMIT.
const AllRows = " LIMIT " + noLimit

// QueryRow asks the server on this connection, which nothing else uses now, and returns the
// first row; nil if there is none.
func (s *Session) QueryRow(ctx context.Context, query string) ([]driver.Value, error) {
	var first []driver.Value
	err := s.queryRows(ctx, query, func(row []driver.Value) {
		if first == nil {
			first = append(first, row...)
		}
	})
	return first, err
}

// askRow is QueryRow for questions that a server may not understand: then the row is nil. Errors
// are those after which the statement at hand would fail too, and answers that cannot be read.
func (s *Session) askRow(ctx context.Context, query string) ([]driver.Value, error) {
	row, err := s.QueryRow(ctx, query)
	switch {
	case err != nil && IsFatal(ctx, err):
		return nil, err
	case err != nil:
		return nil, nil
	case row == nil:
		return nil, fmt.Errorf("%w: the server's answer to %q is empty, so that it is not known how to read the "+
			"statement", rewrite.ErrUnsupportedStatement, query)
	case slices.ContainsFunc(row, func(v driver.Value) bool { return isWide(Text(v)) }):
		return nil, fmt.Errorf("%w: %w", rewrite.ErrUnsupportedStatement, errWide)
	}
	return row, nil
}

// queryRows calls each with every row, whose values are valid until it returns.
func (s *Session) queryRows(ctx context.Context, query string, each func([]driver.Value)) error {
	err := s.readRows(ctx, query, each)
	return cmp.Or(err, s.setTransactionAgain(ctx))
}

func (s *Session) readRows(ctx context.Context, query string, each func([]driver.Value)) (err error) {
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
				row[i] = string(b) // the underlying driver reuses its buffer
			}
		}
		each(row)
	}
}

// errWide is the error for answers in a character set of two bytes or more for each character.
var errWide = errors.New("the server answers in UTF-16 or UTF-32; SET character_set_results to utf8mb4")

func isWide(answer string) bool { return strings.IndexByte(answer, 0) >= 0 }

// IsFatal reports whether a question's error comes from the connection, the context or a
// question that must not be sent, and is not an answer of the server (or a mock).
func IsFatal(ctx context.Context, err error) bool {
	return ctx.Err() != nil || err == errReadsCounts ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn)
}

// Text returns a value as the text protocol would.
func Text(v driver.Value) string {
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

// maxKeysInQuestion is how many keys one question names.
const maxKeysInQuestion = 1000

// PresentKeys asks which keys are in an insert's table, and returns them as [Text]. A nil
// is no key.
func (s *Session) PresentKeys(ctx context.Context, in *rewrite.Insert, keys []any) (map[string]bool, error) {
	present := map[string]bool{}
	column, table := sqltext.QuoteIdentifier(in.Table.KeyColumn), sqltext.QuoteTable(in.Schema, in.Name)
	for chunk := range slices.Chunk(keys, maxKeysInQuestion) {
		query := []byte("SELECT " + column + " FROM " + table + " WHERE " + column + " IN (NULL")
		for _, key := range chunk {
			if key != nil {
				query, _ = sqltext.AppendLiteral(append(query, ", "...), key)
			}
		}
		var empty error
		err := s.queryRows(ctx, string(append(query, ")"+AllRows...)), func(row []driver.Value) {
			if len(row) == 0 {
				empty = errors.New("shardkey: expected a column of keys in the server's answer, found none")
				return
			}
			present[Text(row[0])] = true
		})
		if err = cmp.Or(err, empty); err != nil {
			return nil, err
		}
	}
	return present, nil
}

// AskCacheLimit asks the server how many statements the connector may cache, once, before
// the INSERT after the first one that needed it. An INSERT that reads what the statement
// before it returned goes without.
func (s *Session) AskCacheLimit(ctx context.Context) error {
	if !s.Base.NeedsLimit() || s.CheckAsk(s.ForInsert) != nil {
		return nil
	}
	row, err := s.QueryRow(ctx, "SELECT @@max_prepared_stmt_count LIMIT 1")
	if err != nil && IsFatal(ctx, err) {
		return err
	}
	limit := ""
	if err == nil && len(row) == 1 {
		limit = Text(row[0])
	}
	s.Base.SetLimit(limit)
	return nil
}
