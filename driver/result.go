package driver

import (
	"context"
	"database/sql/driver"
	"math"

	"github.com/go-sql-driver/mysql"
	"github.com/shardkey/shardkey/rewrite"
)

// KeysResult is implemented, beside mysql.Result, by the driver's results of
// statements that were filled; (*sql.Conn).Raw reaches them.
type KeysResult interface {
	mysql.Result
	// Keys returns one entry a row, as [Keys.Values] does.
	Keys() []any
}

// result is what a filled statement came to. The base's result says how many
// rows were affected; the insert ids are ours.
type result struct {
	driver.Result
	execution *execution
	ids       []int64 // one a statement; nil when there is one statement
	id        int64   // the last one
}

var _ KeysResult = (*result)(nil)

func (r *result) LastInsertId() (int64, error) { return r.id, nil }

func (r *result) Keys() []any { return r.execution.values() }

func (r *result) AllLastInsertIds() []int64 {
	if r.ids == nil {
		return []int64{r.id}
	}
	return append([]int64(nil), r.ids...)
}

func (r *result) AllRowsAffected() []int64 {
	if all, ok := r.Result.(mysql.Result); ok {
		return all.AllRowsAffected()
	}
	n, err := r.RowsAffected()
	if err != nil {
		return nil
	}
	return []int64{n}
}

// outcome is which rows of an execution's inserts came to stand in the table.
type outcome struct {
	inserted []rowStates // one for each insert
	one      [1]rowStates
}

// rowStates says of each row whether it was inserted; nil: all were.
type rowStates struct {
	states []rowState
	// existing is the key of the only row that existed, where it is known.
	existing any
}

type rowState uint8

const (
	rowInserted rowState = iota
	rowNotInserted
	rowUncertain
)

func (s *rowStates) of(i int) rowState {
	if s.states == nil {
		return rowInserted
	}
	return s.states[i]
}

// settle finds out which rows were inserted and what the insert ids are.
func (e *execution) settle(ctx context.Context, base driver.Result) (driver.Result, error) {
	r := &e.result
	r.Result, r.execution = base, e
	e.makeStates()
	if len(e.inserts) == 1 && e.fill.plan.Statements == 1 {
		affected, err := base.RowsAffected()
		if err != nil {
			affected = unknownCount
		}
		id, _ := base.LastInsertId()
		e.settler = settler{execution: e, insertKeys: &e.inserts[0], states: &e.inserted[0], affected: affected, baseID: id, last: true}
		r.id = e.settler.settle(ctx)
	} else {
		e.settleEach(ctx, base)
	}
	if e.out != nil {
		e.out.values = e.values()
	}
	return r, nil
}

func (e *execution) makeStates() {
	if e.inserted = e.outcome.one[:]; len(e.inserts) > 1 {
		e.inserted = make([]rowStates, len(e.inserts))
	}
}

// settleEach is settle for a text of several statements.
func (e *execution) settleEach(ctx context.Context, base driver.Result) {
	affected, ids := e.perStatement(base)
	for i := range e.inserts {
		k := &e.inserts[i]
		if k.in.Refused {
			continue
		}
		at := min(k.in.Statement, len(ids)-1)
		e.settler = settler{execution: e, insertKeys: k, states: &e.inserted[i], affected: affected[at], baseID: ids[at],
			last: k.in.Statement == e.fill.plan.Statements-1}
		ids[at] = e.settler.settle(ctx)
	}
	e.result.id, e.result.ids = ids[len(ids)-1], ids
}

// unknownCount stands for rows affected that the base did not tell.
const unknownCount = math.MinInt64

