package driver

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/driver/internal/facts"
	"github.com/shardkey/shardkey/driver/internal/outcome"
	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/sqlerr"
	"github.com/shardkey/shardkey/rewrite"
)

// selection is one execution of an INSERT … SELECT that may insert several rows. The server runs it. A
// query before it counts the rows, and an expression in the select list hands out their keys; see
// [rewrite.Plan.RewriteSelect].
type selection struct {
	*plannedInsert
	plan     *plan
	comments comments
	session  *session.Session
	by       *stmt // the program's prepared statement; nil if it has none
	out      *keysList
	user     []driver.NamedValue

	// column is what is known of the key column. It doesn't change until the result is known.
	column *facts.Column

	n    int          // the number of rows that the query had
	keys rewrite.Keys // for n rows, and for more if the query has more by now
	sent base.Request
}

// executeSelect executes an INSERT … SELECT.
func (of planned) executeSelect(
	ctx context.Context, s *session.Session, by *stmt, out *keysList, args []driver.NamedValue, rows bool,
) (r base.Reply, next followUp, err error) {
	p := of.plan
	x := &selection{plannedInsert: &p.target, plan: p, comments: of.comments, session: s, by: by, out: out, user: args}
	if !x.Insert.Returning {
		rows = false
	}
	start := time.Now()
	if p.count == "" {
		r, err = x.sendKept(ctx, rows)
	} else {
		r, next, err = x.execute(ctx, rows)
	}
	if sqlerr.Is(err, sqlerr.FunctionRefused) && s.RefusesLastID(ctx) {
		err = x.refuse("MySQL Router refuses LAST_INSERT_ID(), with which the server counts the keys, as long as it shares connections; "+
			"read the rows and insert them with VALUES, or connect to a router without connection_sharing", err)
	}
	if p.rules.logger.Enabled(ctx, slog.LevelDebug) {
		logSent(ctx, p, &x.sent, x.keys.Len(), time.Since(start), err)
	}
	if r.Rows == nil && err == nil {
		r.Rows = base.NoRows{}
	}
	return r, next, err
}

// sendKept sends a statement whose query has all keys.
func (x *selection) sendKept(ctx context.Context, rows bool) (base.Reply, error) {
	var err error
	if x.Insert.SelectKey != rewrite.Literal {
		if x.column, err = x.session.KeyColumn(ctx, x.Insert); err != nil {
			return base.Reply{}, err
		}
	}
	if err := x.session.AskCacheLimit(ctx); err != nil {
		return base.Reply{}, err
	}
	use, err := x.session.BeforePass(ctx, x.session.Client().Scan(x.plan.key.text), nil, true)
	if err != nil {
		return base.Reply{}, err
	}
	r, err := x.send(ctx, x.plan.Query(), x.user, rows)
	if isOtherWidth(err) {
		r, err = x.sendAgain(ctx, x.plan.key.text, x.user, rows) // the server refuses it: error 1136
	}
	x.session.AfterPass(ctx, use, nil, nil, err)
	if err == nil && r.Rows != nil {
		r.Rows = explainedRows{base.OnClose(r.Rows, nil), x.plan}
	}
	if err != nil || r.Result == nil {
		return r, x.plan.explainKey(err)
	}
	if x.Insert.SelectKey != rewrite.Literal {
		done := &result{Result: r.Result} // the keys aren't reported
		if x.column.OtherHasAutoIncrement {
			done.id, _ = r.Result.LastInsertId()
		}
		r.Result = done
	}
	return r, nil
}

// explainedRows explain an error about the key, which the server may return behind rows.
type explainedRows struct {
	*base.Rows
	plan *plan
}

func (r explainedRows) Next(dest []driver.Value) error { return r.plan.explainKey(r.Rows.Next(dest)) }

// execute counts the rows, generates the keys and sends the statement.
func (x *selection) execute(ctx context.Context, rows bool) (r base.Reply, next followUp, err error) {
	if err := x.prepare(ctx); err != nil {
		return r, done, err
	}
	if x.n, err = x.count(ctx); err != nil {
		return x.uncounted(ctx, err)
	}
	if err := x.generate(ctx); err != nil {
		return r, done, err
	}
	last, err := x.last(ctx)
	if err != nil {
		return r, done, err
	}
	r, err = x.insert(ctx, last, rows)
	switch {
	case err == nil && rows:
		r.Rows = base.OnClose(r.Rows, func(read base.Reading, err error) {
			if err != nil {
				_ = x.failed(context.Background(), err)
				return
			}
			x.settle(context.Background(), x.returned(read)) // the execution's context may have ended
		})
		return r, done, nil
	case err == nil && r.Result == nil:
		err = base.ErrNoAnswer
	}
	if err != nil {
		return x.refused(ctx, err)
	}
	report := reportOf(r.Result)
	if report.InsertID, _ = r.Result.LastInsertId(); x.Insert.Returning {
		report = returned
	}
	return base.Reply{Result: &result{Result: r.Result, id: x.settle(ctx, report)}}, done, nil
}

