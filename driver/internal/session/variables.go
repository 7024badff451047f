package session

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
)

// ask sends a metadata query.
func (s *Session) ask(ctx context.Context, query string) (driver.Rows, error) {
	if s.assumed != nil {
		return nil, s.assumed.Err
	}
	r, err := s.do(ctx, base.Request{Text: query, Rows: true})
	return r.Rows, err
}

// do sends a statement that the program hasn't written.
func (s *Session) do(ctx context.Context, r base.Request) (base.Reply, error) {
	s.LogOwn(ctx, r.Text, s.mode, s.charset)
	return s.Base.Do(ctx, &r)
}

// LogOwn logs a statement that the program hasn't written, before it is sent. The server reads it in this mode
// and character set.
func (s *Session) LogOwn(ctx context.Context, text string, mode sqltoken.Mode, charset sqltoken.Charset) {
	if l := s.cache.Logger; l != nil && l.Enabled(ctx, slog.LevelDebug) {
		const most = 4 << 10
		l.DebugContext(ctx, "shardkey: own query", "statement", sqltoken.WithoutLiterals(text, mode, charset, most))
	}
}

// AllRows ends a query that must not be limited. A SELECT without LIMIT would be subject to
// sql_select_limit.
const AllRows = " LIMIT " + noLimit

// QueryRow sends a query on this connection and returns the first row, nil if there is none.
func (s *Session) QueryRow(ctx context.Context, query string) ([]driver.Value, error) {
	var first []driver.Value
	err := s.queryRows(ctx, query, func(row []driver.Value) {
		if first == nil {
			first = append(first, row...)
		}
	})
	return first, err
}

// askRow is QueryRow for a query that the server may not support; it then returns nil. An error
// means that the current statement would fail too, or that the result can't be read.
func (s *Session) askRow(ctx context.Context, query string) ([]driver.Value, error) {
	row, err := s.QueryRow(ctx, query)
	switch {
	case err != nil && IsFatal(ctx, err):
		return nil, err
	case err != nil:
		return nil, nil
	case row == nil:
		return nil, fmt.Errorf("%w: the server returned no row for %q, which shows how to read the "+
			"statement", rewrite.ErrUnsupportedStatement, query)
	case slices.ContainsFunc(row, func(v driver.Value) bool { return isWide(Text(v)) }):
		return nil, fmt.Errorf("%w: %w", rewrite.ErrUnsupportedStatement, errWide)
	}
	return row, nil
}

// queryRows calls each for every row. The row's values are valid until each returns.
func (s *Session) queryRows(ctx context.Context, query string, each func([]driver.Value)) error {
	err := s.readRows(ctx, query, each)
	return cmp.Or(err, s.SetTransactionAgain(ctx))
}

func (s *Session) readRows(ctx context.Context, query string, each func([]driver.Value)) error {
	rows, err := s.ask(ctx, query)
	if err != nil {
		return err
	}
	return s.Base.ReadRows(rows, func(row []driver.Value) {
		for i, v := range row {
			if b, ok := v.([]byte); ok {
				row[i] = string(b) // the underlying driver reuses its buffer
			}
		}
		each(row)
	})
}

// errWide is the error for results in a character set with at least two bytes per character.
var errWide = errors.New("character_set_results is UTF-16 or UTF-32; set it to utf8mb4")

func isWide(answer string) bool { return strings.IndexByte(answer, 0) >= 0 }

// IsFatal reports whether a query's error comes from the connection or the context. Otherwise the error is an answer of the server or a mock.
func IsFatal(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn)
}

// Text returns a value in the format of the text protocol.
func Text(v driver.Value) string { return base.Text(v) }

// maxKeysInQuestion limits the keys in one query.
const maxKeysInQuestion = 1000

// PresentKeys returns the keys that are in an insert's table, formatted by [Text]. It ignores nil. If
// last is set, the result also has LAST_INSERT_ID(), if that is a key in the table.
func (s *Session) PresentKeys(ctx context.Context, in *rewrite.Insert, keys []any, last bool) (map[string]bool, error) {
	present := map[string]bool{}
	for chunk := range slices.Chunk(keys, maxKeysInQuestion) {
		var empty error
		each := func(row []driver.Value) {
			if len(row) == 0 {
				empty = errors.New("shardkey: expected a column of keys from the server, found none")
				return
			}
			present[Text(row[0])] = true
		}
		plain := presentKeys(in, chunk, last)
		now, err := s.ofNow(ctx, s.onPrimary(plain, in), in)
		if err == nil {
			err = s.queryRows(ctx, now, each)
		}
		if err != nil && !IsFatal(ctx, err) && !s.ReportsInsertIDs() {
			err = s.queryRows(ctx, plain, each) // the engine may not support the other form
		}
		if err = cmp.Or(err, empty); err != nil {
			return nil, err
		}
		last = false
	}
	return present, nil
}

