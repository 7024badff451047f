package copyrows

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
)

const (
	rowsAtOnce  = 5000    // rows of one INSERT
	bytesAtOnce = 1 << 20 // bytes of one INSERT
)

// writer sends the INSERTs. It has their outcome.
type writer struct {
	s         *Statement
	transport *session.Transport
	// emptyIsNull: the server reads an empty argument as NULL (MariaDB's EMPTY_STRING_IS_NULL).
	emptyIsNull bool

	rows *rows
	keys rewrite.Keys

	rest     []byte // the encoded rows after to
	from, to int    // the rows of the current INSERT
	made, at int    // the number of generated keys before and after the current INSERT

	sent     Sent
	reply    base.Reply // of the last INSERT
	affected int64
	insertID int64
	existed  bool // an upsert matched an existing row
	doubt    int  // the first generated key that may be missing in the table
	unsure   bool // an explicit key may be missing in the table
	// stmt is the prepared INSERT of many rows, which the next INSERT often repeats.
	stmt base.Stmt
}

// write inserts the rows.
func (s *Statement) write(
	ctx context.Context, t *session.Transport, rows *rows, keys rewrite.Keys, want base.Want,
) (*writer, error) {
	mode, _, err := s.Session.Mode(ctx)
	if err != nil {
		return new(writer), err
	}
	w := &writer{s: s, transport: t, rows: rows, keys: keys, rest: rows.data}
	w.emptyIsNull = mode&sqltoken.EmptyStringIsNull != 0
	if w.sent.Keys = keys.Len(); s.Insert.Returning { // whose rows don't show how many were inserted
		w.unsure = s.Insert.Ignore || s.Insert.OnDuplicate || s.Insert.Replace || s.Key.Triggered
	} else {
		w.doubt = keys.Len()
	}
	err = w.write(ctx, want)
	if err != nil || want == base.WantResult {
		w.closeStmt()
	}
	return w, w.explain(err)
}

func (w *writer) write(ctx context.Context, want base.Want) error {
	for {
		values, args := w.nextValues()
		if w.to < w.rows.n && w.s.Insert.Returning {
			return &Refusal{fmt.Sprintf("with RETURNING its rows must fit in one INSERT of %d bytes and %d rows; "+
				"insert them in parts", w.limit(), w.s.rowsAtOnce()), nil}
		}
		if err := w.insert(ctx, values, args, want); err != nil || w.to == w.rows.n {
			return err
		}
	}
}

func (s *Statement) rowsAtOnce() int { return cmp.Or(s.RowsAtOnce, rowsAtOnce) }

// limit returns the maximum size of an INSERT's rows, in bytes.
func (w *writer) limit() int {
	const rest = 4 << 10 // for the rest of the statement
	return max(min(w.transport.Packet-rest, bytesAtOnce), 1)
}

// nextValues returns the values of the next INSERT. If there are no rows, it returns a query
// without rows.
func (w *writer) nextValues() (string, []driver.NamedValue) {
	source := w.s.Insert.Source
	if w.rows.n == 0 {
		return w.s.noRows(len(source.Columns)), nil
	}
	w.from, w.made = w.to, w.at
	row := make([]value, w.rows.width())
	most := min(w.s.rowsAtOnce(), max((base.MaxPlaceholders-source.TailArgs)/len(row), 1))
	query, null := []byte("VALUES "), false
	args := w.sent.Args[:0]
	for bytes := 0; w.to < w.rows.n && w.to-w.from < most; w.to++ {
		after := decode(row, w.rest)
		if bytes += size(row); bytes > w.limit() && w.to > w.from {
			break
		}
		w.rest = after
		query = append(query, '(')
		for i := range row {
			null = null || row[i].kind == kindNull
			query, args = w.appendValue(query, args, &row[i])
			query = append(query, ',')
		}
		query = append(query[:len(query)-1], "),"...)
	}
	query = query[:len(query)-1]
	if w.to-w.from == 1 && null && !w.s.Session.IsVitess() { // for Vitess, VALUES shows the shards of the row
		// Without strict mode, INSERT … SELECT and VALUES of many rows convert a NULL for a NOT
		// NULL column to its default value. VALUES of one row refuses it.
		return "SELECT " + string(query[len("VALUES ("):len(query)-len(")")]) + " FROM DUAL", args
	}
	return string(query), args
}

// noRows returns a query without rows that has these columns, and one for the key unless it is
// listed.
func (s *Statement) noRows(columns int) string {
	if s.Insert.Source.KeyIndex < 0 {
		columns++
	}
	return "SELECT NULL" + strings.Repeat(", NULL", max(columns-1, 0)) + " FROM DUAL WHERE FALSE"
}

