package driver

import (
	"context"
	"database/sql/driver"
	"math"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/rewrite"
)

// KeysResult is implemented, beside mysql.Result, by the driver's results of
// statements that were filled; (*sql.Conn).Raw reaches them.
type KeysResult interface {
	mysql.Result
	// Keys returns one entry a row, as [Keys.Values] does.
	Keys() []any
}

// result is what an execution came to. The base's result says how many rows were
// affected; the insert ids are ours. It also holds what must be on the heap while the
// statement is executed: an INSERT of one row needs no other room.
type result struct {
	driver.Result
	id  int64
	one [1]int64
	// of is the execution, of which the keys are. Nil: one row was inserted, with the key one.
	of   *execution
	ids  []int64 // one a statement; nil when there is one statement
	room [4]driver.NamedValue
}

var _ KeysResult = (*result)(nil)

// LastInsertId is that of the last statement.
func (r *result) LastInsertId() (int64, error) { return r.id, nil }

func (r *result) Keys() []any {
	if r.of == nil {
		return []any{r.one[0]}
	}
	return r.of.values()
}

func (r *result) AllLastInsertIds() []int64 {
	if r.ids == nil {
		return []int64{r.id}
	}
	return append([]int64(nil), r.ids...)
}

func (r *result) AllRowsAffected() []int64 { return allRowsAffected(r.Result) }

// allRowsAffected are those of each statement, as far as a base tells.
func allRowsAffected(base driver.Result) []int64 {
	if all, ok := base.(mysql.Result); ok {
		return all.AllRowsAffected()
	}
	n, err := base.RowsAffected()
	if err != nil {
		return nil
	}
	return []int64{n}
}

// said is what the server says of one insert.
type said struct {
	affected int64 // rows, or unknownCount
	id       int64 // the insert id
}

// returned is what it says of one that returns rows.
var returned = said{affected: unknownCount}

// saidBy returns what a base's result says of the rows.
func saidBy(base driver.Result) (s said) {
	var err error
	if s.affected, err = base.RowsAffected(); err != nil {
		s.affected = unknownCount
	}
	return s
}

// unknownCount stands for rows affected that the base did not tell.
const unknownCount = math.MinInt64

// settle finds out which rows were inserted and what the insert ids are.
func (e *execution) settle(ctx context.Context, base driver.Result) *result {
	e.session.TransactionBegan() // the statement was one
	r, k := e.result, &e.first
	r.Result = base
	said := saidBy(base)
	switch {
	case e.plan.several || k.in.Refused:
		e.settleEach(ctx, base)
		r.of = e.keep()
	case k.plain && said.affected == 1: // the row was inserted
		if r.id = k.keys.Ints[0]; k.carries {
			e.session.LastID.Told(uint64(r.id))
		} else {
			e.session.LastID.Set(uint64(r.id))
		}
	default:
		said.id, _ = base.LastInsertId()
		r.id = e.settleInsert(ctx, k, said)
		r.of = e.keep()
	}
	if e.out != nil {
		e.out.set(e.plan, r.Keys())
	}
	return r
}

// settleEach is settle for a text that may have several results: those of its statements,
// and an empty one where only comments follow the last semicolon.
func (e *execution) settleEach(ctx context.Context, base driver.Result) {
	affected, ids := e.perStatement(base)
	for i := range e.inserts() {
		k := e.insert(i)
		if k.in.Refused {
			continue
		}
		at := k.in.Statement
		ids[at] = e.settleInsert(ctx, k, said{affected[at], ids[at]})
	}
	if e.plan.Statements > 1 {
		e.keepLastIDOfAll(ctx, ids)
	}
	e.result.id, e.result.ids = ids[len(ids)-1], ids
}

// perStatement returns rows affected and insert ids of each statement of the
// text, and of what follows them. A base that reports only the last one leaves the others
// unknown.
func (e *execution) perStatement(base driver.Result) (affected, ids []int64) {
	n := e.plan.Statements
	if all, ok := base.(mysql.Result); ok {
		affected, ids = all.AllRowsAffected(), all.AllLastInsertIds()
		if len(affected) >= n && len(ids) == len(affected) {
			return affected, append([]int64(nil), ids...)
		}
	}
	affected, ids = make([]int64, n), make([]int64, n)
	for i := range n - 1 {
		affected[i] = unknownCount
	}
	var err error
	if affected[n-1], err = base.RowsAffected(); err != nil {
		affected[n-1] = unknownCount
	}
	ids[n-1], _ = base.LastInsertId()
	return affected, ids
}