// prepare learns the key column, and LAST_INSERT_ID(), which the keys count with.
func (x *selection) prepare(ctx context.Context) (err error) {
	if x.column, err = x.session.KeyColumn(ctx, x.Insert); err != nil {
		return err
	}
	if err := x.session.AskCacheLimit(ctx); err != nil {
		return err
	}
	if err := x.session.KnowLastID(ctx); err != nil {
		return err
	}
	return x.session.SyncLastID(ctx)
}

// count returns the number of the query's rows.
func (x *selection) count(ctx context.Context) (n int, err error) {
	if x.by != nil && x.by.count.IsZero() {
		return 0, &mysql.MySQLError{Number: sqlerr.WrongCTEColumns, Message: "the query has another number of columns"}
	}
	x.session.LogOwn(ctx, x.plan.count)
	r, err := x.send(ctx, x.plan.count, x.user[:x.Insert.SelectArgs], true)
	if err == nil {
		err = x.session.Base.ReadRows(r.Rows, func(row []driver.Value) {
			if len(row) == 1 {
				n, _ = strconv.Atoi(session.Text(row[0]))
			}
		})
	}
	if err = cmp.Or(err, x.session.SetTransactionAgain(ctx)); err == nil && (n < 0 || n > maxRows) {
		err = x.refuse(fmt.Sprintf("the query returns %d rows, and at most %d can get keys at once; insert them in parts", n, maxRows), nil)
	}
	return n, err
}

// maxRows limits the memory for keys, which have 8 bytes.
const maxRows = 50_000_000

// isOtherWidth reports whether an error means that a query has another number of columns than the INSERT.
func isOtherWidth(err error) bool {
	return sqlerr.Is(err, sqlerr.WrongViewList, sqlerr.WrongCTEColumns)
}

// uncounted returns the server's error for a statement whose rows can't be counted. It is that of the
// statement with a key that always fails, so that no row is inserted.
func (x *selection) uncounted(ctx context.Context, cause error) (r base.Reply, next followUp, err error) {
	if session.IsFatal(ctx, cause) || !errors.As(cause, new(*mysql.MySQLError)) {
		return r, done, cause
	}
	if isOtherWidth(cause) {
		if len(x.plan.columns) > 0 && x.plan.columnsChanged(ctx, x.session) {
			return r, replan, cause
		}
		r, err = x.sendAgain(ctx, x.plan.key.text, x.user, false) // the server refuses it: error 1136
	} else {
		text, args, bad := x.statement(0)
		if bad != nil {
			return r, done, bad
		}
		r, err = x.sendAgain(ctx, text, args, false)
	}
	if err != nil && (x.isOutOfKeys(err) || !errors.As(err, new(*mysql.MySQLError))) {
		err = cause // or the server has ended the connection
	}
	if err == nil { // there was no row
		x.conclude(ctx, outcome.Report{Failed: true})
		return r, done, nil
	}
	return x.refused(ctx, err)
}

// refused returns what follows the server's refusal of the statement. It is planned again only if the
// server also refuses to prepare it, so that it can't have executed any part of it.
func (x *selection) refused(ctx context.Context, err error) (base.Reply, followUp, error) {
	err = x.failed(ctx, err)
	if x.plan.remedy(err) == replanColumns {
		if x.session.Base.RefusesToPrepare(ctx, x.sent.Text, err) {
			return base.Reply{}, replanColumns, err
		}
		x.plan.columnsChanged(ctx, x.session) // for the next execution
	}
	return base.Reply{}, done, x.plan.explainKey(err)
}

// returned returns the report about a statement whose rows the program has read.
func (x *selection) returned(read base.Reading) outcome.Report {
	if !read.All || read.Rows > 0 && (x.Insert.OnDuplicate || x.Insert.Replace) {
		return returned
	}
	return outcome.Report{Affected: read.Rows}
}

// generate generates the keys.
func (x *selection) generate(ctx context.Context) (err error) {
	if x.keys, x.column, err = x.FillQuery(ctx, x.session, x.column, x.n, x.out == nil); err != nil {
		return err
	}
	return x.plan.rules.callKeyHook(ctx, x.table.Rule, x.n, &x.keys)
}

// last returns LAST_INSERT_ID(), which must not be between the keys. For keys that aren't integers it
// must be 0.
func (x *selection) last(ctx context.Context) (uint64, error) {
	last := x.session.LastID().Value()
	low, high, ok := rangeOf(&x.keys)
	if ok && (last < low || last > high) || !ok && last == 0 {
		return last, nil
	}
	return 0, x.session.ClearLastID(ctx)
}

