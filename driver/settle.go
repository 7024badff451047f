package driver

import (
	"context"
	"database/sql/driver"
	"strings"

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
}

// settle returns the insert id that an AUTO_INCREMENT column would report.
func (s *settler) settle(ctx context.Context) int64 {
	existed := false
	switch {
	case s.in.OnDuplicate:
		existed = s.settleDuplicates(ctx)
	case s.in.Ignore, s.in.Replace && s.in.Rows() > 1:
		s.settleDropped(ctx)
	}
	generated, ok := s.tellSession()
	if s.in.Guarded && existed {
		s.conn.session.metExisting()
	}
	switch {
	case s.in.Table.Rule.(*table).kind() == rewrite.Text:
		return 0
	case ok:
		return generated
	case existed && !s.changed():
		return 0
	case s.baseID != 0 && (existed || s.in.MentionsLastID):
		return s.baseID
	case existed:
		return 0
	}
	return s.lastGiven()
}

// settleDropped is for rows that IGNORE may have dropped, or that a later row
// of the same REPLACE may have replaced.
func (s *settler) settleDropped(ctx context.Context) {
	switch {
	case s.affected == int64(s.in.Rows()):
	case s.affected == 0:
		s.mark(func(int) rowState { return rowNotInserted })
	default:
		s.verify(ctx)
	}
}

// settleDuplicates is for ON DUPLICATE KEY UPDATE: it tells whether a row
// existed.
func (s *settler) settleDuplicates(ctx context.Context) (existed bool) {
	rows := int64(s.in.Rows())
	server := s.conn.connector.server.Load()
	switch {
	case s.in.Guarded && s.baseID == 0 && !s.in.Ignore:
		return false
	case s.in.Guarded && rows == 1 && s.baseID != 0,
		rows == 1 && (s.affected == 2 || s.affected == 0):
		s.mark(func(int) rowState { return rowNotInserted })
	case !s.in.Guarded && rows == 1 && s.affected == 1 && server != nil && !server.foundRows:
		return false
	default:
		s.verify(ctx)
	}
	dropped := 0
	for i := range s.in.Rows() {
		if s.states.of(i) != rowInserted {
			dropped++
		}
	}
	if s.in.Guarded && dropped == 1 && s.baseID != 0 {
		s.states.existing = s.baseID
		for i := range s.states.states {
			if s.states.states[i] == rowUncertain {
				s.states.states[i] = rowNotInserted
			}
		}
	}
	return dropped > 0
}

// changed tells whether a row that existed was changed: it counts twice then.
// One that stayed as it is counts once with clientFoundRows, else not at all.
func (s *settler) changed() bool {
	rows := int64(s.in.Rows())
	if server := s.conn.connector.server.Load(); rows == 1 || server == nil || server.foundRows {
		return s.affected > rows
	}
	return s.affected > 0
}

func (s *settler) mark(state func(i int) rowState) {
	s.states.states = make([]rowState, s.in.Rows())
	for i := range s.states.states {
		s.states.states[i] = state(i)
	}
}

// verify asks the server which of the generated keys are in the table. What
// cannot be asked stays uncertain: the statement itself has succeeded.
func (s *settler) verify(ctx context.Context) {
	present, err := s.conn.presentKeys(ctx, s.in, &s.keys)
	next, inserted := 0, 0
	s.mark(func(i int) rowState {
		if !s.isGenerated(i) {
			return rowUncertain
		}
		key := s.keys.At(next)
		next++
		switch {
		case err != nil:
			return rowUncertain
		case present[keyText(key)]:
			inserted++
			return rowInserted
		}
		return rowNotInserted
	})
	if err == nil && !s.in.OnDuplicate {
		s.settleGiven(s.affected - int64(inserted))
	}
}

// settleGiven decides on the rows whose keys were given, of which so many were
// inserted. A given key that is in the table may be another row's.
func (s *settler) settleGiven(inserted int64) {
	given := int64(s.in.Rows() - s.keys.Len())
	state := rowUncertain
	switch {
	case s.in.Replace, inserted == given:
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

// lastGiven is the last row's key when the statement gave it and the row was
// inserted.
func (s *settler) lastGiven() int64 {
	i := s.in.Rows() - 1
	if i < 0 || s.states.of(i) != rowInserted {
		return 0
	}
	next := 0
	return toInt64(s.keyOf(s.insertKeys, i, &next))
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

// maxKeysInQuestion is how many keys one question names.
const maxKeysInQuestion = 1000

// presentKeys asks, on the same connection, which keys are in the table.
func (c *conn) presentKeys(ctx context.Context, in *rewrite.Insert, keys *rewrite.Keys) (map[string]bool, error) {
	present := map[string]bool{}
	column := rewrite.QuoteIdentifier(in.Table.KeyColumn)
	for start := 0; start < keys.Len(); start += maxKeysInQuestion {
		query := []byte("SELECT " + column + " FROM " + rewrite.QuoteTable(in.Schema, in.Name) + " WHERE " + column + " IN (")
		for i := start; i < min(start+maxKeysInQuestion, keys.Len()); i++ {
			if i > start {
				query = append(query, ", "...)
			}
			query, _ = rewrite.AppendLiteral(query, keys.At(i))
		}
		err := c.queryRows(ctx, string(append(query, ')')), func(row []driver.Value) {
			present[strings.Clone(text(row[0]))] = true
		})
		if err != nil {
			return nil, err
		}
	}
	return present, nil
}

// keyText is a key as the server's answer shows it.
func keyText(key any) string { return text(key) }
