package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/driver/internal/facts"
	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/columntype"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
)

// execute executes a plan: it generates the keys, sends the statement and determines the result. If
// stmt is nil, it sends the query itself. The keys for the caller go to out.
//
// If next isn't done, nothing was executed, and the statement may have to be planned again. The
// error is driver.ErrSkip if the number of arguments is wrong. database/sql then prepares the
// statement and reports that.
func (c *conn) execute(
	ctx context.Context, of planned, stmt *stmt, out *keysList, args []driver.NamedValue, rows bool,
) (r base.Reply, next followUp, err error) {
	p := of.plan
	if !p.rules.generators.Acquire() {
		return r, replan, errRuleClosed
	}
	defer p.rules.generators.Release()
	if len(args) != p.NumArgs {
		r, err = of.executeUnbound(ctx, &c.session, stmt, args, rows)
		return r, done, err
	}
	if p.steps&(checksUpdates|selectsRows) != 0 {
		if p.steps&checksUpdates != 0 {
			if err := p.target.GuardUpdate(ctx, &c.session, args); err != nil {
				return r, done, err
			}
		}
		if p.steps&selectsRows != 0 {
			r, next, err := of.executeSelect(ctx, &c.session, stmt, out, args, rows)
			c.executed = c.executed || !errors.Is(err, driver.ErrBadConn)
			return r, next, err
		}
	}
	var e execution // a composite literal would be copied
	e.plan, e.comments, e.repeated, e.session, e.out, e.user = p, of.comments, of.repeated, &c.session, out, args
	e.first.one = &c.key
	e.result, e.bound = c.newResult()
	if err := e.prepare(ctx, stmt); err == errVersioned {
		p.unguard(ctx, err)
		return r, replan, err
	} else if err != nil {
		return r, done, err
	}
	if !c.logs(ctx) {
		r, next, err = e.send(ctx, rows)
	} else {
		start := time.Now()
		r, next, err = e.send(ctx, rows)
		logSent(ctx, p, &e.sent, e.first.keys.Len(), time.Since(start), err)
	}
	c.executed = c.executed || !errors.Is(err, driver.ErrBadConn)
	c.reuse(e.bound)
	return r, next, err
}

// logs reports whether executions are logged. The connection asks the logger for each 16th.
func (c *conn) logs(ctx context.Context) bool {
	if c.executions%16 == 0 {
		c.logged = c.connector.logger.Enabled(ctx, slog.LevelDebug)
	}
	c.executions++
	return c.logged
}

// executeUnbound is execute for a wrong number of arguments.
func (of planned) executeUnbound(ctx context.Context, s *session.Session, stmt *stmt, args []driver.NamedValue, rows bool) (base.Reply, error) {
	switch {
	case stmt != nil:
		return base.Reply{}, base.ArgCountError(of.plan.NumArgs, len(args))
	case len(args) == 0: // the server reports a syntax error
		return s.Base.Do(ctx, base.Request{Text: of.comments.around(of.plan.key.text), Rows: rows})
	}
	return base.Reply{}, driver.ErrSkip
}

// execution is one execution of a plan with rows of values. It lives on the stack until its result
// needs it.
type execution struct {
	plan     *plan
	comments comments
	repeated bool // the connection executes the query often
	session  *session.Session
	out      *keysList // receives the keys for the caller; may be nil
	user     []driver.NamedValue
	bound    []driver.NamedValue // a buffer for arguments with keys
	result   *result
	sent     base.Request

	first insertion
}

// keep returns a copy on the heap, without the connection's buffers.
func (e *execution) keep() *execution {
	kept := *e
	kept.bound, kept.sent = nil, base.Request{}
	if k := &kept.first; len(k.keys.Ints) == 1 {
		k.keys.Ints = slices.Clone(k.keys.Ints)
	}
	return &kept
}

// insertion is one INSERT of the statement, in one execution.
type insertion struct {
	*plannedInsert
	// column is what is known of the key column. It doesn't change until the result is known.
	column *facts.Column
	keys   rewrite.Keys // the generated keys, and which rows with a bound key asked for one
	one    *[1]int64    // a buffer for a single key
	// carries: the statement passes the first generated key to LAST_INSERT_ID().
	carries bool
	guarded bool // the server reports the key of a row that the upsert matched
	plain   bool // see isPlain
}

// unasked stands for the key column of an INSERT that the server refuses.
var unasked = &facts.Column{Type: columntype.Parse("")}

// send sends the statement and determines its result.
func (e *execution) send(ctx context.Context, rows bool) (r base.Reply, next followUp, err error) {
	e.sent.Rows = rows
	e.sent.Repeated = e.repeated && e.prefersPrepared(rows)
	r, err = e.session.Base.Do(ctx, e.sent)
	switch {
	case err != nil:
		next, err = e.failed(ctx, err)
		return base.Reply{}, next, err
	case rows:
		r.Rows = e.settleRows(r.Rows)
	case r.Result == nil:
		next, err = e.failed(ctx, base.ErrNoAnswer)
		return base.Reply{}, next, err
	default:
		r.Result = e.settle(ctx, r.Result)
	}
	return r, done, nil
}

