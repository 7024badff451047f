package driver

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/driver/internal/outcome"
	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/sqlerr"
	"github.com/shardkey/shardkey/rewrite"
)

// The server runs an INSERT … SELECT that may insert several rows. A query before it counts the rows, and
// an expression in the select list hands out their keys; see [rewrite.Plan.RewriteSelect]. If the query
// has all keys, nothing is counted.

// keysOfQuery counts the rows of the query and makes their keys.
func (p *plan) keysOfQuery(ctx context.Context, x *call, sent *outcome.Sent) error {
	s, keys := &x.session, &sent.Keys
	column, err := s.KeyColumn(ctx, p.filler.Insert)
	if err != nil {
		return err
	}
	for _, ask := range []func(context.Context) error{s.AskCacheLimit, s.KnowLastID, s.SyncLastID} {
		if err := ask(ctx); err != nil {
			return err
		}
	}
	n, err := p.countRows(ctx, x)
	if err != nil {
		keys.Counted = 1
		p.describeSent(x, column, sent)
		return &uncountedError{err}
	}
	column, err = p.filler.FillQuery(ctx, s, column, n, keys, x.out == nil)
	if err == nil && p.rules.keyHook != nil {
		err = p.rules.callKeyHook(ctx, p.table.Rule, n, keys)
	}
	if err != nil {
		return err
	}
	sent.Counted, keys.Counted = n, max(n, 1)
	keys.LastInsertID, err = lastBetween(ctx, s, keys)
	p.describeSent(x, column, sent)
	return err
}

// keysInQuery is for a query that has all keys.
func (p *plan) keysInQuery(ctx context.Context, x *call, sent *outcome.Sent) (err error) {
	column := unasked
	if p.Insert.SelectKey != rewrite.Literal {
		if column, err = x.session.KeyColumn(ctx, p.filler.Insert); err != nil {
			return err
		}
	}
	p.describeSent(x, column, sent)
	if err = x.session.AskCacheLimit(ctx); err == nil {
		err = x.session.SyncLastID(ctx) // it may read LAST_INSERT_ID()
	}
	return err
}

// countRows returns the number of the query's rows.
func (p *plan) countRows(ctx context.Context, x *call) (n int, err error) {
	r := base.Request{Text: x.comments.around(p.count), Args: x.args[:p.Insert.SelectArgs], User: p.Insert.SelectArgs, Rows: true}
	switch {
	case x.stmt != nil && x.stmt.count.IsZero():
		return 0, &mysql.MySQLError{Number: sqlerr.WrongCTEColumns, Message: "the query has another number of columns"}
	case x.stmt != nil:
		r.Stmt = &x.stmt.count
	case len(r.Args) > 0 && x.comments == (comments{}):
		r.How = p.how
	}
	x.session.LogOwn(ctx, p.count, p.key.mode, p.key.charset)
	counted, err := x.base.Do(ctx, &r)
	if err == nil {
		err = x.base.ReadRows(counted.Rows, func(row []driver.Value) {
			if len(row) == 1 {
				n, _ = strconv.Atoi(session.Text(row[0]))
			}
		})
	}
	if err = cmp.Or(err, x.session.SetTransactionAgain(ctx)); err == nil && (n < 0 || n > maxRows) {
		err = p.refuseSelect(fmt.Sprintf("the query returns %d rows, and at most %d can get keys at once; insert them in parts", n, maxRows), nil)
	}
	return n, err
}

// maxRows limits the memory for keys, which have 8 bytes.
const maxRows = 50_000_000

// isOtherWidth reports whether an error means that a query has another number of columns than the INSERT.
func isOtherWidth(err error) bool {
	return sqlerr.Is(err, sqlerr.WrongViewList, sqlerr.WrongCTEColumns)
}

// uncountedError is the error for rows that can't be counted.
type uncountedError struct{ err error }

func (of *uncountedError) Error() string { return of.err.Error() }
func (of *uncountedError) Unwrap() error { return of.err }

