package driver

import (
	"context"
	"database/sql/driver"
	"fmt"
	"log/slog"
	"time"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/internal/guard"
	"github.com/shardkey/shardkey/internal/sqltext"
	"github.com/shardkey/shardkey/rewrite"
)

// execute executes a plan: it makes the keys, sends the statement, and finds out what it
// did. stmt is the prepared statement, nil when the query is sent itself; out is where
// the caller wants the keys. It returns errReplan, before anything was generated or
// sent, when the rule has been replaced, and driver.ErrSkip when the arguments are not
// as many as the query's placeholders: database/sql then prepares the statement and
// reports that in its own words.
func (p *plan) execute(
	ctx context.Context, s *session, stmt *base.Stmt, out *keysRing, args []driver.NamedValue, want base.Want,
) (base.Reply, error) {
	if !p.rules.acquire() {
		return base.Reply{}, errReplan
	}
	defer p.rules.release()
	logs := p.rules.logger.Enabled(ctx, slog.LevelDebug)
	if want == base.WantResult && !logs && p.isShort(s, args) {
		res, err := p.execShort(ctx, s, stmt, out, args)
		return base.Reply{Result: res}, err
	}
	if s.transaction != nil && p.source() != nil {
		return base.Reply{}, errTransactionSet
	}
	s.forInsert = p.key.text
	on, err := p.begin(ctx, s, stmt, out, args)
	s.forInsert = ""
	if err != nil {
		return base.Reply{}, err
	}
	start := time.Time{}
	if logs {
		start = time.Now()
	}
	r, err := finish(ctx, on, want)
	if logs {
		logSent(ctx, p, on, time.Since(start), err)
	}
	return r, err
}

// errTransactionSet is the error for an INSERT … SELECT that SET TRANSACTION precedes: its
// query, which is sent first, would take what is set for the INSERT.
var errTransactionSet = fmt.Errorf("%w: INSERT … SELECT after SET TRANSACTION; begin a transaction before it, or use SET SESSION TRANSACTION", ErrUnsupportedStatement)

// finish sends a statement, and finds out what it did.
func finish(ctx context.Context, on running, want base.Want) (r base.Reply, err error) {
	r, err = on.sending().send(ctx, want)
	if err == nil && want == base.WantResult && r.Result == nil {
		err = base.ErrNoAnswer
	}
	switch {
	case err != nil:
		return base.Reply{}, on.failed(ctx, err)
	case want == base.WantRows:
		r.Rows, err = on.settleRows(ctx, r.Rows)
	default:
		r.Result, err = on.settle(ctx, r.Result)
	}
	return r, err
}

// running is a statement on its way: an execution with rows of values, an INSERT
// … SELECT, or a text that is sent as it is.
type running interface {
	sending() *sending
	// failed is called when the server refused it, and returns the error to see.
	failed(ctx context.Context, err error) error
	// settle finds out what came of it, and settleRows where it returns rows.
	settle(ctx context.Context, sent driver.Result) (driver.Result, error)
	settleRows(ctx context.Context, sent driver.Rows) (driver.Rows, error)
}

// sending is what is sent, and where: to a prepared statement, or as a text.
type sending struct {
	base  *base.Conn
	stmt  *base.Stmt // nil: the text
	text  string
	args  []driver.NamedValue
	added int32 // args that are ours
	kept  bool  // the statement that the base prepares for the text is cached
}

func (s *sending) send(ctx context.Context, want base.Want) (base.Reply, error) {
	switch {
	case s.stmt != nil:
		return s.stmt.Send(ctx, s.args, want)
	case s.kept:
		return s.base.SendCached(ctx, s.text, s.args, int(s.added), want)
	}
	return s.base.Send(ctx, s.text, s.args, int(s.added), want)
}

// asIs is a statement with nothing to fill after all.
type asIs struct {
	sent sending
	done func(error) // called with what came of it
}

func (a *asIs) sending() *sending { return &a.sent }

func (a *asIs) failed(_ context.Context, err error) error {
	a.done(err)
	return err
}

func (a *asIs) settle(_ context.Context, sent driver.Result) (driver.Result, error) {
	a.done(nil)
	return sent, nil
}

func (a *asIs) settleRows(_ context.Context, sent driver.Rows) (driver.Rows, error) {
	a.done(nil)
	return sent, nil
}

