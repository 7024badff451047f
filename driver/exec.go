package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/driver/internal/facts"
	"github.com/shardkey/shardkey/driver/internal/outcome"
	"github.com/shardkey/shardkey/internal/columntype"
	"github.com/shardkey/shardkey/internal/sqltoken"
)

// call is one execution of a statement that the program asked for.
type call struct {
	*conn
	stmt     *stmt // the program's prepared statement; nil: the query is sent
	comments comments
	args     []driver.NamedValue
	out      *keysList // receives the keys for the caller; may be nil
	rows     bool      // the caller reads rows
	repeated bool      // the connection executes the query often
}

// exec executes the plan: it makes the keys, sends the statement with them, and concludes from the server's
// report. The keys for the caller go to x.out.
//
// If next isn't done, nothing was executed, and the statement may have to be planned again. The
// error is driver.ErrSkip if the number of arguments is wrong. database/sql then prepares the
// statement and reports that.
func (p *plan) exec(ctx context.Context, x *call) (r base.Reply, next followUp, err error) {
	if !p.rules.generators.Acquire() {
		return r, replan, errRuleClosed
	}
	defer p.rules.generators.Release()
	if len(x.args) != p.NumArgs {
		r, err = p.execUnbound(ctx, x)
		return r, done, err
	}
	var sent outcome.Sent
	if err = p.makeKeys(ctx, x, &sent); err != nil {
		return p.unkeyed(ctx, x, &sent, err)
	}
	var request base.Request
	if err = p.bind(ctx, x, &sent, &request); err != nil {
		return r, done, err
	}
	if r, err = p.do(ctx, x, &request, &sent); err != nil {
		return p.failed(ctx, x, &sent, &request, err)
	}
	return p.concluded(ctx, x, &sent, r), done, nil
}

// execUnbound is exec for a wrong number of arguments.
func (p *plan) execUnbound(ctx context.Context, x *call) (base.Reply, error) {
	switch {
	case x.stmt != nil:
		return base.Reply{}, base.ArgCountError(p.NumArgs, len(x.args))
	case len(x.args) == 0: // the server reports a syntax error
		return x.base.Do(ctx, &base.Request{Text: x.comments.around(p.key.text), Rows: x.rows})
	}
	return base.Reply{}, driver.ErrSkip
}

// makeKeys makes the keys, and prepares the session for the statement.
func (p *plan) makeKeys(ctx context.Context, x *call, sent *outcome.Sent) error {
	in := p.Insert
	if in.UpdatesFixed { // a sharding column, perhaps to a value of another table
		if err := p.filler.GuardUpdate(ctx, &x.session, x.args); err != nil {
			return err
		}
	}
	switch {
	case in.Invalid:
		p.describeSent(x, unasked, sent)
		return p.ready(ctx, x, unasked)
	case p.count != "":
		return p.keysOfQuery(ctx, x, sent)
	case in.SelectKey != "":
		return p.keysInQuery(ctx, x, sent)
	}
	return p.keysOfRows(ctx, x, sent)
}

// unkeyed returns what follows if the keys can't be made.
func (p *plan) unkeyed(ctx context.Context, x *call, sent *outcome.Sent, err error) (base.Reply, followUp, error) {
	if err == errVersioned {
		return base.Reply{}, replan, err
	}
	if uncounted, ok := err.(*uncountedError); ok {
		return p.uncounted(ctx, x, sent, uncounted.err)
	}
	return base.Reply{}, done, p.explainRefusal(ctx, x, err)
}

// unasked stands for the key column of an INSERT whose keys don't depend on it.
var unasked = &facts.Column{Type: columntype.Parse("")}

// keysOfRows makes the keys for rows of values.
func (p *plan) keysOfRows(ctx context.Context, x *call, sent *outcome.Sent) error {
	s, keys := &x.session, &sent.Keys
	column, err := s.KeyColumn(ctx, p.filler.Insert)
	if err != nil {
		return err
	}
	if column.Versioned && p.Insert.ReportsExistingKey {
		p.stopReporting(ctx, errVersioned)
		return errVersioned
	}
	if column, err = p.filler.Fill(ctx, s, column, x.args, keys, &x.key, x.out == nil); err != nil {
		return err
	}
	p.describeSent(x, column, sent)
	sent.Plain = p.single && column.Plain && len(keys.Ints) == 1 && keys.Ints[0] >= 0
	if n := keys.Len(); n > 0 && p.rules.keyHook != nil {
		if err := p.rules.callKeyHook(ctx, p.table.Rule, n, keys); err != nil {
			return err
		}
	}
	return p.ready(ctx, x, column)
}

