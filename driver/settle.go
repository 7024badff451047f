package driver

import (
	"context"

	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/rewrite"
)

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

// settleInsert finds out what one insert came to, and returns the insert id that an AUTO_INCREMENT
// column would report: the first generated key that was inserted; else, when the statement inserted
// or changed anything, the last row's key; else 0.
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

// judge says what is known of an insert's rows. It takes back an insert id that is not a key.
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

// insertFacts are what judge goes by, next to what the server says.
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
	switch {
	case k.carries:
		f.key = k.carriedKey()
	case f.guarded && k.isGenerated(k.in.Rows()-1):
		f.key = k.generated(k.keys.Len() - 1)
	case f.guarded && f.rows == 1:
		f.key = toInt64(e.storedKey(k, 0))
	}
}

// verdict is what is known of an insert's rows from what the server says.
type verdict uint8

const (
	allInserted verdict = iota
	noneInserted
	// oneExists: the only row exists already, and the insert id is its key.
	oneExists
	// laterReplaced: all were inserted, and a row of REPLACE may have replaced one before it.
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
	case f.upsert && f.rows > 1:
		// (The key of the last row was no existing row's, if it was generated.)
		if f.guarded && !f.beside && all && (said.id == 0 && !f.zero || said.id == f.key && said.id != 0) {
			return allInserted
		}
		return unclear
	case f.upsert && (!f.guarded || f.unsure || f.beside):
		switch {
		case changed && f.guarded && said.id != 0:
			return oneExists
		case changed:
			return noneInserted
		case all && !f.foundRows:
			return allInserted
		}
		return unclear
	case f.upsert && f.carries:
		switch {
		case said.id != f.key:
			return oneExists
		case none:
			return noneInserted // by IGNORE
		}
		return allInserted
	case f.upsert:
		switch {
		case f.ignore && none && said.id == 0:
			return noneInserted
		case changed, said.id != 0 && said.id != f.key:
			return oneExists
		}
		return allInserted
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
		if k.rows.of(i) == rowInserted {
			return k.generated(next), true
		}
		next++
	}
	return 0, false
}

// lastRowsKey is the key of the last row: the one that the statement gave, or
// that of the row that was there. It is 0 when only the server knows.
func (e *execution) lastRowsKey(k *insertion, said said) int64 {
	last := k.in.Rows() - 1
	switch {
	case k.in.Ignore && !k.in.OnDuplicate && k.rows != nil && k.rows.lastPresent:
	case k.isGenerated(last) && said.id == k.generated(k.keys.Len()-1):
		return 0 // an ignored row's: the server returns the last key of an AUTO_INCREMENT column
	case k.rows.of(last) != rowInserted:
		return said.id
	}
	if k.isGenerated(last) {
		return 0 // the first generated key was reported
	}
	return toInt64(e.storedKey(k, last))
}

// findExisting takes the insert id of an upsert of many rows for the key of the
// row that existed, if it was one. It may also be a key that the statement gave.
func (e *execution) findExisting(k *insertion, said said) {
	if !k.in.Guarded || k.column.OtherHasAutoIncrement() || said.id == 0 || k.count(rowNotInserted) != 1 || k.count(rowUncertain) > 0 {
		return
	}
	for _, key := range e.rowKeys(k) {
		if toInt64(key) == said.id {
			return
		}
	}
	k.rows.existing = said.id
}

// settleReplaced is for rows that a later row of the same REPLACE may have
// replaced. Only an execution that wants the keys asks: AUTO_INCREMENT reports
// the first key of a REPLACE in any case.
func (e *execution) settleReplaced(ctx context.Context, k *insertion, said said) {
	if e.out == nil {
		k.mark(rowUncertain)
	} else {
		e.verify(ctx, k, said)
	}
}

// verify asks the server which of the rows' keys are in the table. What cannot
// be asked stays uncertain: the statement itself has succeeded.
func (e *execution) verify(ctx context.Context, k *insertion, said said) {
	keys := e.rowKeys(k)
	k.mark(rowUncertain)
	present, err := e.session.PresentKeys(ctx, k.in, keys)
	if err != nil {
		return
	}
	last := keys[len(keys)-1]
	k.rows.lastPresent = last != nil && present[session.Text(last)]
	generated := int64(0)
	for i, key := range keys {
		switch {
		case key == nil:
		case !present[session.Text(key)] && k.isExpression(i):
			// It has another key, or is not there.
		case !present[session.Text(key)]:
			k.rows.states[i] = rowNotInserted
		default:
			k.rows.states[i] = rowInserted
			if k.isGenerated(i) {
				generated++
			}
		}
	}
	if k.in.Ignore && !k.in.OnDuplicate {
		k.settleGiven(said.affected - generated)
	}
}

// isKey reports whether an insert id is the key of a row, on a server where it may be
// something else.
func (e *execution) isKey(ctx context.Context, k *insertion, id int64) bool {
	present, err := e.session.PresentKeys(ctx, k.in, []any{id})
	return err == nil && present[session.Text(id)]
}

// isExpression reports whether an expression may have given row i its key, in
// place of the generated one.
func (k *insertion) isExpression(i int) bool {
	kind, _ := k.in.Slot(i)
	return kind == rewrite.SlotExpression
}

func (k *insertion) hasExpressions() bool {
	if k.in.AllFilled() {
		return false
	}
	for i := range k.in.Rows() {
		if k.isExpression(i) {
			return true
		}
	}
	return false
}

// settleGiven decides on the rows whose keys were given, of which so many were
// inserted. A explicit key that is in the table may be another row's.
func (k *insertion) settleGiven(inserted int64) {
	state := rowUncertain
	switch inserted {
	case int64(k.in.Rows() - k.keys.Len()):
		state = rowInserted
	case 0:
		state = rowNotInserted
	}
	for i := range k.rows.states {
		if !k.isGenerated(i) {
			k.rows.states[i] = state
		}
	}
}