// settleRows is settle for a text that returns rows. What came of it shows when
// they are read to their end, or closed, and how many rows were affected is not
// known even then.
func (e *execution) settleRows(sent driver.Rows) driver.Rows {
	e.session.TransactionBegan()
	kept := e.keep()
	return base.OnClose(sent, func(err error) {
		ctx := context.Background() // the execution's own may have ended
		if err != nil {
			_ = kept.failed(ctx, err)
			return
		}
		for i := range kept.inserts() {
			if k := kept.insert(i); !k.in.Refused {
				_ = kept.settleInsert(ctx, k, returned)
			}
		}
		if kept.plan.Statements > 1 {
			kept.keepLastIDOfAll(ctx, nil)
		}
		kept.out.set(kept.plan, kept.values())
	})
}

// values are the keys of all rows of all inserts.
func (e *execution) values() []any {
	var values []any
	for i := range e.inserts() {
		k := e.insert(i)
		if k.in.Refused {
			continue
		}
		if values == nil {
			values = make([]any, 0, k.in.Rows())
		}
		next := 0
		for row := range k.in.Rows() {
			key := e.keyOf(k, row, &next)
			switch state := k.rows.of(row); {
			case k.in.RolledBack, state == rowUncertain:
				key = nil
			case state == rowNotInserted:
				key = k.rows.existing
			}
			values = append(values, key)
		}
	}
	return values
}

// keyOf is the key that a row was given; nil when the server made it.
func (e *execution) keyOf(k *insertion, row int, next *int) any {
	if k.isGenerated(row) {
		*next++
		return k.keys.At(*next - 1)
	}
	if key := e.givenKey(k, row); k.column.Holds(key) {
		return key
	}
	return nil // the server stored what was left of it
}

func (e *execution) givenKey(k *insertion, row int) any {
	switch kind, param := k.in.Slot(row); kind {
	case rewrite.SlotParam:
		return boundKey(k.table.kind(), e.user[param].Value)
	case rewrite.SlotKept:
		return e.plan.Kept(k.in, row, e.plan.key.mode)
	}
	return nil
}

// rowStates says of each row of an insert whether it was inserted.
type rowStates struct {
	states []rowState
	// existing is the key of the only row that existed, where it is known.
	existing any
	// lastPresent: the last row's key was seen in the table, if not as its own.
	lastPresent bool
}

type rowState uint8

const (
	rowInserted rowState = iota
	rowNotInserted
	rowUncertain
)

func (s *rowStates) of(i int) rowState {
	if s == nil {
		return rowInserted
	}
	return s.states[i]
}

// mark gives all rows one state.
func (k *insertion) mark(state rowState) {
	k.rows = &rowStates{states: make([]rowState, k.in.Rows())}
	for i := range k.rows.states {
		k.rows.states[i] = state
	}
}

// count counts the rows of a state.
func (k *insertion) count(state rowState) (n int) {
	for i := range k.in.Rows() {
		if k.rows.of(i) == state {
			n++
		}
	}
	return n
}

// settleInsert finds out what one insert came to, and returns the insert id that
// an AUTO_INCREMENT column would report: the first generated key that was
// inserted; else, when the statement inserted or changed anything, the last row's
// key; else 0.
func (e *execution) settleInsert(ctx context.Context, k *insertion, said said) int64 {
	beside := !k.plain && k.column.OtherHasAutoIncrement()
	switch {
	case k.in.Returning:
		said = returned
	case !beside && k.carries && !k.in.OnDuplicate:
		said.id = 0 // it is the key that the text told
	}
	verdict := e.judge(ctx, k, &said, beside)
	switch verdict {
	case noneInserted:
		k.mark(rowNotInserted)
	case oneExists:
		k.mark(rowNotInserted)
		k.rows.existing = said.id
	case unclear:
		e.verify(ctx, k, said)
		e.findExisting(k, said)
	}
	first, inserted := k.firstInserted()
	switch {
	case e.plan.Statements > 1: // see keepLastIDOfAll
	case beside:
		e.keepBeside(k, said, verdict)
	default:
		e.keepLastID(k, said, verdict, first, inserted)
	}
	if verdict == laterReplaced {
		e.settleReplaced(ctx, k, said)
	}
	switch {
	case beside && (verdict == oneExists || verdict == noneInserted):
		return 0 // it is the key, and not the other column's value
	case beside:
		return said.id // the other column's, as without a rule
	case k.table.kind() == rewrite.KindText:
		return 0
	case inserted:
		return first
	case k.in.MentionsLastID && said.id != 0:
		return said.id
	case !k.changed(said, e.session.Client().FoundRows):
		return 0
	}
	return e.lastRowsKey(k, said)
}