// perStatement gives rows affected and insert ids of each statement of the
// text. A base that tells only of the last one leaves the others unknown.
func (e *execution) perStatement(base driver.Result) (affected, ids []int64) {
	n := e.fill.plan.Statements
	if all, ok := base.(mysql.Result); ok && n > 1 {
		affected, ids = all.AllRowsAffected(), all.AllLastInsertIds()
		if len(affected) == n && len(ids) == n {
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

// settleRows is settle for a text that returns rows: how many rows were
// affected is not known, and the connection is busy until the rows are read.
func (e *execution) settleRows() {
	e.makeStates()
	s := &e.settler
	for i := range e.inserts {
		k := &e.inserts[i]
		if k.in.Refused {
			continue
		}
		*s = settler{execution: e, insertKeys: k, states: &e.inserted[i], affected: unknownCount,
			last: k.in.Statement == e.fill.plan.Statements-1}
		if k.in.Ignore || k.in.OnDuplicate {
			s.mark(func(int) rowState { return rowUncertain })
		}
		s.tellSession()
	}
	if e.out != nil {
		e.out.values = e.values()
	}
}

// values are the keys of all rows of all inserts.
func (e *execution) values() []any {
	var values []any
	for i := range e.inserts {
		k := &e.inserts[i]
		if k.in.Refused {
			continue
		}
		if values == nil {
			values = make([]any, 0, k.in.Rows())
		}
		next := 0
		for row := range k.in.Rows() {
			key := e.keyOf(k, row, &next)
			switch e.inserted[i].of(row) {
			case rowNotInserted:
				key = e.inserted[i].existing
			case rowUncertain:
				key = nil
			}
			values = append(values, key)
		}
	}
	return values
}

// keyOf is the key that a row was given; nil when the server made it.
func (e *execution) keyOf(k *insertKeys, row int, next *int) any {
	if k.isGenerated(row) {
		*next++
		return k.keys.At(*next - 1)
	}
	switch kind, param := k.in.Slot(row); kind {
	case rewrite.SlotParam:
		return boundKey(k.in.Table.Rule.(*table).kind(), e.user[param].Value)
	case rewrite.SlotKept:
		return e.fill.plan.Kept(k.in, row, e.fill.key.mode)
	}
	return nil
}

// boundKey is a bound key as it stands in the table, nil when only the server
// knows.
func boundKey(kind rewrite.Kind, bound driver.Value) any {
	switch v := bound.(type) {
	case int64, uint64:
		return v
	case string:
		if kind == rewrite.KindInteger {
			return rewrite.ParseInteger(v)
		}
		return v
	case []byte:
		if kind == rewrite.KindInteger {
			return rewrite.ParseInteger(string(v))
		}
		return append([]byte(nil), v...)
	}
	return nil
}

// settler finds out what one insert came to: which of its rows stand in the
// table, what its insert id is, and what LAST_INSERT_ID() must return.
type settler struct {
	*execution
	*insertKeys
	states   *rowStates
	affected int64 // as the server reports it, or unknownCount
	baseID   int64 // the server's insert id
	last     bool  // it is the text's last statement
	// lastPresent: the last row's key was seen in the table, if not as its own.
	lastPresent bool
}

// settle returns the insert id that an AUTO_INCREMENT column would report: the
// first generated key that was inserted; else, when the statement inserted or
// changed anything, the last row's key; else 0.
func (s *settler) settle(ctx context.Context) int64 {
	switch {
	case s.in.OnDuplicate:
		s.settleDuplicates(ctx)
	case s.in.Ignore:
		s.settleIgnored(ctx)
	}
	generated, ok := s.tellSession()
	if s.in.Guarded && s.baseID != 0 {
		s.conn.session.metExisting()
	}
	if s.in.Replace && s.in.Rows() > 1 {
		s.settleReplaced(ctx)
	}
	switch {
	case s.in.Table.Rule.(*table).kind() == rewrite.KindText:
		return 0
	case ok:
		return generated
	case s.in.MentionsLastID && s.baseID != 0:
		return s.baseID
	case !s.changed():
		return 0
	}
	return s.lastRowsKey()
}

// settleReplaced is for rows that a later row of the same REPLACE may have
// replaced. Only an execution that wants the keys asks: AUTO_INCREMENT reports
// the first key of a REPLACE in any case.
func (s *settler) settleReplaced(ctx context.Context) {
	switch {
	case s.affected == int64(s.in.Rows()):
	case s.out == nil:
		s.mark(func(int) rowState { return rowUncertain })
	default:
		s.verify(ctx)
	}
}

// settleIgnored is for rows that IGNORE may have dropped.
func (s *settler) settleIgnored(ctx context.Context) {
	switch {
	case s.affected == int64(s.in.Rows()):
	case s.affected == 0:
		s.mark(func(int) rowState { return rowNotInserted })
	default:
		s.verify(ctx)
	}
}

// settleDuplicates is for ON DUPLICATE KEY UPDATE. A guarded statement tells by
// its insert id whether any row existed.
func (s *settler) settleDuplicates(ctx context.Context) {
	rows := int64(s.in.Rows())
	server := s.conn.connector.server.Load()
	switch {
	case s.in.Guarded && s.baseID == 0 && (!s.in.Ignore || s.affected == rows):
	case s.in.Guarded && s.baseID != 0 && rows == 1, rows == 1 && (s.affected == 2 || s.affected == 0):
		s.mark(func(int) rowState { return rowNotInserted })
	case !s.in.Guarded && rows == 1 && s.affected == 1 && server != nil && !server.foundRows:
	default:
		s.verify(ctx)
	}
	if s.in.Guarded && s.baseID != 0 && s.count(rowNotInserted) == 1 && s.count(rowUncertain) == 0 {
		s.states.existing = s.baseID
	}
}

func (s *settler) count(state rowState) (n int) {
	for i := range s.in.Rows() {
		if s.states.of(i) == state {
			n++
		}
	}
	return n
}

// changed tells whether the statement inserted or changed anything. With
// clientFoundRows a row that existed and stayed as it is counts once as well.
func (s *settler) changed() bool {
	server := s.conn.connector.server.Load()
	found := server == nil || server.foundRows
	if !s.in.OnDuplicate || s.count(rowInserted) > 0 || !found && s.in.Rows() > 1 {
		return s.affected != 0
	}
	return s.affected > int64(s.in.Rows())
}

func (s *settler) mark(state func(i int) rowState) {
	s.states.states = make([]rowState, s.in.Rows())
	for i := range s.states.states {
		s.states.states[i] = state(i)
	}
}

// verify asks the server which of the rows' keys are in the table. What cannot
// be asked stays uncertain: the statement itself has succeeded.
func (s *settler) verify(ctx context.Context) {
	keys := make([]any, s.in.Rows())
	next := 0
	for i := range keys {
		keys[i] = s.keyOf(s.insertKeys, i, &next)
	}
	present, err := s.conn.presentKeys(ctx, s.in, keys)
	s.lastPresent = keys[len(keys)-1] != nil && present[text(keys[len(keys)-1])]
	generated := 0
	s.mark(func(i int) rowState {
		switch {
		case err != nil, keys[i] == nil:
			return rowUncertain
		case !present[text(keys[i])]:
			return rowNotInserted
		case s.isGenerated(i):
			generated++
		}
		return rowInserted
	})
	if s.in.Ignore && !s.in.OnDuplicate && err == nil {
		s.settleGiven(s.affected - int64(generated))
	}
}

// settleGiven decides on the rows whose keys were given, of which so many were
// inserted. A given key that is in the table may be another row's.
func (s *settler) settleGiven(inserted int64) {
	given := int64(s.in.Rows() - s.keys.Len())
	state := rowUncertain
	switch {
	case inserted == given:
		state = rowInserted
	case inserted == 0:
		state = rowNotInserted
	}
	for i := range s.states.states {
		if !s.isGenerated(i) {
			s.states.states[i] = state
		}
	}
}

// tellSession remembers what LAST_INSERT_ID() must return after the statement:
// the first generated key that was inserted, if any, which is returned.
func (s *settler) tellSession() (first int64, ok bool) {
	if s.in.Table.Rule.(*table).kind() == rewrite.KindText {
		return 0, false
	}
	next := 0
	for i := range s.in.Rows() {
		if !s.isGenerated(i) {
			continue
		}
		next++
		if s.states.of(i) == rowInserted {
			first, ok = toInt64(s.keys.At(next-1)), true
			break
		}
	}
	switch {
	case s.in.InText:
		s.conn.session.told(first)
	case ok && s.last:
		s.conn.session.owe(first)
	}
	return first, ok
}

// lastRowsKey is the key of the last row: the one that the statement gave, or
// that of the row that was there. It is 0 when only the server knows.
func (s *settler) lastRowsKey() int64 {
	last := s.in.Rows() - 1
	switch {
	case s.in.Ignore && !s.in.OnDuplicate && s.lastPresent:
	case s.states.of(last) != rowInserted:
		return s.baseID
	}
	if s.isGenerated(last) {
		return 0 // the first generated key was reported
	}
	next := 0
	return toInt64(s.keyOf(s.insertKeys, last, &next))
}

func toInt64(key any) int64 {
	switch key := key.(type) {
	case int64:
		return key
	case uint64:
		return int64(key) // as the base does with the server's
	}
	return 0
}

// Keys receives the keys of an execution's rows: see [WithKeys]. The zero value
// is ready. It must not be read while an execution with it is running.
type Keys struct {
	values []any
}

// Values returns one entry for each row that the last execution gave, in the
// order of the rows: the key that the row has in the table, or nil where it is
// not known (an expression, a row of ON DUPLICATE KEY UPDATE that existed) or
// the row was not inserted (IGNORE). Generated integer keys are int64; keys that
// the statement gave are what was bound or written.
//
// It is nil after an execution that failed, or that inserted into no ruled
// table.
func (k *Keys) Values() []any { return k.values }

func (k *Keys) reset() {
	if k != nil {
		k.values = nil
	}
}

type keysKey struct{}

// WithKeys returns a context with which an execution, direct or of a prepared
// statement, stores its rows' keys in keys. Each execution resets them.
func WithKeys(ctx context.Context, keys *Keys) context.Context {
	return context.WithValue(ctx, keysKey{}, keys)
}

func keysOf(ctx context.Context) *Keys {
	keys, _ := ctx.Value(keysKey{}).(*Keys)
	return keys
}