// begin makes ready what is to be sent.
func (p *plan) begin(ctx context.Context, s *session, stmt *base.Stmt, out *keysRing, args []driver.NamedValue) (running, error) {
	sent := sending{base: &s.base, stmt: stmt, text: p.key.text, args: args}
	if want := p.Params(); len(args) != want {
		switch {
		case stmt != nil:
			return nil, base.ArgCountError(want, len(args))
		case len(args) == 0 && p.Statements == 1:
			// The server's own syntax error. Of several statements it would run
			// those before the placeholder, without keys.
			return &asIs{sent, func(error) {}}, nil
		}
		return nil, driver.ErrSkip
	}
	if err := p.checkUpdates(ctx, s, args); err != nil {
		return nil, err
	}
	if in := p.source(); in != nil {
		return p.beginSource(ctx, s, in, out, sent)
	}
	e := &execution{plan: p, session: s, out: out, user: args, sent: sent}
	return e, e.begin(ctx)
}

// execution is one execution of a plan with rows of values: its keys, what is
// sent, and what came of it. One allocation serves all of it.
type execution struct {
	plan    *plan
	session *session
	out     *keysRing // where the caller wants the keys, may be nil
	user    []driver.NamedValue

	inserts []insertion
	first   [1]insertion // room for inserts, as nearly always there is one

	sent   sending
	result result
}

// insertion is one insert of the text, in one execution.
type insertion struct {
	in     *rewrite.Insert
	table  *table
	column *keyColumn
	keys   rewrite.Keys // the generated ones, in the order of their rows
	filled []bool       // SlotParam rows: whether a key was generated; nil without any
	one    [1]int64
	// carries: the text tells the server the first generated key.
	carries bool
	rows    rowStates
	// first is the first generated key that was inserted, if one was.
	first    int64
	inserted bool
}

func (e *execution) sending() *sending { return &e.sent }

// failed is called when the server refused the statement. Even so it may have
// evaluated the LAST_INSERT_ID(key) in it.
func (e *execution) failed(ctx context.Context, err error) error {
	e.session.followTransaction(e.plan.key.text, err)
	in := &e.plan.Inserts[0]
	switch {
	case e.plan.Statements > 1:
		e.keepLastIDAfterFailure(ctx)
	case in.MentionsLastID:
		e.session.lastID.lost()
	case in.InText, in.Guarded:
		e.session.lastID.moved()
	}
	return e.plan.failed(err)
}

// begin generates the keys and makes ready what is to be sent.
func (e *execution) begin(ctx context.Context) error {
	if e.inserts = e.first[:]; len(e.plan.Inserts) > 1 {
		e.inserts = make([]insertion, len(e.plan.Inserts))
	}
	for i := range e.inserts {
		k := &e.inserts[i]
		k.in, k.table, k.column = &e.plan.Inserts[i], e.plan.tables[i], e.plan.keyColumns[i]
		if k.in.Refused {
			continue
		}
		if err := e.generate(ctx, k, i); err != nil {
			return err
		}
	}
	return e.ready(ctx)
}

// ready makes the session ready for the keys and writes the text and arguments
// to send.
func (e *execution) ready(ctx context.Context) error {
	if err := e.prepareSession(ctx); err != nil {
		return err
	}
	if err := e.session.askCacheLimit(ctx); err != nil {
		return err
	}
	return e.bind()
}

// prepareSession makes LAST_INSERT_ID() right when the text may read it, and finds out
// what it is when the text changes it.
func (e *execution) prepareSession(ctx context.Context) error {
	in := &e.plan.Inserts[0]
	told, reads := in.InText || in.Guarded, in.MentionsLastID
	if e.plan.Statements > 1 || e.inserts[0].column.readsLastID() {
		told, reads = true, true
	}
	if told {
		if err := e.session.knowLastID(ctx); err != nil {
			return err
		}
	}
	if reads {
		return e.session.syncLastID(ctx)
	}
	return nil
}

func (e *execution) generate(ctx context.Context, k *insertion, i int) error {
	n, x := k.in.Rows(), e.plan.shard(i)
	if !k.in.AllFilled() {
		var err error
		if n, err = e.decide(ctx, k); err != nil {
			return err
		}
	}
	if x != nil {
		if err := e.guard(ctx, k, x); err != nil {
			return err
		}
	}
	if n == 0 {
		return k.column.learn(ctx, e.session)
	}
	var err error
	switch {
	case k.table.genes != nil:
		k.keys, err = e.geneKeys(ctx, k, i, n)
	case x != nil && x.fits:
		k.keys, err = e.fitting(ctx, k, x, n)
	default:
		k.keys, err = k.table.generate(ctx, n, &k.one)
	}
	if err == nil && x != nil {
		err = e.guardKeys(ctx, k, x)
	}
	if err != nil {
		return err
	}
	if n > 1 && e.out == nil {
		if err := e.plan.rules.checkConsecutive(ctx, k.table, &k.keys); err != nil {
			return err
		}
	}
	k.table.counts.filled(n)
	if err := k.column.check(ctx, e.session, k.table, &k.keys); err != nil {
		return err
	}
	return e.plan.rules.tellFilled(ctx, k.table, n, &k.keys)
}