// uncounted returns what follows if the rows can't be counted. The error is the server's for the statement:
// with a key that always fails, so that no row is inserted.
func (p *plan) uncounted(ctx context.Context, x *call, sent *outcome.Sent, cause error) (r base.Reply, next followUp, err error) {
	if session.IsFatal(ctx, cause) || !errors.As(cause, new(*mysql.MySQLError)) {
		return r, done, cause
	}
	var request base.Request
	if !isOtherWidth(cause) {
		err = p.bind(ctx, x, sent, &request)
	} else if len(p.columns) > 0 && p.columnsChanged(ctx, &x.session) {
		return r, replan, cause
	} else {
		err = p.unprepared(ctx, x, p.key.text, x.args, &request) // the server refuses it: error 1136
	}
	if err != nil {
		return r, done, err
	}
	request.Rows = false
	if r, err = p.do(ctx, x, &request, sent); err == nil { // there was no row
		p.conclude(ctx, x, sent, outcome.Report{Failed: true})
		r.Rows = base.NoRows{}
		return r, done, nil
	}
	if isOutOfKeys(err) || !errors.As(err, new(*mysql.MySQLError)) {
		err = cause // or the server has ended the connection
	}
	return p.failed(ctx, x, sent, &request, err)
}

// unprepared sets the request to a text that isn't prepared. For a prepared statement of the program it is
// prepared, unless the session isn't the same as when the program prepared it.
func (p *plan) unprepared(ctx context.Context, x *call, text string, args []driver.NamedValue, r *base.Request) (err error) {
	*r = base.Request{Text: x.comments.around(text), Args: args, User: len(x.args), Rows: x.rows && p.returnsRows}
	if x.stmt != nil {
		r.How, err = base.Prepared, x.stmt.sameSession(ctx)
	}
	return err
}

// lastBetween returns LAST_INSERT_ID(), which must not be between the keys. For keys that aren't integers
// it must be 0.
func lastBetween(ctx context.Context, s *session.Session, keys *rewrite.Keys) (uint64, error) {
	last := s.LastID().Value()
	low, high, ok := rangeOf(keys)
	if ok && (last < low || last > high) || !ok && last == 0 {
		return last, nil
	}
	return 0, s.ClearLastID(ctx)
}

// rangeOf returns the smallest and the largest key. ok is false if they aren't integers.
func rangeOf(keys *rewrite.Keys) (low, high uint64, ok bool) {
	if keys.Ints == nil {
		return 0, 0, false
	}
	low = math.MaxUint64
	for _, key := range keys.Ints {
		low, high = min(low, uint64(key)), max(high, uint64(key))
	}
	return low, high, low > 0
}

// refuseSelect returns the error for a query that can't get keys. err may be nil.
func (p *plan) refuseSelect(message string, err error) error {
	return refuse(ReasonUnsupported, StatementError{Table: p.filler.Name(), Message: "INSERT … SELECT: " + message, Err: err})
}

// isOutOfKeys reports whether the expression that hands out the keys caused an error.
func isOutOfKeys(err error) bool {
	return sqlerr.Is(err, sqlerr.OutOfRange) && strings.Contains(err.Error(), "last_insert_id(1)")
}

// explainRefusal completes an error about an INSERT … SELECT.
func (p *plan) explainRefusal(ctx context.Context, x *call, err error) error {
	switch {
	case p.Insert.SelectKey == "":
	case sqlerr.Is(err, sqlerr.FunctionRefused) && x.session.RefusesLastID(ctx):
		return p.refuseSelect("MySQL Router refuses LAST_INSERT_ID(), with which the server counts the keys, as long as it shares connections; "+
			"read the rows and insert them with VALUES, or connect to a router without connection_sharing", err)
	case isOutOfKeys(err):
		return fmt.Errorf("shardkey: table %s: the query of an INSERT … SELECT returned more rows than it had a moment before, "+
			"or a view or function in it changes LAST_INSERT_ID(); try again: %w", p.filler.Name(), err)
	}
	return err
}

// explainedRows explain an error about the key, which the server may return behind rows.
type explainedRows struct {
	*base.Rows
	plan *plan
}

func (rows explainedRows) Next(dest []driver.Value) error {
	return rows.plan.explainKey(rows.Rows.Next(dest))
}
