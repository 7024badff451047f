package outcome

import "github.com/shardkey/shardkey/rewrite"

// concludeKeysInQuery concludes about an INSERT … SELECT whose query has the keys. They aren't reported,
// unless shardkey doesn't change the query.
func (s *Sent) concludeKeysInQuery(before LastID, r Report) Conclusion {
	c := Conclusion{LastID: before.After(Lost)}
	if s.SelectKey == rewrite.Literal || s.Column.OtherHasAutoIncrement {
		c.LastInsertID = r.InsertID
	}
	return c
}

// concludeSelect concludes about an INSERT … SELECT of several rows.
func (s *Sent) concludeSelect(before LastID, r Report, answers *Answers) (Conclusion, Question) {
	f := found{is: s.verdict(r, false)}
	switch f.is {
	case noneInserted:
		if s.WantsKeys {
			f.selected = make([]any, s.Counted)
		}
	case allInserted:
		n := r.Affected
		if !s.WantsKeys {
			n = 1 // the others aren't reported
		}
		f.selected = make([]any, n)
		for i := range f.selected {
			f.selected[i] = s.Keys.At(i)
		}
	default:
		answer := answers[WhichKeys]
		if answer == nil {
			return Conclusion{}, WhichKeys
		}
		f.selected, f.doubt = s.selected(answer), answer.Err
	}
	first := s.firstSelected(f.selected, r)
	c := Conclusion{LastInsertID: first, LastID: before.After(s.changeBySelect(first, r)), found: &f}
	switch {
	case s.Returning:
		c.LastInsertID = 0 // the server reports no ID with rows
	case s.Column.OtherHasAutoIncrement:
		c.LastInsertID = max(r.InsertID, 0) // the other column's value, as without a rule
	}
	return c, Nothing
}

// selected returns the keys of the rows in order, nil for a row that wasn't inserted. There may be more
// rows than were counted.
func (s *Sent) selected(answer *Answer) []any {
	keys := make([]any, s.Counted)
	for i, key := range s.RowKeys() {
		switch {
		case !answer.Present[text(key)]:
		case i < len(keys):
			keys[i] = key
		default:
			keys = append(append(keys, make([]any, i-len(keys))...), key)
		}
	}
	return keys
}

// firstSelected returns the first key that was inserted as an insert ID, 0 for none.
func (s *Sent) firstSelected(keys []any, r Report) int64 {
	if s.Replace && r.Affected != 0 && s.Keys.Len() > 0 && !s.maySkip() {
		return s.id(0) // even if a later row has replaced it
	}
	for _, key := range keys {
		if id := InsertID(key); id != 0 {
			return id
		}
	}
	return 0
}

// changeBySelect returns what the statement did to LAST_INSERT_ID(), with which the keys count.
func (s *Sent) changeBySelect(first int64, r Report) Change {
	switch {
	case s.Column.OtherHasAutoIncrement:
		return Lost
	case first != 0 && r.InsertID == first && s.id(0) == first:
		return Told(uint64(first))
	case first != 0:
		return Untold(uint64(first))
	case r.Affected != 0 || r.InsertID != 0 || s.Counted > 0:
		return Moved
	}
	return Change{}
}
