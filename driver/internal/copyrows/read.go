package copyrows

import (
	"cmp"
	"context"
	"database/sql/driver"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/sqltoken"
)

// query selects the rows.
type query struct {
	text, rest string   // a locking clause can stand between them
	types      []string // the types of the columns, if some are converted to strings
}

// read runs the query and returns its rows.
func (s *Statement) read(ctx context.Context, t *session.Transport) (found *rows, err error) {
	if s.Insert.ReadsLastID {
		defer s.Session.LastID.Lost() // the query may call LAST_INSERT_ID(expr)
	}
	q := query{text: s.Insert.Select}
	if t.ParsesTime {
		if q, err = s.datesAsText(ctx, q); err != nil {
			return nil, err
		}
	}
	strict, err := s.isStrict(ctx)
	if err == nil && strict {
		err = s.clearWarnings(ctx, t)
	}
	if err != nil {
		return nil, err
	}
	if err := s.send(ctx, t.Set); err != nil {
		return nil, err
	}
	found, err = s.readRows(ctx, t, q)
	if err == nil && strict {
		err = s.raise(ctx)
	}
	if again := s.send(context.Background(), t.Restore); again != nil {
		s.Session.Base.Retire()
		err = cmp.Or(err, again)
	}
	if err == nil {
		err = s.checkTypes(ctx, found.columns)
	}
	return found, err
}

// datesAsText returns a query that converts dates to strings. Otherwise the underlying driver
// converts them to time.Time, which can't represent 2024-00-00, or an hour that daylight saving
// time skips. It reads the columns' types without running the query.
func (s *Statement) datesAsText(ctx context.Context, q query) (query, error) {
	server, err := s.Session.Server(ctx)
	if err != nil {
		return q, err
	}
	// Vitess can't name the columns of WITH, and MySQL before 8.0 has no WITH.
	ownNames := s.Session.IsVitess() || server.IsBeforeMySQL8()
	names := sqltoken.QuoteIdentifiers(s.Insert.Source.Columns) // as the server's errors name them
	around := func(columns string) (before, after string) {
		if ownNames {
			return "SELECT " + columns + " FROM (", ") AS shardkey_rows"
		}
		return "WITH shardkey_rows (" + strings.Join(names, ", ") + ") AS (", ") SELECT " + columns + " FROM shardkey_rows"
	}
	before, after := "(", ")"
	if startsWith.MatchString(q.text) || s.Session.IsVitess() {
		before, after = around("*")
	}
	found, err := s.open(ctx, before+q.text+after+" LIMIT 0")
	switch {
	case err != nil && session.IsFatal(ctx, err):
		return q, err
	case err != nil:
		return q, nil // the query itself returns the error
	}
	types := columnTypes(found)
	matches := len(types) == len(names)
	if ownNames {
		names = sqltoken.QuoteIdentifiers(found.Columns())
	}
	if err := found.Close(); err != nil || !matches || !slices.ContainsFunc(types, isDate) ||
		haveDuplicate(names) || ownNames && slices.ContainsFunc(names, unusable.MatchString) {
		return q, err // readRows refuses the remaining dates
	}
	columns := slices.Clone(names)
	for i, typ := range types {
		if isDate(typ) {
			columns[i] = "CAST(" + columns[i] + " AS CHAR)"
		}
	}
	q.types = types
	before, q.rest = around(strings.Join(columns, ", "))
	if q.text = before + q.text; s.Insert.Source.Unlimited { // without a LIMIT its order may be lost
		q.text += session.AllRows
	}
	return q, nil
}

// haveDuplicate reports whether two column names are equal for the server.
func haveDuplicate(names []string) bool {
	known := map[string]bool{}
	for _, name := range names {
		known[strings.ToLower(name)] = true
	}
	return len(known) < len(names)
}

// unusable matches names that a column doesn't have in a derived table: MySQL 5.6 shows ? for an
// argument, and with columnsWithAlias=true the driver puts the table before the name.
var unusable = regexp.MustCompile(`^.(\?|\w+\.\w+).$`)

var startsWith = regexp.MustCompile(`(?i)^with\b`)

// columnTypes returns the underlying driver's names of a query's column types; empty strings if it
// doesn't provide them.
func columnTypes(rows driver.Rows) []string {
	types := make([]string, len(rows.Columns()))
	if named, ok := rows.(driver.RowsColumnTypeDatabaseTypeName); ok {
		for i := range types {
			types[i] = named.ColumnTypeDatabaseTypeName(i)
		}
	}
	return types
}

// isDate reports whether the underlying driver converts a type's values to time.Time with
// parseTime.
func isDate(typ string) bool { return typ == "DATE" || typ == "DATETIME" || typ == "TIMESTAMP" }

// openLocking runs the query with the locks of INSERT … SELECT on the rows that it reads, if the
// query and the server support that.
func (s *Statement) openLocking(ctx context.Context, q query) (driver.Rows, error) {
	server, err := s.Session.Server(ctx)
	if err != nil {
		return nil, err
	}
	if server.ShareLocks && s.Insert.Source.Lockable {
		rows, err := s.open(ctx, q.text+" LOCK IN SHARE MODE"+q.rest)
		if !base.IsServerError(err, syntaxError, notSupported, tableDenied, columnDenied, notLocked, lockedForRead,
			noFeature, lockedTwice) {
			return rows, err
		}
	}
	return s.open(ctx, q.text+q.rest)
}

