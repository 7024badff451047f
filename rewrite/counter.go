package rewrite

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/shardkey/shardkey/internal/sqltoken"
)

// The key of each row of an INSERT … SELECT is an expression that the server evaluates. It counts with
// the session's LAST_INSERT_ID(), which is the next key: LAST_INSERT_ID(k) sets it.
//
// Before the first row it is the value that the session had before. After the last row that was
// counted it is the first key, so the server reports that as the insert ID. If more rows follow, they
// get the additional keys. The last of these isn't used: in that state, and in one that isn't a key,
// the expression causes error 1690 (out of range), which the servers raise even with IGNORE. So if
// another part of the statement changes LAST_INSERT_ID(), no row is inserted.

// counter are the states of the expression.
type counter struct {
	first     move
	moves     []move // from states that LAST_INSERT_ID() + step doesn't follow
	stop      uint64 // the state without a key
	low, high uint64 // the smallest and the largest key
	step      uint64 // between most keys
}

// move is from a state to the next one, with the key of the row.
type move struct{ from, to, key uint64 }

const (
	// boundMoves is the number of moves in the statement with placeholders.
	boundMoves = 5
	// maxListed is the maximum number of keys that aren't consecutive integers.
	maxListed = 10_000
)

const (
	moveFormat = " WHEN %v THEN IF(LAST_INSERT_ID(%v), %v, 0)"
	outOfKeys  = "LAST_INSERT_ID(1) + ~0"
)

// boundCounter is the expression with placeholders. The statement doesn't depend on the keys, so
// servers can keep it prepared. Places that aren't used repeat the first state, which precedes them.
// (NULL would make the result a DOUBLE on MariaDB.)
var boundCounter = "CASE LAST_INSERT_ID()" + fmt.Sprintf(moveFormat, "?", "?", "?") + " WHEN ? THEN " + outOfKeys +
	strings.Repeat(fmt.Sprintf(moveFormat, "?", "?", "?"), boundMoves) + " ELSE " + nextKey("?", "?", "?") + " END"

var boundCount = strings.Count(boundCounter, "?")

// nextKey returns SQL for a key whose next key follows it.
func nextKey(low, high, step string) string {
	return "IF(LAST_INSERT_ID() BETWEEN " + low + " AND " + high +
		", LAST_INSERT_ID(LAST_INSERT_ID() + " + step + ") - " + step + ", " + outOfKeys + ")"
}

// newCounter returns the counter for n rows. Further keys are additional ones. last is LAST_INSERT_ID().
func newCounter(keys []int64, n int, last uint64) (*counter, error) {
	c := &counter{low: math.MaxUint64}
	for _, k := range keys {
		if k <= 0 {
			return nil, errors.New("keys for a query must be positive integers")
		}
		c.low, c.high = min(c.low, uint64(k)), max(c.high, uint64(k))
	}
	if c.low <= last && last <= c.high {
		return nil, errors.New("LAST_INSERT_ID() is one of the keys, or between them; send SELECT LAST_INSERT_ID(0) first")
	}
	c.step = mostSteps(keys)
	key := func(i int) uint64 { return uint64(keys[i]) }
	c.stop = key(0)
	c.first = move{last, key(min(1, n-1)), key(0)}
	c.skip(keys[:n], 1)
	if n > 1 {
		c.moves = append(c.moves, move{key(n - 1), key(0), key(n - 1)})
	}
	if more := keys[n:]; len(more) > 1 {
		c.stop = uint64(more[len(more)-1])
		c.moves = append(c.moves, move{key(0), uint64(more[1]), uint64(more[0])})
		c.skip(more, 1)
	}
	return c, nil
}

// mostSteps returns the difference between most neighbours, if one is that of the majority.
func mostSteps(keys []int64) uint64 {
	step, votes := int64(1), 0
	for i := 1; i < len(keys); i++ {
		switch d := keys[i] - keys[i-1]; {
		case d == step:
			votes++
		case votes > 0:
			votes--
		case d > 0:
			step, votes = d, 1
		}
	}
	return uint64(step)
}

// skip adds the moves between keys that step doesn't separate, from an index on.
func (c *counter) skip(keys []int64, from int) {
	for i := from; i < len(keys)-1; i++ {
		if k, next := uint64(keys[i]), uint64(keys[i+1]); next != k+c.step {
			c.moves = append(c.moves, move{k, next, k})
		}
	}
}

// values are the values for boundCounter. ok is false if it has too few places.
func (c *counter) values() (values []uint64, ok bool) {
	if len(c.moves) > boundMoves {
		return nil, false
	}
	values = append(values, c.first.from, c.first.to, c.first.key, c.stop)
	for i := range boundMoves {
		m := move{from: c.first.from}
		if i < len(c.moves) {
			m = c.moves[i]
		}
		values = append(values, m.from, m.to, m.key)
	}
	return append(values, c.low, c.high, c.step, c.step), true
}

// literal returns the expression with literals.
func (c *counter) literal() string {
	var b strings.Builder
	if values, ok := c.values(); ok {
		for i, part := range strings.Split(boundCounter, "?") {
			if b.WriteString(part); i < len(values) {
				fmt.Fprint(&b, values[i])
			}
		}
		return b.String()
	}
	// The servers search a list of constants fast, and most rows need no more than that.
	fmt.Fprintf(&b, "IF(LAST_INSERT_ID() IN (%d,%d", c.first.from, c.stop)
	for _, m := range c.moves {
		fmt.Fprintf(&b, ",%d", m.from)
	}
	fmt.Fprintf(&b, "), CASE LAST_INSERT_ID()"+moveFormat+" WHEN %d THEN "+outOfKeys, c.first.from, c.first.to, c.first.key, c.stop)
	for _, m := range c.moves {
		fmt.Fprintf(&b, moveFormat, m.from, m.to, m.key)
	}
	low, step := fmt.Sprint(c.low), fmt.Sprint(c.step)
	return b.String() + " END, " + nextKey(low, fmt.Sprint(c.high), step) + ")"
}

