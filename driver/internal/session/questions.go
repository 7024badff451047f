package session

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
)

// errReadsCounts is the error for an INSERT that reads the counts of the previous statement, since
// a metadata query would change them.
var errReadsCounts = fmt.Errorf("%w: it calls ROW_COUNT() or FOUND_ROWS(), which shardkey's metadata query would "+
	"change; read the value in a separate SELECT and pass it as an argument", rewrite.ErrUnsupportedStatement)

// CheckAsk returns an error if no metadata query may precede a statement, because it calls
// FOUND_ROWS() or ROW_COUNT(). A metadata query changes both.
func (s *Session) CheckAsk(query string) error {
	if query != "" && readsCounts(query, s.mode) {
		return errReadsCounts
	}
	return nil
}

// ask sends a metadata query.
func (s *Session) ask(ctx context.Context, query string) (driver.Rows, error) {
	if err := s.CheckAsk(s.ForInsert); err != nil {
		return nil, err
	}
	r, err := s.Base.Send(ctx, query, nil, 0, base.WantRows)
	return r.Rows, err
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
	return cmp.Or(err, s.setTransactionAgain(ctx))
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

// IsFatal reports whether a query's error comes from the connection or the context, or whether the
// query was refused. Otherwise the error is an answer of the server or a mock.
func IsFatal(ctx context.Context, err error) bool {
	return ctx.Err() != nil || err == errReadsCounts ||
		errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn)
}

// Text returns a value in the format of the text protocol.
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

// maxKeysInQuestion limits the keys in one query.
const maxKeysInQuestion = 1000

// PresentKeys returns the keys that are in an insert's table, formatted by [Text]. It ignores nil.
func (s *Session) PresentKeys(ctx context.Context, in *rewrite.Insert, keys []any) (map[string]bool, error) {
	present := map[string]bool{}
	column, table := sqltoken.QuoteIdentifier(in.Table.KeyColumn), sqltoken.QuoteTable(in.Schema, in.Name)
	for chunk := range slices.Chunk(keys, maxKeysInQuestion) {
		query := []byte("SELECT " + column + " FROM " + table + " WHERE " + column + " IN (NULL")
		for _, key := range chunk {
			if key != nil {
				query, _ = sqltoken.AppendLiteral(append(query, ", "...), key)
			}
		}
		var empty error
		err := s.queryRows(ctx, string(append(query, ")"+AllRows...)), func(row []driver.Value) {
			if len(row) == 0 {
				empty = errors.New("shardkey: expected a column of keys from the server, found none")
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

// AskCacheLimit queries how many statements the connector may cache. It does so once, before the
// second INSERT that needs the limit. It skips an INSERT that reads the previous statement's
// counts.
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

// Transport describes how rows are encoded between the server and a session. It is queried once,
// and again after a statement that may have changed the session's variables.
type Transport struct {
	UTF8       bool // the server reads arguments as UTF-8
	Autocommit bool
	ParsesTime bool // the underlying driver returns dates as time.Time
	Packet     int  // the maximum size of a statement in bytes; 0 if unknown
	// Set is a statement that changes variables for a query, and Restore restores them; both may be
	// empty.
	Set, Restore string
}

// Transport returns the encoding of rows.
func (s *Session) Transport(ctx context.Context) (*Transport, error) {
	if s.transport != nil {
		return s.transport, nil
	}
	const columns = 7
	row, err := s.QueryRow(ctx, "SELECT @@character_set_client, @@character_set_connection, @@character_set_results, "+
		"@@sql_select_limit, @@max_allowed_packet, @@autocommit, CAST('2000-01-02' AS DATE) LIMIT 1")
	if err != nil {
		return nil, err
	}
	if len(row) != columns {
		return nil, fmt.Errorf("%w: expected %d columns about the session, found %d", rewrite.ErrUnsupportedStatement, columns, len(row))
	}
	isUTF8 := func(v driver.Value) bool { return strings.EqualFold(Text(v), "utf8mb4") }
	t := &Transport{UTF8: isUTF8(row[0]) && isUTF8(row[1]), Packet: s.packet(Text(row[4])), Autocommit: Text(row[5]) == "1"}
	_, t.ParsesTime = row[6].(time.Time)
	charset, limit := cmp.Or(Text(row[2]), "NULL"), Text(row[3])
	rows, err := strconv.ParseUint(limit, 10, 64)
	isLimited := err == nil && rows < math.MaxInt64 && !(rows == 0 && s.IsVitess()) // 0 means no limit in Vitess
	switch {
	case isUTF8(row[2]) && !isLimited:
	case !plainName.MatchString(charset):
		return nil, fmt.Errorf("%w: unknown character set %q of results", rewrite.ErrUnsupportedStatement, charset)
	case err != nil:
		return nil, fmt.Errorf("%w: expected a number as sql_select_limit, found %q", rewrite.ErrUnsupportedStatement, limit)
	default:
		t.Set = "SET character_set_results = utf8mb4, sql_select_limit = " + noLimit
		t.Restore = "SET character_set_results = " + charset + ", sql_select_limit = " + limit
	}
	s.transport = t
	return t, nil
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9_]+$`)

const noLimit = "9223372036854775807" // the number of rows; Vitess accepts no larger one

// packet returns the maximum size of a statement in bytes, by the server's max_allowed_packet and
// the underlying driver's.
func (s *Session) packet(server string) int {
	most, _ := strconv.Atoi(server)
	if own := s.Client().MaxAllowedPacket; own > 0 {
		most = min(most, own)
	}
	return most
}