// appendValue appends a value of a row, or the next generated key.
func (w *writer) appendValue(query []byte, args []driver.NamedValue, v *value) ([]byte, []driver.NamedValue) {
	switch {
	case v.kind >= kindText && len(v.bytes) == 0 && w.emptyIsNull:
		return append(query, "SPACE(0)"...), args
	case v.kind != kindMissing:
		return v.appendTo(query, args, w.transport.UTF8)
	}
	generated, typ := w.keys.At(w.at), ""
	if _, isBytes := generated.([]byte); isBytes {
		typ = "BINARY"
	}
	key, _ := valueOf(generated, typ) // keys are integers, strings or bytes
	if w.at++; w.at > 1 || !w.s.carried {
		return key.appendTo(query, args, w.transport.UTF8)
	}
	query, args = key.appendTo(append(query, "LAST_INSERT_ID("...), args, w.transport.UTF8)
	return append(query, ')'), args
}

// insert sends one INSERT whose source is values or another query.
func (w *writer) insert(ctx context.Context, source string, args []driver.NamedValue, want base.Want) (err error) {
	s := w.s
	query, former := s.Insert.WithQuery(source), w.sent.Query
	w.sent.Query, w.sent.Args = query, append(args, renumbered(s.Args[s.Insert.Source.QueryArgs:], len(args))...)
	if w.to-w.from <= 1 {
		w.reply, err = s.Session.Base.SendBinary(ctx, query, w.sent.Args, want)
	} else {
		if query != former {
			w.closeStmt()
			w.stmt, err = s.Session.Base.Prepare(ctx, query)
		}
		if err == nil {
			err = w.stmt.CheckArgs(w.sent.Args, 0)
		}
		if err == nil {
			w.reply, err = w.stmt.Send(ctx, w.sent.Args, want)
		}
	}
	switch {
	case err != nil:
		return err
	case want == base.WantRows:
		return nil
	case w.reply.Result == nil:
		return base.ErrNoAnswer
	}
	w.count(w.reply.Result)
	return nil
}

func (w *writer) closeStmt() {
	if w.stmt.Stmt != nil {
		_ = w.stmt.Close()
		w.stmt = base.Stmt{}
	}
}

// count records the result of an INSERT.
func (w *writer) count(res driver.Result) {
	in, rows := w.s.Insert, int64(w.to-w.from)
	affected, err := res.RowsAffected()
	if err == nil {
		w.affected += affected
	}
	id, _ := res.LastInsertId()
	if id != 0 {
		w.insertID = id
	}
	existed := in.ReportsExistingKey && id != 0
	w.existed = w.existed || existed || in.OnDuplicate && err == nil && affected != rows
	switch {
	case in.Replace && affected != rows: // this INSERT may have replaced rows of earlier ones
		w.doubt, w.unsure = 0, true
	case in.Ignore && affected != rows, in.OnDuplicate && (w.existed || !in.ReportsExistingKey || w.s.Key.HasTriggers),
		w.s.Key.Triggered:
		w.doubt, w.unsure = min(w.doubt, w.made), true
	}
}

// explain converts the server's error about an INSERT of values to an error about the statement.
func (w *writer) explain(err error) error {
	var my *mysql.MySQLError
	switch {
	case !errors.As(err, &my):
		return err
	case w.usesQuery(my):
		return &Refusal{"ON DUPLICATE KEY UPDATE can use VALUES(column) and the target's columns, not the query's", err}
	}
	const atRow = " at row " // counts from the first row of one INSERT
	if at := strings.LastIndex(my.Message, atRow); at >= 0 && err == error(my) {
		if n, bad := strconv.Atoi(my.Message[at+len(atRow):]); bad == nil {
			counted := *my
			counted.Message = my.Message[:at] + atRow + strconv.Itoa(w.from+n)
			err = &counted
		}
	}
	return err
}

// usesQuery reports whether an error is about an ON DUPLICATE KEY UPDATE that uses the query's
// tables. The INSERT of values doesn't have these tables.
func (w *writer) usesQuery(err *mysql.MySQLError) bool {
	isTargets := func(column string) bool { return strings.Contains(err.Message, "'"+column+"'") }
	in := w.s.Insert
	return in.OnDuplicate && w.rows.n > 0 && (err.Number == unknownColumn || err.Number == unknownTable) &&
		!slices.ContainsFunc(in.Source.Columns, isTargets)
}
