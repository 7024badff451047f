package rewrite

import (
	"iter"
	"strings"

	"github.com/shardkey/shardkey/internal/sqltoken"
)

// Query returns the statement with a placeholder for each key that is generated whatever the
// arguments are. It depends only on the string, so the server gets no more different prepared
// statements than without keys.
func (plan *Plan) Query() string {
	if text := plan.bind.Load(); text != nil {
		return *text
	}
	text := plan.render(nil, 1)
	plan.bind.Store(&text)
	return text
}

// literal returns the statement with the keys of its [Generated] rows as literals.
func (plan *Plan) literal(keys *Keys) string {
	if keys.Asked != nil {
		keys = plan.Insert.addedKeys(keys)
	}
	var digits [24]byte // a buffer for an integer
	longest := 0        // the last key, since keys ascend; another length is rare
	if n := keys.Len(); n > 0 {
		longest = len(keys.appendLiteral(digits[:0], n-1))
	}
	return plan.render(keys, longest)
}

// addedKeys returns the keys without those that replace an argument.
func (in *Insert) addedKeys(keys *Keys) *Keys {
	added, next := new(Keys), 0
	for row, r := range in.Rows {
		switch {
		case r.Key == Generated:
			added.Values = append(added.Values, keys.At(next))
			next++
		case keys.asks(row):
			next++
		}
	}
	return added
}

// render returns the statement with its splices, with placeholders if keys is nil.
func (plan *Plan) render(keys *Keys, longest int) string {
	in := plan.Insert
	if in == nil {
		return plan.text
	}
	size := len(plan.text) + len(in.Rows)*(len(in.keyPrefix)+longest) + len(" LAST_INSERT_ID()")
	for _, list := range [...][]Splice{in.head, in.tail} {
		for _, s := range list {
			size += len(s.Before)
		}
	}
	if in.query != nil {
		size += 256
	}
	var out strings.Builder
	out.Grow(size)
	var digits [24]byte // a buffer for an integer
	key := digits[:0]
	pos, next := 0, 0 // next: the next key
	for s := range plan.Splices() {
		out.WriteString(plan.text[pos:s.At])
		out.WriteString(s.Before)
		if s.HasKey {
			key = append(key[:0], '?')
			if keys != nil {
				key = keys.appendLiteral(key[:0], next)
			}
			out.Write(key)
			next++
		}
		out.WriteString(s.After)
		pos = s.End
	}
	out.WriteString(plan.text[pos:])
	return out.String()
}

// Splice is a change of the statement. It replaces the bytes from At to End by Before, a key if
// HasKey, and After.
type Splice struct {
	At, End       int // equal for an addition
	Before, After string
	HasKey        bool
}

// Splices yields all changes that Query and Literal make, in order.
func (plan *Plan) Splices() iter.Seq[Splice] {
	return func(yield func(Splice) bool) {
		if plan.Insert != nil {
			plan.splices(plan.Insert, yield)
		}
	}
}

func (plan *Plan) splices(in *Insert, yield func(Splice) bool) bool {
	if in.query != nil {
		return in.queryChanges(boundCounter, "?", yield)
	}
	for _, s := range in.head {
		if !yield(s) {
			return false
		}
	}
	if in.Invalid {
		return true
	}
	for row, place := range in.places {
		s := Splice{At: int(place.at), End: int(place.end), Before: in.keyPrefix, HasKey: true}
		switch key := in.Rows[row].Key; {
		case key == Expression:
			if !yield(Splice{At: s.At, End: s.At, Before: in.checked.before}) || !yield(Splice{At: s.End, End: s.End, Before: in.checked.after}) {
				return false
			}
			continue
		case key != Generated:
			continue
		case in.ReportsFirstKey && row == in.reportRow:
			s.Before, s.After = s.Before+"LAST_INSERT_ID(", ")"
		case s.End < len(plan.text) && sqltoken.IsWordByte(plan.text[s.End]):
			s.After = " " // separate the key from the next word
		}
		if !yield(s) {
			return false
		}
	}
	for _, s := range in.tail {
		if !yield(s) {
			return false
		}
	}
	return true
}

// addition returns the splice that adds SQL at a position.
func addition(at int, sql string) []Splice { return []Splice{{At: at, End: at, Before: sql}} }

// reportExisting returns the assignment for ON DUPLICATE KEY UPDATE that reports an existing row's
// key. It doesn't change the key, and makes it the last insert ID.
func (in *Insert) reportExisting() string {
	column := sqltoken.QuoteTable(in.Schema, in.Name) + "." + sqltoken.QuoteIdentifier(in.Table.Key)
	// Both branches assign the key to itself; only the condition matters. (LAST_INSERT_ID(column)
	// as the value would be unsigned, and out of range for a negative key.)
	return column + " = IF(LAST_INSERT_ID(" + column + ") = 0, " + column + ", " + column + ")"
}