// listed returns the expression for keys that aren't integers. LAST_INSERT_ID(), which must be 0
// before, counts the rows.
func listed(keys *Keys) string {
	b := []byte("IFNULL(ELT(LAST_INSERT_ID(LAST_INSERT_ID() + 1)")
	for i := range keys.Len() {
		b = append(b, ", "...)
		b, _ = sqltoken.AppendLiteral(b, keys.At(i))
	}
	return string(append(b, "), "+outOfKeys+")"...))
}

// ints returns the keys as integers, if they are.
func (k *Keys) ints() ([]int64, bool) {
	if k.Values == nil {
		return k.Ints, true
	}
	ints := make([]int64, len(k.Values))
	for i, v := range k.Values {
		switch v := v.(type) {
		case int64:
			ints[i] = v
		case uint64:
			ints[i] = int64(v) // newCounter refuses a negative one
		default:
			return nil, false
		}
	}
	return ints, true
}

var errTooManyKeys = fmt.Errorf("a query can get at most %d keys that aren't consecutive integers", maxListed)

// RewriteSelect returns an INSERT … SELECT and its arguments with keys, for a statement with a
// [Plan.Count]: the number of keys is the result of that query, or at least 1. lastInsertID is the
// session's LAST_INSERT_ID(), which must not change before the statement is sent. It must be 0 for
// keys that aren't integers. Integer keys must be positive. If the query returns more rows than there
// are keys, the server returns error 1690 and inserts no row. Without keys, it does so for any row.
func (plan *Plan) RewriteSelect(args, keys []any, lastInsertID uint64) (string, []any, error) {
	switch {
	case plan.Count() == "":
		return "", nil, errors.New("shardkey: expected an INSERT … SELECT that needs keys")
	case len(args) != plan.NumArgs:
		return "", nil, errArgs(plan.NumArgs, len(args))
	}
	k := &Keys{Values: make([]any, len(keys)), Counted: len(keys), LastInsertID: lastInsertID}
	for i, key := range keys {
		k.Values[i] = sqltoken.PlainValue(key)
	}
	return plan.bindValues(args, k, len(args) == 0)
}

// counted returns an INSERT … SELECT with keys, and the values of the placeholders that [Plan.Query]
// adds. There are none if literal is set or the keys don't fit.
func (plan *Plan) counted(keys *Keys, literal bool) (query string, values []any, err error) {
	last := keys.LastInsertID
	switch {
	case keys.Len() == 0:
		return plan.withChanges(outOfKeys, fmt.Sprint(last)), nil, nil
	case keys.Counted < 1 || keys.Len() < keys.Counted:
		return "", nil, fmt.Errorf("shardkey: expected at least %d keys, found %d", max(keys.Counted, 1), keys.Len())
	}
	ints, ok := keys.ints()
	if !ok {
		if keys.Len() > maxListed || last != 0 {
			return "", nil, errTooManyKeys
		}
		return plan.withChanges(listed(keys), "0"), nil, nil
	}
	c, err := newCounter(ints, keys.Counted, last)
	if err != nil {
		return "", nil, fmt.Errorf("shardkey: %w", err)
	}
	if values, ok := c.values(); ok && !literal {
		return plan.Query(), plan.Insert.counterValues(values, last), nil
	}
	if len(c.moves) > maxListed {
		return "", nil, errTooManyKeys
	}
	return plan.withChanges(c.literal(), fmt.Sprint(last)), nil, nil
}

// isUnsigned reports whether MySQL gives a place in boundCounter an unsigned type, as it does where the
// value is compared with LAST_INSERT_ID() or added to it. With a value of another type it would prepare
// the statement again, and an argument of the program might have another type then.
func isUnsigned(place int) bool {
	const start, end = 4, 4 // the places before and after those of the other moves
	switch {
	case place < start:
		return place%3 == 0
	case place < boundCount-end:
		return (place-start)%3 == 0
	}
	return true
}

// counterValues returns the values of the placeholders, given those of one expression.
func (in *Insert) counterValues(ofKey []uint64, last uint64) (all []any) {
	add := func(v uint64, unsigned bool) {
		if v <= math.MaxInt64 && !unsigned {
			all = append(all, int64(v))
		} else {
			all = append(all, v)
		}
	}
	for _, c := range in.query.changes {
		switch c.made {
		case theKey:
			for i, v := range ofKey {
				add(v, isUnsigned(i))
			}
		case theLast:
			add(last, false)
		}
	}
	return all
}

// withChanges returns the statement with the SQL of a key and of LAST_INSERT_ID().
func (plan *Plan) withChanges(key, last string) string {
	var b strings.Builder
	pos := 0
	plan.Insert.queryChanges(key, last, func(s Splice) bool {
		b.WriteString(plan.text[pos:s.At])
		b.WriteString(s.Before)
		pos = s.End
		return true
	})
	b.WriteString(plan.text[pos:])
	return b.String()
}

// queryChanges yields the changes of an INSERT … SELECT with the SQL of a key and of LAST_INSERT_ID().
func (in *Insert) queryChanges(key, last string, yield func(Splice) bool) bool {
	for _, s := range in.head {
		if !yield(s) {
			return false
		}
	}
	sql := [...]string{nothing: "", theKey: key, theLast: last}
	for _, c := range in.query.changes {
		if !yield(Splice{At: int(c.at), End: int(c.end), Before: c.before + sql[c.made] + c.after}) {
			return false
		}
	}
	return true
}