// rangeOf returns the smallest and the largest key. ok is false if they aren't integers.
func rangeOf(keys *rewrite.Keys) (low, high uint64, ok bool) {
	low = math.MaxUint64
	for i := range keys.Len() {
		id := uint64(outcome.InsertID(keys.At(i)))
		low, high = min(low, id), max(high, id)
	}
	return low, high, low > 0
}

// insert sends the statement with its keys.
func (x *selection) insert(ctx context.Context, last uint64, rows bool) (base.Reply, error) {
	text, args, err := x.statement(last)
	if err != nil {
		return base.Reply{}, err
	}
	return x.send(ctx, text, args, rows)
}

// statement returns the statement with its keys.
func (x *selection) statement(last uint64) (string, []driver.NamedValue, error) {
	x.keys.Counted, x.keys.LastInsertID = max(x.n, 1), last
	text, args, err := rewrite.Bind(x.plan.Plan, nil, x.user, &x.keys, len(x.user) == 0 && x.by == nil,
		func(value any) (driver.NamedValue, error) { return driver.NamedValue{Value: value}, nil })
	if err != nil {
		return "", nil, x.refuse(plainText(err), err)
	}
	for i := range args {
		args[i].Ordinal = i + 1
	}
	return text, args, nil
}

// send sends the query that counts the rows, or the statement. It executes what the program has
// prepared, or a cached statement, if the text is the same for all executions.
func (x *selection) send(ctx context.Context, text string, args []driver.NamedValue, rows bool) (base.Reply, error) {
	isSame := text == x.plan.count || text == x.plan.Query()
	switch {
	case x.by != nil && !isSame:
		return x.sendAgain(ctx, text, args, rows)
	case x.by != nil && text == x.plan.count:
		x.request(text, args, rows).Stmt = &x.by.count
	case x.by != nil:
		stmt, err := x.by.form(ctx, text, false, args)
		if err != nil {
			return base.Reply{}, err
		}
		x.request(text, args, rows).Stmt = stmt
	default:
		r := x.request(text, args, rows)
		if len(args) > 0 && isSame && x.comments == (comments{}) {
			r.How = x.plan.how
		}
	}
	return x.session.Base.Do(ctx, x.sent)
}

// sendAgain sends a text that isn't prepared. For a prepared statement of the program it is prepared,
// unless the session isn't the same as when the program prepared it.
func (x *selection) sendAgain(ctx context.Context, text string, args []driver.NamedValue, rows bool) (base.Reply, error) {
	r := x.request(text, args, rows)
	if x.by != nil {
		if err := x.by.sameSession(ctx); err != nil {
			return base.Reply{}, err
		}
		r.How = base.Prepared
	}
	return x.session.Base.Do(ctx, x.sent)
}

// request sets what is sent next.
func (x *selection) request(text string, args []driver.NamedValue, rows bool) *base.Request {
	x.sent = base.Request{Text: x.comments.around(text), Args: args, User: min(len(args), len(x.user)), Rows: rows}
	return &x.sent
}

// refuse returns the error for a statement that can't get keys. err may be nil.
func (x *selection) refuse(message string, err error) error {
	return refuse(ReasonUnsupported, StatementError{Table: x.Name(), Message: "INSERT … SELECT: " + message, Err: err})
}

// isOutOfKeys reports whether the expression that hands out the keys caused an error.
func (x *selection) isOutOfKeys(err error) bool {
	return sqlerr.Is(err, sqlerr.OutOfRange) && strings.Contains(err.Error(), "last_insert_id(1)")
}

// failed updates the session after the statement failed. It explains an error of the expression that
// hands out the keys.
func (x *selection) failed(ctx context.Context, err error) error {
	x.session.FollowTransaction(x.plan.key.text, err)
	x.conclude(ctx, outcome.Report{Failed: true})
	x.reportDuplicate(ctx, x.plan.rules, x.session, &x.keys, err)
	if x.isOutOfKeys(err) {
		return fmt.Errorf("shardkey: table %s: the query of an INSERT … SELECT returned more rows than it had a moment before, "+
			"or a view or function in it changes LAST_INSERT_ID(); try again: %w", x.Name(), err)
	}
	return err
}

// settle determines which keys were inserted, and returns the insert ID.
func (x *selection) settle(ctx context.Context, report outcome.Report) int64 {
	x.session.TransactionBegan() // the statement may have begun one
	done := x.conclude(ctx, report)
	x.out.set(Keys{done.keys(), x.table.Rule.Column})
	return done.LastInsertID
}

func (x *selection) conclude(ctx context.Context, report outcome.Report) concluded {
	sent := outcome.Sent{Insert: x.Insert, Column: x.column, Keys: x.keys, Counted: x.n, WantsKeys: x.out != nil, Server: serverOf(x.session)}
	return concluded{sent, x.plannedInsert.conclude(ctx, x.session, x.plan.rules.logger, &sent, report)}
}