// decide counts the rows that need a key, and for those whose key is bound
// finds out whether it is missing.
func (e *execution) decide(ctx context.Context, k *insertion) (n int, err error) {
	for i := range k.in.Rows() {
		kind, param := k.in.Slot(i)
		switch kind {
		case rewrite.SlotFill, rewrite.SlotExpression:
			n++
		case rewrite.SlotParam:
			if k.filled == nil {
				k.filled = make([]bool, k.in.Rows())
			}
			if k.in.Table.KeepExplicit {
				continue
			}
			if k.filled[i], err = e.session.isMissing(ctx, k.table, e.user[param].Value, k.in, i); err != nil {
				return 0, err
			}
			if k.filled[i] {
				n++
			}
		}
	}
	return n, nil
}

// isGenerated reports whether row i's key was generated.
func (k *insertion) isGenerated(i int) bool {
	switch kind, _ := k.in.Slot(i); kind {
	case rewrite.SlotFill, rewrite.SlotExpression:
		return true
	case rewrite.SlotParam:
		return k.filled[i]
	}
	return false
}

// bind writes the text and arguments to send. A text without arguments takes the
// keys as literals, as one message to the server. With arguments they are bound:
// a literal would make each text a new one for the server's cache of prepared
// statements. What is too much to bind is written.
func (e *execution) bind() (err error) {
	text := e.plan.Plan
	if !e.carry() {
		text, e.sent.stmt = text.Plain(), nil
	}
	if err := e.checkLastIDRead(); err != nil {
		return err
	}
	literal := e.sent.stmt == nil && (len(e.user) == 0 || len(e.user)+e.plan.added > base.MaxPlaceholders) && e.haveLiterals()
	if e.sent.args, err = e.bindArgs(!literal); err != nil {
		return err
	}
	e.sent.added = int32(len(e.sent.args) - len(e.user))
	switch {
	case e.sent.stmt != nil:
		return e.sent.stmt.CheckArgs(e.sent.args, e.plan.added)
	case literal:
		var room [1]rewrite.Keys
		e.sent.text = text.LiteralText(e.fillKeys(room[:0]))
	default:
		e.sent.text = text.BindText()
		e.sent.kept = e.plan.keeps && e.session.base.Caches()
	}
	return nil
}

// carry decides which inserts carry their first generated key as
// LAST_INSERT_ID(key). That is unsigned: it returns false, and none does, when a
// key is negative, or when a trigger would read the key before it is due.
func (e *execution) carry() bool {
	for i := range e.inserts {
		k := &e.inserts[i]
		if k.carries = k.in.InText; !k.carries {
			continue
		}
		if key, ok := k.keys.At(0).(int64); ok && key < 0 || k.column.readsLastID() {
			for i := range e.inserts {
				e.inserts[i].carries = false
			}
			return false
		}
	}
	return true
}

// checkLastIDRead refuses a string of several statements of which one reads
// LAST_INSERT_ID(), itself or in a trigger, when the server is not told what a former one
// generated.
func (e *execution) checkLastIDRead() error {
	if e.plan.Statements == 1 {
		return nil
	}
	untold := false
	for i := range e.inserts {
		k := &e.inserts[i]
		if untold && k.column.readsLastID() {
			return fmt.Errorf("%w: table %s: a trigger of the table reads LAST_INSERT_ID(), which a former statement of the string changes; send the statements one by one",
				ErrUnsupportedStatement, sqltext.QuoteTable(k.in.Schema, k.in.Name))
		}
		if k.in.Refused || k.keys.Len() == 0 || k.carries || k.table.kind() == rewrite.KindText {
			continue
		}
		if untold = true; k.in.ReadLater {
			return fmt.Errorf("%w: table %s: a later statement of the string reads LAST_INSERT_ID(), and the server cannot be told the generated key before; send the statements one by one",
				ErrUnsupportedStatement, sqltext.QuoteTable(k.in.Schema, k.in.Name))
		}
	}
	return nil
}