func (s *Statement) open(ctx context.Context, query string) (driver.Rows, error) {
	args := renumbered(s.Args[:s.Insert.Source.QueryArgs], 0)
	if !s.Prepared && slices.ContainsFunc(args, isTypedByProtocol) {
		reply, err := s.Session.Base.Direct(ctx, query, args, base.WantRows)
		switch {
		case err == nil && slices.Contains(columnTypes(reply.Rows), "FLOAT"): // as text, it has six digits
			return nil, cmp.Or(reply.Rows.Close(), error(&Refusal{"interpolateParams=true would round its FLOAT; " +
				"prepare the statement", nil}))
		case err != driver.ErrSkip:
			return reply.Rows, err
		}
	}
	reply, err := s.Session.Base.SendBinary(ctx, query, args, base.WantRows)
	return reply.Rows, err
}

// isTypedByProtocol reports whether go-sql-driver with interpolateParams=true writes an argument as a
// literal of another type than it binds: a DECIMAL for a float, and _binary for bytes.
func isTypedByProtocol(arg driver.NamedValue) bool {
	_, isFloat := arg.Value.(float64)
	bytes, _ := arg.Value.([]byte)
	return isFloat || !sqltoken.IsASCII(string(bytes))
}

// readRows reads all rows of the query.
func (s *Statement) readRows(ctx context.Context, t *session.Transport, q query) (found *rows, err error) {
	from, err := s.openLocking(ctx, q)
	if err != nil {
		return nil, err
	}
	types := columnTypes(from)
	if want := len(s.Insert.Source.Columns); len(types) != want {
		return nil, cmp.Or(from.Close(), s.wrongColumns(ctx, len(types)))
	}
	if t.ParsesTime && slices.ContainsFunc(types, isDate) {
		return nil, cmp.Or(from.Close(), error(&Refusal{"the server cannot convert the query's dates to strings, and " +
			"parseTime=true would change them; select them as CAST(… AS CHAR)", nil}))
	}
	found = &rows{columns: make([]column, len(types))}
	for i, typ := range types {
		if q.types != nil && isDate(q.types[i]) {
			typ = q.types[i]
		}
		found.columns[i] = column{name: s.Insert.Source.Columns[i], typ: typ}
	}
	row := make([]value, len(types), len(types)+1)
	var kept error
	err = s.Session.Base.ReadRows(from, func(values []driver.Value) {
		if kept == nil {
			kept = s.keep(ctx, found, row, values)
			found.n++
		}
	})
	return found, cmp.Or(kept, err)
}

// wrongColumns returns the server's error for a query with another number of columns.
func (s *Statement) wrongColumns(ctx context.Context, found int) error {
	source := s.Insert.Source
	args := renumbered(s.Args[source.QueryArgs:], 0)
	_, err := s.Session.Base.SendBinary(ctx, s.Insert.WithQuery(s.noRows(found)), args, base.WantResult)
	message := fmt.Sprintf("expected %d columns of the query, found %d", len(source.Columns), found)
	return cmp.Or(err, error(&Refusal{message, nil}))
}

// keep adds a row of the query to the rows.
func (s *Statement) keep(ctx context.Context, to *rows, row []value, values []driver.Value) (err error) {
	for i, v := range values {
		c := &to.columns[i]
		if values[i], err = c.read(v); err == nil {
			row[i], err = valueOf(values[i], c.typ)
		}
		if err != nil {
			return &Refusal{"column " + sqltoken.QuoteIdentifier(c.name), err}
		}
	}
	missing, at := true, s.Insert.Source.KeyIndex
	if at >= 0 {
		if to.last, missing, err = s.Keys.Explicit(ctx, to.n, values[at]); err != nil {
			return err
		}
		to.explicit = append(to.explicit, to.last)
	}
	switch {
	case missing && at < 0:
		row = append(row, value{kind: kindMissing})
	case missing:
		row[at] = value{kind: kindMissing}
		to.explicit[to.n] = missingKey
	}
	if missing {
		to.missing++
		if err := s.Keys.Add(ctx, values); err != nil {
			return err
		}
	}
	return to.add(row)
}

// rows are the rows of the query. The key is the last value of each unless the statement lists it.
type rows struct {
	columns []column
	n       int
	missing int    // the number of rows that need a key
	data    []byte // the encoded values
	// explicit are the keys of the query, missingKey for each row that needs one; nil if the
	// statement doesn't list the key. last is the last of them, nil if it is missing.
	explicit []any
	last     any
}

// width returns the number of values of a row.
func (r *rows) width() int {
	if r.explicit == nil {
		return len(r.columns) + 1
	}
	return len(r.columns)
}

// missingKey stands for the key of a row that needs one.
var missingKey any = kindMissing

// maxBytes limits the rows in memory. It is compared with the encoded values, which take 2 to 11
// bytes each and the bytes of a string, and with 24 bytes for the key of each row. While the slices
// grow, the process may hold twice as much.
const maxBytes = 64 << 20

// add appends a row.
func (r *rows) add(row []value) error {
	const key = 24
	for i := range row {
		r.data = row[i].encode(r.data)
	}
	if len(r.data)+key*(r.n+1) > maxBytes {
		return &Refusal{fmt.Sprintf("the query returns more than %d MiB of rows, so no row was inserted; "+
			"add a LIMIT and insert the rows in parts", maxBytes>>20), nil}
	}
	return nil
}
