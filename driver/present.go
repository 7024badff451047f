package driver

import (
	"context"

	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/rewrite"
)

// findExisting takes the insert id of an upsert of many rows for the key of the
// row that existed, if it was one. It may also be a key that the statement gave.
func (e *execution) findExisting(k *insertion, said said) {
	if !k.in.Guarded || k.column.OtherHasAutoIncrement() || said.id == 0 || k.count(rowNotInserted) != 1 || k.count(rowUncertain) > 0 {
		return
	}
	next := 0
	for i := range k.in.Rows() {
		if toInt64(e.keyOf(k, i, &next)) == said.id {
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
	keys := make([]any, k.in.Rows())
	next := 0
	for i := range keys {
		keys[i] = e.keyOf(k, i, &next)
	}
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
// inserted. A given key that is in the table may be another row's.
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