// prefersPrepared reports whether to prepare the statement on a connection that interpolates; see
// [base.Request].Repeated. go-sql-driver returns some values of rows with another type, for example
// FLOAT, but not keys. Whoever sets interpolateParams for another engine avoids prepared statements.
func (e *execution) prefersPrepared(rows bool) bool {
	return e.session.Base.Interpolates() && rows == e.plan.Insert.ReturnsKey &&
		e.session.ReportsInsertIDs() && e.plan.given().Plain
}

// prepare generates the keys, prepares the session for them and determines the query to send.
func (e *execution) prepare(ctx context.Context, stmt *stmt) error {
	e.first.column = unasked
	if e.first.plannedInsert = &e.plan.target; !e.first.Insert.Invalid {
		if err := e.generate(ctx, &e.first); err != nil {
			return err
		}
	}
	if !e.first.plain || !e.session.LastID().Known() || e.plan.steps&syncsLastID != 0 {
		if err := e.prepareLastID(ctx); err != nil {
			return err
		}
	}
	if e.session.Base.NeedsLimit() {
		if err := e.session.AskCacheLimit(ctx); err != nil {
			return err
		}
	}
	return e.bind(ctx, stmt)
}

// bind determines the query and arguments to send. A statement without arguments gets its keys as
// literals, which takes one message to the server. In a statement with arguments the keys are
// bound, since literals would defeat the server's cache of prepared statements. If there are too
// many placeholders, the keys are literals.
func (e *execution) bind(ctx context.Context, stmt *stmt) (err error) {
	k := &e.first
	if k.plain {
		k.carries = k.steps&reportsKey != 0
	} else {
		k.keys.Unreported = !e.carry()
	}
	sent := &e.sent
	// All keys have literals; see notText.
	literal := stmt == nil && (len(e.user) == 0 || len(e.user)+e.plan.added > base.MaxPlaceholders)
	query, args, err := rewrite.Bind(e.plan.Plan, e.bound, e.user, &k.keys, literal, e.argument)
	if err != nil {
		return err
	}
	sent.Args, sent.User = args, len(e.user)
	if len(args) > len(e.user) || slices.Contains(k.keys.Asked, true) {
		e.bound = args
		for i := range args {
			args[i].Ordinal = i + 1
		}
	}
	if stmt != nil {
		sent.Stmt, err = stmt.form(ctx, query, k.keys.Unreported, args)
		return err
	}
	if sent.Text = e.comments.around(query); !literal && e.comments == (comments{}) {
		sent.How = e.plan.how
	}
	return nil
}

// argument returns a generated key as an argument.
func (e *execution) argument(key any) (driver.NamedValue, error) {
	if _, isInt := key.(int64); isInt {
		return driver.NamedValue{Value: key}, nil // it needs no conversion
	}
	arg := driver.NamedValue{Value: key}
	if err := e.session.Base.Convert(&arg); err != nil {
		return arg, fmt.Errorf("shardkey: cannot bind a generated key: %w", err)
	}
	return arg, nil
}

// maxLogged is the maximum length of a logged statement, in bytes.
const maxLogged = 4 << 10

func logSent(ctx context.Context, p *plan, sent *base.Request, keys int, took time.Duration, err error) {
	text := sent.Text
	if text == "" {
		text = p.Query() // a prepared statement
	}
	attrs := []any{"statement", sqltoken.WithoutLiterals(text, p.key.mode, p.key.charset, maxLogged), "args", len(sent.Args), "keys", keys,
		"table", p.target.Name(), "generator", p.target.table.Rule.GeneratorName, "took", took}
	if err != nil {
		attrs = append(attrs, "error_type", errorType(err))
	}
	p.rules.logger.DebugContext(ctx, "shardkey: statement sent", attrs...)
}

// errorType returns an error's type and the server's error number. The error's message may quote a
// value.
func errorType(err error) string {
	if server, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return fmt.Sprintf("%T %d", server, server.Number)
	}
	return fmt.Sprintf("%T", err)
}

// generate generates the keys of an insert's rows and checks them.
func (e *execution) generate(ctx context.Context, k *insertion) (err error) {
	if k.column, err = e.session.KeyColumn(ctx, k.Insert); err != nil {
		return err
	}
	if k.column.Versioned && k.Insert.ReportsExistingKey {
		return errVersioned
	}
	if k.keys, k.column, err = k.Fill(ctx, e.session, k.column, e.user, k.one, e.out == nil); err != nil {
		return err
	}
	k.plain = k.isPlain()
	return e.plan.rules.callKeyHook(ctx, k.table.Rule, k.keys.Len(), &k.keys)
}

// isPlain reports whether the insert has one row with a generated key that fits the column. It
// returns false if the statement or a trigger can change the key.
func (k *insertion) isPlain() bool {
	return k.steps&settlesRows == 0 && k.column.Plain && len(k.keys.Ints) == 1 && k.keys.Ints[0] >= 0
}
