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
	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/rewrite"
)

// execute executes a plan: it makes the keys, sends the statement, and finds out what it
// did. stmt is the prepared statement, nil when the query is sent itself; out is where
// the caller wants the keys. It returns errReplan, before anything was generated or
// sent, when the rule has been replaced, and driver.ErrSkip when the arguments are not
// as many as the query's placeholders: database/sql then prepares the statement and
// reports that in its own words.
func (p *plan) execute(
	ctx context.Context, s *session.Session, stmt *base.Stmt, out *keysRing, args []driver.NamedValue, want base.Want,
) (base.Reply, error) {
	if !p.rules.generators.Acquire() {
		return base.Reply{}, errReplan
	}
	defer p.rules.generators.Release()
	if len(args) != p.Params() {
		return p.executeUnbound(ctx, s, stmt, args, want)
	}
	if len(p.Updates) > 0 {
		if err := p.checkUpdates(ctx, s, args); err != nil {
			return base.Reply{}, err
		}
	}
	if p.source() != nil {
		return p.executeSource(ctx, s, out, args, want)
	}
	e := execution{plan: p, session: s, out: out, user: args, result: &result{}}
	s.ForInsert = p.key.text
	err := e.prepare(ctx, stmt)
	s.ForInsert = ""
	if err != nil {
		return base.Reply{}, err
	}
	if !p.rules.logger.Enabled(ctx, slog.LevelDebug) {
		return e.send(ctx, want)
	}
	start := time.Now()
	r, err := e.send(ctx, want)
	logSent(ctx, p, &e.sent, e.keyCount(), time.Since(start), err)
	return r, err
}

// executeUnbound is execute for arguments that are not as many as the placeholders.
func (p *plan) executeUnbound(ctx context.Context, s *session.Session, stmt *base.Stmt, args []driver.NamedValue, want base.Want) (base.Reply, error) {
	switch {
	case stmt != nil:
		return base.Reply{}, base.ArgCountError(p.Params(), len(args))
	case len(args) == 0 && p.Statements == 1:
		// The server's own syntax error. Of several statements it would run
		// those before the placeholder, without keys.
		return s.Base.Send(ctx, p.key.text, args, 0, want)
	}
	return base.Reply{}, driver.ErrSkip
}

// execution is one execution of a plan with rows of values. It lives on the stack: what
// remains of it is its result.
type execution struct {
	plan    *plan
	session *session.Session
	out     *keysRing // where the caller wants the keys, may be nil
	user    []driver.NamedValue
	result  *result
	sent    sending

	first insertion   // nearly always the only one
	more  []insertion // those after it
}

// insert is insertion i.
func (e *execution) insert(i int) *insertion {
	if i == 0 {
		return &e.first
	}
	return &e.more[i-1]
}

// inserts is how many there are.
func (e *execution) inserts() int { return 1 + len(e.more) }

// keep returns a copy that outlives the call.
func (e *execution) keep() *execution {
	kept := *e
	return &kept
}

// insertion is one insert of the text, in one execution.
type insertion struct {
	*target
	keys   rewrite.Keys // the generated ones, in the order of their rows
	filled []bool       // SlotParam rows: whether a key was generated; nil without any
	one    *[1]int64    // room for a single key
	// carries: the text tells the server the first generated key.
	carries bool
	plain   bool       // see target.isPlain
	rows    *rowStates // nil: all were inserted
}

// sending is what is sent, and where: to a prepared statement, or as a text.
type sending struct {
	stmt   *base.Stmt // nil: the text
	text   string
	args   []driver.NamedValue
	added  int  // args that are ours
	cached bool // the statement that the base prepares for the text is cached
}

// send sends the statement, and finds out what it did.
func (e *execution) send(ctx context.Context, want base.Want) (r base.Reply, err error) {
	switch sent := &e.sent; {
	case sent.stmt != nil:
		r, err = sent.stmt.Send(ctx, sent.args, want)
	case sent.cached:
		r, err = e.session.Base.SendCached(ctx, sent.text, sent.args, sent.added, want)
	default:
		r, err = e.session.Base.Send(ctx, sent.text, sent.args, sent.added, want)
	}
	switch {
	case err != nil:
		return base.Reply{}, e.failed(ctx, err)
	case want == base.WantRows:
		r.Rows = e.settleRows(r.Rows)
	case r.Result == nil:
		return base.Reply{}, e.failed(ctx, base.ErrNoAnswer)
	default:
		r.Result = e.settle(ctx, r.Result)
	}
	return r, nil
}

// failed is called when the server refused the statement.
func (e *execution) failed(ctx context.Context, err error) error {
	e.session.FollowTransaction(e.plan.key.text, err)
	e.keepLastIDAfterFailure(ctx)
	return e.plan.failed(err)
}

// prepare generates the keys, makes the session ready for them, and writes what is to
// be sent.
func (e *execution) prepare(ctx context.Context, stmt *base.Stmt) error {
	if more := len(e.plan.targets) - 1; more > 0 {
		e.more = make([]insertion, more)
	}
	e.first.one = &e.result.one
	for i := range e.plan.targets {
		k := e.insert(i)
		if k.target = &e.plan.targets[i]; k.in.Refused {
			continue
		}
		if k.one == nil {
			k.one = new([1]int64)
		}
		if err := e.generate(ctx, k); err != nil {
			return err
		}
	}
	if !e.first.plain || !e.session.LastID.Known() || e.plan.reads {
		if err := e.prepareLastID(ctx); err != nil {
			return err
		}
	}
	if e.session.Base.NeedsLimit() {
		if err := e.session.AskCacheLimit(ctx); err != nil {
			return err
		}
	}
	return e.bind(stmt)
}

