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
	ctx context.Context, of planned, stmt *stmt, out *keysList, args []driver.NamedValue, want base.Want,
) (r base.Reply, next followUp, err error) {
	p := of.plan
	if !p.rules.generators.Acquire() {
		return r, replan, errRuleClosed
	}
	defer p.rules.generators.Release()
	if len(args) != p.NumArgs {
		r, err = of.executeUnbound(ctx, &c.session, stmt, args, want)
		return r, done, err
	}
	if p.steps&(checksUpdates|selectsRows) != 0 {
		if err := p.checkUpdate(ctx, &c.session, args); err != nil {
			return r, done, err
		}
		if p.steps&selectsRows != 0 {
			r, next, err := of.executeSelect(ctx, &c.session, stmt, out, args, want)
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
		r, next, err = e.send(ctx, want)
	} else {
		start := time.Now()
		r, next, err = e.send(ctx, want)
		logSent(ctx, p, &e.sent, e.first.keys.Len(), time.Since(start), err)
	}
	c.executed = c.executed || !errors.Is(err, driver.ErrBadConn)
	c.reuse(e.bound)
	return r, next, err
}

// logs reports whether executions are logged. The connection asks the logger for each 16th.
func (c *conn) logs(ctx context.Context) bool {
	if c.executions%16 == 0 {
		c.logged = c.connector.host.Logger.Enabled(ctx, slog.LevelDebug)
	}
	c.executions++
	return c.logged
}

// executeUnbound is execute for a wrong number of arguments.
func (of planned) executeUnbound(ctx context.Context, s *session.Session, stmt *stmt, args []driver.NamedValue, want base.Want) (base.Reply, error) {
	switch {
	case stmt != nil:
		return base.Reply{}, base.ArgCountError(of.plan.NumArgs, len(args))
	case len(args) == 0: // the server reports a syntax error
		return s.Base.Send(ctx, of.comments.around(of.plan.key.text), args, 0, want)
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
	sent     message

	first insertion
}

// keep returns a copy on the heap, without the connection's buffers.
func (e *execution) keep() *execution {
	kept := *e
	kept.bound, kept.sent = nil, message{}
	if k := &kept.first; len(k.keys.Ints) == 1 {
		k.keys.Ints = slices.Clone(k.keys.Ints)
	}
	return &kept
}

// insertion is one INSERT of the statement, in one execution.
type insertion struct {
	*plannedInsert
	// column is what is known of the key column. It doesn't change until the result is known.
	column    *facts.Column
	keys      rewrite.Keys // the generated keys, in the order of their rows
	generated []bool       // for each row with a bound key whether its key was generated; nil without such rows
	one       *[1]int64    // a buffer for a single key
	// carries: the statement passes the first generated key to LAST_INSERT_ID().
	carries bool
	guarded bool // the server reports the key of a row that the upsert matched
	plain   bool // see isPlain
}

// unasked stands for the key column of an INSERT that the server refuses.
var unasked = &facts.Column{Type: columntype.Parse("")}

// message is the query or prepared statement to send, with its arguments.
type message struct {
	stmt   *base.Stmt // nil: the query is sent
	text   string
	args   []driver.NamedValue
	added  int  // the number of generated keys in args
	cached bool // the underlying prepared statement is cached
}

// send sends the statement and determines its result.
func (e *execution) send(ctx context.Context, want base.Want) (r base.Reply, next followUp, err error) {
	switch sent := &e.sent; {
	case sent.stmt != nil:
		r, err = sent.stmt.Send(ctx, sent.args, want)
	case sent.cached:
		q := base.Cached{Text: sent.text, Added: sent.added, Reuse: e.plan.reuse, Repeated: e.prefersPrepared(want)}
		r, err = e.session.Base.SendCached(ctx, q, sent.args, want)
	default:
		r, err = e.session.Base.Send(ctx, sent.text, sent.args, sent.added, want)
	}
	switch {
	case err != nil:
		next, err = e.failed(ctx, err)
		return base.Reply{}, next, err
	case want == base.WantRows:
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
// [base.Conn.SendCached]. go-sql-driver returns some values of rows with another type, for example
// FLOAT, but not keys. Whoever sets interpolateParams for another engine avoids prepared statements.
func (e *execution) prefersPrepared(want base.Want) bool {
	return e.repeated && e.session.Base.Interpolates() && (want == base.WantRows) == e.plan.Insert.ReturnsKey &&
		e.session.ReportsInsertIDs() && e.plan.given().Plain
}

// prepare generates the keys, prepares the session for them and determines the query to send.
func (e *execution) prepare(ctx context.Context, stmt *stmt) error {
	e.first.column = unasked
	if e.first.plannedInsert = &e.plan.target; !e.first.in.Invalid {
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
	text, reports := e.plan.Plan, true
	if k := &e.first; k.plain {
		k.carries = k.steps&reportsKey != 0
	} else if !e.carry() {
		text, reports = text.WithoutReport(), false
	}
	sent := &e.sent
	literal := stmt == nil && (len(e.user) == 0 || len(e.user)+e.plan.added > base.MaxPlaceholders)
	if sent.args, err = e.bindArgs(!literal); err != nil {
		return err
	}
	sent.added = len(sent.args) - len(e.user)
	switch {
	case stmt != nil:
		sent.stmt, err = stmt.form(ctx, text, reports, sent.args)
		return err
	case literal:
		literals, _ := text.Literal(e.addedKeys()) // all keys have literals; see kindOf
		sent.text = e.comments.around(literals)
	default:
		sent.text, sent.cached = e.comments.around(text.Query()), e.plan.steps&isCacheable != 0 && e.comments == (comments{})
	}
	return nil
}

// addedKeys returns the keys for the literal statement. It leaves out keys that replace a user's
// argument.
func (e *execution) addedKeys() (added rewrite.Keys) {
	k := &e.first
	if k.generated == nil {
		return k.keys
	}
	next := 0
	for row, r := range k.in.Rows {
		if !k.isGenerated(row) {
			continue
		}
		if r.Key != rewrite.Argument {
			added.Values = append(added.Values, k.keys.At(next))
		}
		next++
	}
	return added
}

// bindArgs merges the keys into the user's arguments. Keys replace missing arguments and, if
// placeholders is set, are added for their placeholders.
func (e *execution) bindArgs(placeholders bool) ([]driver.NamedValue, error) {
	if placeholders = placeholders && e.plan.added > 0; !placeholders && !slices.Contains(e.first.generated, true) {
		return e.user, nil
	}
	args, copied := slices.Grow(e.bound, len(e.user)+e.plan.added), 0
	k, next := &e.first, 0
	var boxed boxedKeys
	for row := range k.in.Rows {
		if k.steps&countsRows != 0 && !k.isGenerated(row) {
			continue
		}
		r := &k.in.Rows[row]
		replaces := r.Key == rewrite.Argument
		if replaces || placeholders {
			key, err := e.keyArgument(k, &boxed, next)
			if err != nil {
				return nil, fmt.Errorf("shardkey: cannot bind a generated key: %w", err)
			}
			args = append(append(args, e.user[copied:r.Arg]...), driver.NamedValue{Value: key})
			copied = r.Arg
		}
		if replaces {
			copied++
		}
		next++
	}
	args = append(args, e.user[copied:]...)
	for i := range args {
		args[i].Ordinal = i + 1
	}
	e.bound = args
	return args, nil
}

// keyArgument returns generated key i of an insertion as an argument.
func (e *execution) keyArgument(k *insertion, boxed *boxedKeys, i int) (driver.Value, error) {
	if k.keys.Ints == nil {
		return e.convert(k.keys.Values[i])
	}
	return boxed.at(k.keys.Ints, i), nil // an int64 needs no conversion
}

// convert converts a generated key as an argument.
func (e *execution) convert(key any) (any, error) {
	arg := driver.NamedValue{Value: key}
	err := e.session.Base.Convert(&arg)
	return arg.Value, err
}

// maxLogged is the maximum length of a logged statement, in bytes.
const maxLogged = 4 << 10

func logSent(ctx context.Context, p *plan, sent *message, keys int, took time.Duration, err error) {
	text := sent.text
	if text == "" {
		text = p.Query() // a prepared statement
	}
	attrs := []any{"statement", sqltoken.WithoutLiterals(text, p.key.mode, p.key.charset, maxLogged), "args", len(sent.args), "keys", keys,
		"table", nameOf(p.Insert), "generator", p.target.table.rule.GeneratorName, "took", took}
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

// check counts the rows that need a key, and refuses rows that can't be inserted. If the keys have
// shard bits, genes are the rows that need a key.
func (e *execution) check(ctx context.Context, k *insertion) (n int, genes *geneRows, err error) {
	if n = k.rowCount; k.steps&countsRows != 0 {
		if n, err = e.countRowsToFill(ctx, k); err != nil {
			return n, nil, err
		}
	}
	if k.steps&guardsRows != 0 {
		if err := e.guard(ctx, k); err != nil {
			return n, nil, err
		}
	}
	if n > 0 && k.steps&addsShardBits != 0 {
		genes, err = e.geneRows(ctx, k, n)
	}
	return n, genes, err
}

// generate generates the keys of an insert's rows and checks them.
func (e *execution) generate(ctx context.Context, k *insertion) error {
	var genes *geneRows
	var err error
	n := k.rowCount
	if k.column, err = e.session.KeyColumn(ctx, k.in); err != nil {
		return err
	}
	if k.column.Versioned && k.in.ReportsExistingKey {
		return errVersioned
	}
	if k.steps&(countsRows|guardsRows|addsShardBits) != 0 {
		if n, genes, err = e.check(ctx, k); err != nil {
			return err
		}
	}
	switch {
	case n == 0:
		return nil
	case genes != nil:
		k.keys, err = genes.make(ctx, k.table, k.one)
	case k.steps&drawsByRow != 0:
		k.keys, err = e.fitting(ctx, k, n)
	default:
		k.keys, err = k.plannedInsert.generate(ctx, n, k.one)
	}
	if err != nil {
		return err
	}
	k.plain = k.isPlain()
	return k.accept(ctx, e.plan.rules, e.session, &k.column, &k.keys, k.plain, e.out == nil)
}

// countRowsToFill counts the rows that need a key. For bound keys it checks whether the key is missing.
func (e *execution) countRowsToFill(ctx context.Context, k *insertion) (n int, err error) {
	for i := range k.in.Rows {
		switch r := k.in.Rows[i]; r.Key {
		case rewrite.Generated:
			n++
		case rewrite.Argument:
			if k.generated == nil {
				k.generated = make([]bool, len(k.in.Rows))
			}
			if k.in.Table.KeepExplicit {
				continue
			}
			if k.generated[i], err = k.table.isMissing(ctx, e.session, e.user[r.Arg].Value, k.in, i); err != nil {
				return 0, err
			}
			if k.generated[i] {
				n++
			}
		}
	}
	return n, nil
}

// isGenerated reports whether row i's key was generated.
func (k *insertion) isGenerated(i int) bool {
	switch k.in.Rows[i].Key {
	case rewrite.Generated:
		return true
	case rewrite.Argument:
		return k.generated[i]
	}
	return false
}