// judge says what is known of an insert's rows. It takes back an insert id that is not a
// key.
func (e *execution) judge(ctx context.Context, k *insertion, said *said, beside bool) verdict {
	facts := insertFacts{ignore: k.in.Ignore, upsert: k.in.OnDuplicate, replace: k.in.Replace, rows: int64(k.in.Rows()), beside: beside}
	if facts.upsert {
		e.addUpsert(&facts, k)
		if facts.unsure && said.id != 0 && !e.isKey(ctx, k, said.id) {
			said.id = 0 // of another column, which Vitess' sequence fills
		}
	}
	v := judge(facts, *said)
	if (v == allInserted || v == laterReplaced) && (!k.in.AllFilled() && k.hasExpressions() || !k.plain && k.column.IsTriggered()) {
		return unclear // which key a row has, the table tells
	}
	return v
}

// insertFacts are what judge goes by, beside what the server says.
type insertFacts struct {
	ignore, upsert, replace bool

	rows    int64
	guarded bool // an upsert that reports the key of a row that exists
	carries bool // the text tells the server key, the first generated one
	beside  bool // a new row's insert id is another column's
	// zero: a row may have the key 0, and insert id 0 may be that key.
	zero bool
	// unsure: a guarded upsert of one row, whose insert id may be missing.
	unsure bool
	// foundRows: a row that exists and stays as it is may count as affected.
	foundRows bool
	// key is that, or else the last row's, if it was generated or is the only
	// row's; 0 where it is not known.
	key int64
}

// addUpsert adds what matters to ON DUPLICATE KEY UPDATE alone.
func (e *execution) addUpsert(f *insertFacts, k *insertion) {
	f.guarded, f.carries, f.foundRows = k.in.Guarded, k.carries, e.session.Client().FoundRows
	f.unsure = f.guarded && !e.session.ReportsInsertIDs()
	mode, _, _ := e.session.KnownMode()
	f.zero = mode&rewrite.NoAutoValueOnZero != 0
	next := 0
	switch {
	case k.carries:
		f.key = k.carriedKey()
	case f.guarded && k.isGenerated(k.in.Rows()-1):
		f.key = toInt64(k.keys.At(k.keys.Len() - 1))
	case f.guarded && f.rows == 1:
		f.key = toInt64(e.keyOf(k, 0, &next))
	}
}

// verdict is what is known of an insert's rows from what the server says.
type verdict uint8

const (
	allInserted verdict = iota
	noneInserted
	// oneExists: the only row exists already, and the insert id is its key.
	oneExists
	// laterReplaced: all were inserted, and a row of REPLACE may have replaced one
	// before it.
	laterReplaced
	// unclear: the table must be asked.
	unclear
)

// judge says what is known of an insert's rows from what the server says.
//
// The insert id of a guarded upsert is the key of the last row that existed. When
// none did, it is the key that the text carries; else 0, or, of a column with
// AUTO_INCREMENT, the last key that the statement gave it.
func judge(f insertFacts, said said) verdict {
	all, none := said.affected == f.rows, said.affected == 0
	changed := none || said.affected == 2 // of one row: it existed
	switch {
	case f.upsert && f.beside:
		switch {
		case f.rows == 1 && f.guarded && changed && said.id != 0:
			return oneExists
		case f.rows == 1 && changed:
			return noneInserted
		case f.rows == 1 && all && !f.foundRows:
			return allInserted
		}
		return unclear
	case f.upsert && f.rows > 1:
		// (The key of the last row was no existing row's, if it was generated.)
		if f.guarded && all && (said.id == 0 && !f.zero || said.id == f.key && said.id != 0) {
			return allInserted
		}
		return unclear
	case f.upsert && f.unsure:
		switch {
		case changed && said.id != 0:
			return oneExists
		case changed:
			return noneInserted
		case all && !f.foundRows:
			return allInserted
		}
		return unclear
	case f.upsert && f.carries && f.guarded:
		switch {
		case said.id != f.key:
			return oneExists
		case none:
			return noneInserted // by IGNORE
		}
		return allInserted
	case f.upsert && f.guarded:
		switch {
		case f.ignore && none && said.id == 0:
			return noneInserted
		case changed, said.id != 0 && said.id != f.key:
			return oneExists
		}
		return allInserted
	case f.upsert:
		switch {
		case changed:
			return noneInserted
		case all && !f.foundRows:
			return allInserted
		}
		return unclear
	case none:
		return noneInserted // by IGNORE, or it did not run: it is in a comment for other servers
	case f.ignore && !all:
		return unclear
	case f.replace && f.rows > 1 && !all:
		return laterReplaced
	}
	return allInserted
}