// generate makes n keys in one call, and counts them. One key goes into one, which
// spares an allocation.
func (t *table) generate(ctx context.Context, n int, one *[1]int64) (rewrite.Keys, error) {
	start := t.counts.start()
	keys, err := t.make(ctx, n, one)
	t.counts.made(start, n, err)
	return keys, err
}

func (t *table) make(ctx context.Context, n int, one *[1]int64) (keys rewrite.Keys, err error) {
	if t.ints != nil {
		ints := one[:]
		if n > 1 {
			ints = make([]int64, n)
		}
		if err := t.makeInts(ctx, ints); err != nil {
			return rewrite.Keys{}, err
		}
		return rewrite.Keys{Ints: ints}, nil
	}
	defer t.keysFailed(&err)
	values, err := t.rule.Generator.GenerateKeys(ctx, t.column(), n)
	switch {
	case err != nil:
		return rewrite.Keys{}, err
	case len(values) != n:
		return rewrite.Keys{}, fmt.Errorf("it made %d keys where %d were asked for", len(values), n)
	}
	for i, v := range values {
		if values[i] = plainKey(v); values[i] == nil {
			return rewrite.Keys{}, fmt.Errorf("key %d of %d is nil", i+1, n)
		}
	}
	if t.kind() == rewrite.KindUnknown {
		t.setKind(kindOf(values[0]))
	}
	return rewrite.Keys{Values: values}, nil
}

// generateShort makes the key of an INSERT of the short way, and counts both.
func (t *table) generateShort(ctx context.Context, key []int64) error {
	start := t.counts.startOne()
	err := t.makeInts(ctx, key)
	t.counts.madeOne(start, err)
	return err
}

// makeInts fills keys.
func (t *table) makeInts(ctx context.Context, keys []int64) (err error) {
	defer t.keysFailed(&err)
	return t.ints.GenerateInt64Keys(ctx, t.column(), keys)
}

// keysFailed is deferred by what calls the generator.
func (t *table) keysFailed(err *error) {
	if p := recover(); p != nil {
		*err = &guard.PanicError{What: "it", Value: p}
	}
	if *err != nil {
		*err = &GeneratorError{t.rule.GeneratorName, t.rule.Logical, t.rule.Column, hideBadConn(*err)}
	}
}

func (e *execution) haveLiterals() bool {
	for i := range e.inserts {
		if !e.inserts[i].keys.HaveLiterals() {
			return false
		}
	}
	return true
}

// fillKeys appends the keys that the literal text takes: those that are not bound
// in place of a user's argument.
func (e *execution) fillKeys(all []rewrite.Keys) []rewrite.Keys {
	for i := range e.inserts {
		k := &e.inserts[i]
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
	if !(placeholders && e.plan.added > 0) && !e.anyFilledParam() {
		return e.user, nil
	}
	b := binder{base: &e.session.base, user: e.user, out: make([]driver.NamedValue, 0, len(e.user)+e.plan.added)}
	for i := range e.inserts {
		k := &e.inserts[i]
		if k.in.Refused {
			continue
		}
		next := 0
		for row := range k.in.Rows() {
			if !k.isGenerated(row) {
				continue
			}
			kind, param := k.in.Slot(row)
			if kind == rewrite.SlotParam || placeholders {
				b.upTo(param)
				if k.keys.Ints != nil {
					b.addInt(k.keys.Ints[next])
				} else if err := b.add(k.keys.Values[next]); err != nil {
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
	for i := range e.inserts {
		for _, filled := range e.inserts[i].filled {
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
	at := len(b.out)
	b.out = append(b.out, b.user[b.taken:n]...)
	b.taken = n
	for ; at < len(b.out); at++ {
		b.out[at].Ordinal = at + 1
	}
}

// addInt adds a key that needs no conversion.
func (b *binder) addInt(key int64) {
	b.out = append(b.out, driver.NamedValue{Ordinal: len(b.out) + 1, Value: key})
}

func (b *binder) add(key any) error {
	b.out = append(b.out, driver.NamedValue{Ordinal: len(b.out) + 1, Value: key})
	if _, ok := key.(int64); ok {
		return nil
	}
	if err := b.base.Convert(&b.out[len(b.out)-1]); err != nil {
		return fmt.Errorf("shardkey: a generated key cannot be bound: %w", err)
	}
	return nil
}