// describeSent completes what is sent, which has its keys. LAST_INSERT_ID(key) is unsigned, so it isn't
// written for a negative key, nor if a trigger would read it too early.
func (p *plan) describeSent(x *call, column *facts.Column, sent *outcome.Sent) {
	sent.Insert, sent.Column = p.filler.Insert, column
	sent.Keys.Unreported = sent.ReportsFirstKey && (column.ReadsLastID || outcome.InsertID(sent.Keys.At(0)) < 0)
	sent.CallsFunctions, sent.WantsKeys = p.callsFunctions, x.out != nil
}

// ready prepares the session for a statement that may read or change LAST_INSERT_ID().
func (p *plan) ready(ctx context.Context, x *call, column *facts.Column) error {
	in := p.Insert
	if in.ReportsFirstKey || in.ReportsExistingKey || column.ReadsLastID {
		if err := x.session.KnowLastID(ctx); err != nil {
			return err
		}
	}
	if in.ReadsLastID || column.ReadsLastID {
		if err := x.session.SyncLastID(ctx); err != nil {
			return err
		}
	}
	return x.session.AskCacheLimit(ctx)
}

// bind sets the request to the statement with the keys. A statement without arguments gets its keys as
// literals, which takes one message to the server. In a statement with arguments the keys are bound, since
// literals would defeat the server's cache of prepared statements. If there are too many placeholders, the
// keys are literals.
func (p *plan) bind(ctx context.Context, x *call, sent *outcome.Sent, r *base.Request) error {
	literal := x.stmt == nil && (len(x.args) == 0 || p.count == "" && len(x.args)+p.added > base.MaxPlaceholders)
	text, args, err := p.Bind(x.buffer[:0], x.args, &sent.Keys, literal)
	if err != nil {
		return p.explainBind(err)
	}
	if x.isCopy(args) {
		isText := sent.Keys.Values != nil && p.count == ""
		if err = x.number(args, isText); err != nil {
			return err
		}
	}
	isSame := p.count == "" || text == p.Query() // for all executions
	if x.stmt != nil && !isSame {
		return p.unprepared(ctx, x, text, args, r)
	}
	r.Text, r.Args, r.User, r.Rows = x.comments.around(text), args, len(x.args), x.rows && p.returnsRows
	switch {
	case x.stmt != nil:
		r.Stmt, err = x.stmt.form(ctx, text, sent.Keys.Unreported, args)
	case !literal && isSame && x.comments == (comments{}):
		r.How, r.Repeated = p.how, x.repeated && p.prefersPrepared && x.rows == p.Insert.ReturnsKey
	}
	return err
}

// isCopy reports whether arguments have keys, so that they aren't the program's own.
func (x *call) isCopy(args []driver.NamedValue) bool {
	return len(args) > 0 && (len(x.args) == 0 || &args[0] != &x.args[0])
}

// explainBind completes the error for keys that can't be added.
func (p *plan) explainBind(err error) error {
	if p.count != "" {
		return p.refuseSelect(plainText(err), err)
	}
	return err
}

// number numbers the arguments to send. If the keys are text, it converts them as the underlying driver
// does; an integer needs no conversion.
func (c *conn) number(args []driver.NamedValue, isText bool) error {
	for i := range args {
		isKey := args[i].Ordinal < 0
		args[i].Ordinal = i + 1
		if isKey && isText {
			if err := c.base.Convert(&args[i]); err != nil {
				return fmt.Errorf("shardkey: cannot bind a generated key: %w", err)
			}
		}
	}
	return nil
}

// do sends the statement.
func (p *plan) do(ctx context.Context, x *call, request *base.Request, sent *outcome.Sent) (r base.Reply, err error) {
	if !x.logs(ctx) {
		r, err = x.base.Do(ctx, request)
	} else {
		start := time.Now()
		r, err = x.base.Do(ctx, request)
		p.logSent(ctx, request, sent, time.Since(start), err)
	}
	x.executed = x.executed || err == nil || !errors.Is(err, driver.ErrBadConn)
	const most = 4096
	if x.isCopy(request.Args) && x.overMySQL && cap(request.Args) <= most {
		clear(request.Args)
		x.buffer = request.Args // for the next execution
	}
	if err == nil && r.Result == nil && !request.Rows {
		err = base.ErrNoAnswer
	}
	return r, err
}

// logs reports whether executions are logged. The connection asks the logger for each 16th.
func (c *conn) logs(ctx context.Context) bool {
	if c.executions%16 == 0 {
		c.logged = c.connector.logger.Enabled(ctx, slog.LevelDebug)
	}
	c.executions++
	return c.logged
}

// maxLogged is the maximum length of a logged statement, in bytes.
const maxLogged = 4 << 10

func (p *plan) logSent(ctx context.Context, r *base.Request, sent *outcome.Sent, took time.Duration, err error) {
	attrs := []any{"statement", sqltoken.WithoutLiterals(r.Text, p.key.mode, p.key.charset, maxLogged), "args", len(r.Args),
		"keys", sent.Keys.Len(), "table", p.filler.Name(), "generator", p.table.Rule.GeneratorName, "took", took}
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