// changed reports whether the statement inserted or changed anything. With
// clientFoundRows a row that existed and stayed as it is counts once as well.
func (k *insertion) changed(said said, foundRows bool) bool {
	rows := k.in.Rows()
	if !k.in.OnDuplicate || k.count(rowInserted) > 0 || !foundRows && rows > 1 {
		return said.affected != 0
	}
	return said.affected > int64(rows)
}

// firstInserted is the first generated key that was inserted.
func (k *insertion) firstInserted() (first int64, ok bool) {
	if k.in.Refused {
		return 0, false
	}
	next := 0
	for i := range k.in.Rows() {
		if !k.isGenerated(i) {
			continue
		}
		next++
		if k.rows.of(i) == rowInserted {
			if k.keys.Ints != nil {
				return k.keys.Ints[next-1], true
			}
			return toInt64(k.keys.Values[next-1]), true
		}
	}
	return 0, false
}

// lastRowsKey is the key of the last row: the one that the statement gave, or
// that of the row that was there. It is 0 when only the server knows.
func (e *execution) lastRowsKey(k *insertion, said said) int64 {
	last := k.in.Rows() - 1
	switch {
	case k.in.Ignore && !k.in.OnDuplicate && k.rows != nil && k.rows.lastPresent:
	case k.isGenerated(last) && said.id == toInt64(k.keys.At(k.keys.Len()-1)):
		return 0 // an ignored row's: the server returns the last key of an AUTO_INCREMENT column
	case k.rows.of(last) != rowInserted:
		return said.id
	}
	if k.isGenerated(last) {
		return 0 // the first generated key was reported
	}
	next := 0
	return toInt64(e.keyOf(k, last, &next))
}

// Keys receives the keys of an execution's rows: see [WithKeys]. The zero value
// is ready. It must not be read while an execution with it is running.
type Keys struct {
	values []any
	column string
}

// Values returns one entry for each row that the last execution gave, in the
// order of the rows: the key that the row has in the table, or nil where it is
// not known (an expression, a row of ON DUPLICATE KEY UPDATE that existed) or
// the row was not inserted (IGNORE). Generated integer keys are int64; keys that
// the statement gave are what was bound or written.
//
// It is nil after an execution that failed, or that inserted into no ruled
// table. The keys of a statement that returns rows are there once these are
// closed.
func (k *Keys) Values() []any { return k.values }

// Int64s returns Values as int64, and whether every row has one: it does not
// where a key is no integer, is not known, or the row was not inserted.
func (k *Keys) Int64s() ([]int64, bool) {
	ints := make([]int64, len(k.values))
	for i, v := range k.values {
		var ok bool
		if ints[i], ok = v.(int64); !ok {
			return nil, false
		}
	}
	return ints, k.values != nil
}

// Column returns the name of the key column that Values are of, as the rule has
// it; of several INSERTs in one text, that of the first. It is empty where
// Values is nil.
func (k *Keys) Column() string { return k.column }

// WithKeys returns a context with which an execution, direct or of a prepared
// statement, stores its rows' keys in keys. Each execution resets them. When ctx
// has such keys already, both receive the same. When keys is nil, it returns ctx.
func WithKeys(ctx context.Context, keys *Keys) context.Context {
	if keys == nil {
		return ctx
	}
	return context.WithValue(ctx, keysKey{}, &keysRing{keys, keysOf(ctx)})
}

type keysKey struct{}

// keysRing is the keys of a context, and those of the contexts around it. Nil is
// none.
type keysRing struct {
	keys  *Keys
	outer *keysRing
}

func keysOf(ctx context.Context) *keysRing {
	r, _ := ctx.Value(keysKey{}).(*keysRing)
	return r
}

func (r *keysRing) reset() {
	for ; r != nil; r = r.outer {
		*r.keys = Keys{}
	}
}

func (r *keysRing) set(p *plan, values []any) {
	for ; r != nil; r = r.outer {
		*r.keys = Keys{values, p.targets[0].table.rule.Column}
	}
}