// presentKeys returns the query for the keys that are in an insert's table.
func presentKeys(in *rewrite.Insert, keys []any, last bool) string {
	column := sqltoken.QuoteIdentifier(in.Table.Key)
	query := []byte("SELECT " + column + " FROM " + sqltoken.QuoteTable(in.Schema, in.Name) + " WHERE " + column + " IN (NULL")
	for _, key := range keys {
		if key != nil {
			query, _ = sqltoken.AppendLiteral(append(query, ", "...), key)
		}
	}
	query = append(query, ')')
	if last { // in the list it would make MariaDB read the whole index
		query = append(query, " OR "+column+" = LAST_INSERT_ID()"...)
	}
	return string(append(query, AllRows...))
}

// KeysBetween returns the keys in an insert's table from low to high, formatted by [Text].
func (s *Session) KeysBetween(ctx context.Context, in *rewrite.Insert, low, high uint64) (map[string]bool, error) {
	present := map[string]bool{}
	column := sqltoken.QuoteIdentifier(in.Table.Key)
	query := fmt.Sprintf("SELECT %s FROM %s WHERE %s BETWEEN %d AND %d", column, sqltoken.QuoteTable(in.Schema, in.Name), column, low, high)
	err := s.queryRows(ctx, s.onPrimary(query+AllRows, in), func(row []driver.Value) {
		if len(row) > 0 {
			present[Text(row[0])] = true
		}
	})
	return present, err
}

// onPrimary returns the query in a form that proxies send to the primary server when they split
// reads and writes, since a replica may not have the rows yet. They do so with SELECT … FOR UPDATE:
// ProxySQL by the rules that its documentation recommends (^SELECT.*FOR UPDATE$), ShardingSphere
// (pull request 3390), MaxScale and TaurusDB, which treat it as a write.
//
// The rows of the subquery aren't locked: "A locking read clause in an outer statement does not lock
// the rows of a table in a nested subquery statement" (MySQL manual, "Locking Reads"). So the query
// waits for no lock, takes none on gaps, and needs no privilege but SELECT. MariaDB does the same.
//
// In Vitess, the session's target is always the primary.
func (s *Session) onPrimary(query string, in *rewrite.Insert) string {
	if s.IsVitess() {
		return query
	}
	return "SELECT " + sqltoken.QuoteIdentifier(in.Table.Key) + " FROM (" + query + ") AS shardkey_keys" + AllRows + " FOR UPDATE"
}

// ofNow returns the query in a form that reads the rows of now, also if the session's
// system_versioning_asof is another time.
func (s *Session) ofNow(ctx context.Context, query string, in *rewrite.Insert) (string, error) {
	t, err := s.Facts(ctx, in.Schema, in.Name)
	if err == nil && t.Versioned {
		query = "SET STATEMENT system_versioning_asof = DEFAULT FOR " + query
	}
	return query, err
}

// IndexHas reports whether an index of a table has a column. It returns false if the server doesn't
// answer.
func (s *Session) IndexHas(ctx context.Context, schema, table, index, column string) (has bool) {
	const indexAt, columnAt = 2, 4
	err := s.queryRows(ctx, "SHOW INDEX FROM "+sqltoken.QuoteTable(schema, table), func(row []driver.Value) {
		has = has || len(row) > columnAt && strings.EqualFold(Text(row[indexAt]), index) && strings.EqualFold(Text(row[columnAt]), column)
	})
	return has && err == nil
}

// AskCacheLimit queries how many statements the connector may cache. It does so once, before the
// second INSERT that needs the limit.
func (s *Session) AskCacheLimit(ctx context.Context) error {
	if !s.Base.NeedsLimit() {
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

const noLimit = "9223372036854775807" // the number of rows; Vitess accepts no larger one
