package driver

import (
	"context"

	"github.com/shardkey/shardkey/rewrite"
)

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
	case s.in.Table.Rule.(*table).kind() == rewrite.Text:
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
	if s.in.Table.Rule.(*table).kind() == rewrite.Text {
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