// bind writes the text and arguments to send. A text without arguments takes the
// keys as literals, as one message to the server. With arguments they are bound:
// a literal would make each text a new one for the server's cache of prepared
// statements. What is too much to bind is written.
func (e *execution) bind(stmt *base.Stmt) (err error) {
	text := e.plan.Plan
	if k := &e.first; k.plain && e.more == nil {
		k.carries = k.in.InText
	} else if !e.carry() {
		text, stmt = text.Plain(), nil
	}
	if e.plan.Statements > 1 {
		if err := e.checkLastIDRead(); err != nil {
			return err
		}
	}
	sent := &e.sent
	literal := stmt == nil && (len(e.user) == 0 || len(e.user)+e.plan.added > base.MaxPlaceholders) && e.haveLiterals()
	if sent.args, err = e.bindArgs(!literal); err != nil {
		return err
	}
	sent.added = len(sent.args) - len(e.user)
	switch {
	case stmt != nil:
		sent.stmt = stmt
		return stmt.CheckArgs(sent.args, e.plan.added)
	case literal:
		var room [1]rewrite.Keys
		sent.text = text.LiteralText(e.fillKeys(room[:0]))
	default:
		sent.text = text.BindText()
		sent.cached = e.plan.cacheable && e.session.Base.Caches()
	}
	return nil
}

func (e *execution) haveLiterals() bool {
	for i := range e.inserts() {
		if !e.insert(i).keys.HaveLiterals() {
			return false
		}
	}
	return true
}

// fillKeys appends the keys that the literal text takes: those that are not bound
// in place of a user's argument.
func (e *execution) fillKeys(all []rewrite.Keys) []rewrite.Keys {
	for i := range e.inserts() {
		k := e.insert(i)
		if k.filled == nil {
			all = append(all, k.keys)
			continue
		}
		all = append(all, rewrite.Keys{})
		next := 0
		for row := range k.in.Rows() {
			if !k.isGenerated(row) {
				continue
			}
			if kind, _ := k.in.Slot(row); kind != rewrite.SlotParam {
				all[i].Values = append(all[i].Values, k.keys.At(next))
			}
			next++
		}
	}
	return all
}

// bindArgs puts the keys among the user's arguments: in place of those that
// were missing, and, when the text has placeholders for them, in between.
func (e *execution) bindArgs(placeholders bool) ([]driver.NamedValue, error) {
	if placeholders = placeholders && e.plan.added > 0; !placeholders && !e.anyFilledParam() {
		return e.user, nil
	}
	b := binder{base: e.session.Base, user: e.user, out: e.result.room[:0]}
	if n := len(e.user) + e.plan.added; n > len(e.result.room) {
		b.out = make([]driver.NamedValue, 0, n)
	}
	for i := range e.inserts() {
		k := e.insert(i)
		if k.in.Refused {
			continue
		}
		next := 0
		for row := range k.in.Rows() {
			kind, param := k.in.Slot(row)
			if !k.isGenerated(row) {
				continue
			}
			if kind == rewrite.SlotParam || placeholders {
				b.upTo(param)
				if err := b.add(k.keys.At(next)); err != nil {
					return nil, err
				}
			}
			if kind == rewrite.SlotParam {
				b.taken++ // the key is in its place
			}
			next++
		}
	}
	b.upTo(len(e.user))
	return b.out, nil
}

func (e *execution) anyFilledParam() bool {
	for i := range e.inserts() {
		for _, filled := range e.insert(i).filled {
			if filled {
				return true
			}
		}
	}
	return false
}

// binder assembles arguments.
type binder struct {
	base  *base.Conn
	user  []driver.NamedValue
	taken int // of the user's
	out   []driver.NamedValue
}

func (b *binder) upTo(n int) {
	for ; b.taken < n; b.taken++ {
		b.out = append(b.out, b.user[b.taken])
		b.out[len(b.out)-1].Ordinal = len(b.out)
	}
}

func (b *binder) add(key any) error {
	b.out = append(b.out, driver.NamedValue{Ordinal: len(b.out) + 1, Value: key})
	if _, ok := key.(int64); ok {
		return nil // it needs no conversion
	}
	if err := b.base.Convert(&b.out[len(b.out)-1]); err != nil {
		return fmt.Errorf("shardkey: a generated key cannot be bound: %w", err)
	}
	return nil
}

// keyCount is how many keys were generated.
func (e *execution) keyCount() (n int) {
	for i := range e.inserts() {
		n += e.insert(i).keys.Len()
	}
	return n
}

// maxLogged is how much of a statement is logged, in bytes.
const maxLogged = 4 << 10

func logSent(ctx context.Context, p *plan, sent *sending, keys int, took time.Duration, err error) {
	text := sent.text
	if text == "" {
		text = p.BindText() // of a prepared statement
	}
	var tables, generators []string
	for i := range p.Inserts {
		tables = append(tables, nameOf(&p.Inserts[i]))
		generators = append(generators, p.targets[i].table.rule.GeneratorName)
	}
	how := rewrite.Options{Mode: p.key.mode, Charset: p.key.charset}
	attrs := []any{"statement", rewrite.WithoutLiterals(text, how, maxLogged), "args", len(sent.args), "keys", keys,
		"tables", tables, "generators", generators, "took", took}
	if err != nil {
		attrs = append(attrs, "error_type", errorType(err))
	}
	p.rules.logger.DebugContext(ctx, "shardkey: statement sent", attrs...)
}

// errorType is an error's type, and a server's number: its text may quote a value.
func errorType(err error) string {
	var server *mysql.MySQLError
	if errors.As(err, &server) {
		return fmt.Sprintf("%T %d", server, server.Number)
	}
	return fmt.Sprintf("%T", err)
}
