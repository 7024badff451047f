package rewrite

import (
	"iter"
	"strconv"
	"strings"

	"github.com/shardkey/shardkey/internal/sqltoken"
)

// Keys are the generated keys of one statement, in the order of their rows. int64 keys are in Ints,
// and others in Values.
type Keys struct {
	Ints   []int64
	Values []any
}

// Len returns the number of keys.
func (k *Keys) Len() int { return len(k.Ints) + len(k.Values) }

// At returns key i.
func (k *Keys) At(i int) any {
	if k.Ints != nil {
		return k.Ints[i]
	}
	return k.Values[i]
}

// HaveLiterals reports whether all keys can be written as literals.
func (k *Keys) HaveLiterals() bool {
	for _, v := range k.Values {
		switch v.(type) {
		case int64, uint64, string, []byte:
		default:
			return false
		}
	}
	return true
}

func (k *Keys) appendLiteral(dst []byte, i int) []byte {
	if k.Ints != nil {
		return strconv.AppendInt(dst, k.Ints[i], 10)
	}
	dst, _ = sqltoken.AppendLiteral(dst, k.Values[i])
	return dst
}

// BindText returns the statement with a placeholder for each key to generate. It depends only on
// the string, so the server gets no more different prepared statements than without keys.
func (p *Plan) BindText() string {
	if text := p.bind.Load(); text != nil {
		return *text
	}
	text := p.render(nil, 1)
	p.bind.Store(&text)
	return text
}

// LiteralText returns the statement with literal keys. keys[i] are the keys of the SlotFill and
// SlotExpression rows of Inserts[i].
func (p *Plan) LiteralText(keys []Keys) string {
	var digits [24]byte // a buffer for an integer
	longest := 0        // the last key, since keys ascend; another length is rare
	for i := range keys {
		if n := keys[i].Len(); n > 0 {
			longest = max(longest, len(keys[i].appendLiteral(digits[:0], n-1)))
		}
	}
	return p.render(keys, longest)
}

// render returns the statement with its splices, with placeholders if keys is nil.
func (p *Plan) render(keys []Keys, longest int) string {
	size := len(p.text)
	for i := range p.Inserts {
		in := &p.Inserts[i]
		size += len(in.headText) + in.Rows()*(len(in.keyPrefix)+longest) + len(" LAST_INSERT_ID()")
		if in.OnDuplicate || in.wrapper != nil || in.Refused {
			size += 256
		}
	}
	var out strings.Builder
	out.Grow(size)
	var digits [24]byte // a buffer for an integer
	key := digits[:0]
	pos := 0
	for i := range p.Inserts {
		next := 0 // the insert's next key
		p.splices(i, func(s Splice) bool {
			out.WriteString(p.text[pos:s.At])
			out.WriteString(s.Before)
			if s.HasKey {
				key = append(key[:0], '?')
				if keys != nil {
					key = keys[i].appendLiteral(key[:0], next)
				}
				out.Write(key)
				next++
			}
			out.WriteString(s.After)
			pos = s.End
			return true
		})
	}
	out.WriteString(p.text[pos:])
	return out.String()
}

// Splice is a change of the statement. It replaces the bytes from At to End by Before, a key if
// HasKey, and After.
type Splice struct {
	Insert        int // index of the plan's insert
	At, End       int // equal for an addition
	Before, After string
	HasKey        bool
}

// Splices yields all changes that BindText and LiteralText make, in order.
func (p *Plan) Splices() iter.Seq[Splice] {
	return func(yield func(Splice) bool) {
		for i := range p.Inserts {
			if !p.splices(i, yield) {
				return
			}
		}
	}
}

func (p *Plan) splices(insert int, yield func(Splice) bool) bool {
	in := &p.Inserts[insert]
	added := func(at int, more string) bool {
		return yield(Splice{Insert: insert, At: at, End: at, Before: more})
	}
	switch {
	case in.Refused:
		return added(in.refuseAt, in.refuseText)
	case in.Source != nil:
		return true
	case in.headText != "" && !added(in.headAt, in.headText):
		return false
	}
	for row, slot := range in.slots {
		s := Splice{Insert: insert, At: int(slot.at), End: int(slot.end), Before: in.keyPrefix, HasKey: true}
		switch {
		case slot.kind == SlotExpression:
			if !added(s.At, in.wrapper.before) {
				return false
			}
			s.At, s.Before, s.After = s.End, in.wrapper.between, in.wrapper.after
		case slot.kind != SlotFill:
			continue
		case in.InText && row == in.inTextSlot:
			s.Before, s.After = s.Before+"LAST_INSERT_ID(", ")"
		case s.End < len(p.text) && sqltoken.IsWordByte(p.text[s.End]):
			s.After = " " // separate the key from the next word
		}
		if !yield(s) {
			return false
		}
	}
	return (in.aliasAt < 0 || added(in.aliasAt, ", `shardkey_key`")) &&
		(!in.Guarded || added(in.duplicateAt, ", "+in.guard()))
}

// guard returns the assignment for a guarded ON DUPLICATE KEY UPDATE. It doesn't change the key,
// and makes it the last insert ID.
func (in *Insert) guard() string {
	column := sqltoken.QuoteTable(in.Schema, in.Name) + "." + sqltoken.QuoteIdentifier(in.Table.KeyColumn)
	// Both branches assign the key to itself; only the condition matters. (LAST_INSERT_ID(column)
	// as the value would be unsigned, and out of range for a negative key.)
	return column + " = IF(LAST_INSERT_ID(" + column + ") = 0, " + column + ", " + column + ")"
}
