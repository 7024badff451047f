package rewrite

import (
	"iter"
	"strconv"
	"strings"

	"github.com/shardkey/shardkey/internal/sqltext"
)

// Keys are the generated keys of one statement, in the order of their rows:
// Ints where the generator makes int64, else Values.
type Keys struct {
	Ints   []int64
	Values []any
}

// Len is the number of keys.
func (k *Keys) Len() int { return len(k.Ints) + len(k.Values) }

// At returns key i.
func (k *Keys) At(i int) any {
	if k.Ints != nil {
		return k.Ints[i]
	}
	return k.Values[i]
}

// HaveLiterals reports whether all keys can be written into a text.
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
	dst, _ = sqltext.AppendLiteral(dst, k.Values[i])
	return dst
}

// BindText is the text in which each key that the text asks for is a
// placeholder. It is a function of the text alone, so that the server's
// prepared statements stay as many as the program's.
func (p *Plan) BindText() string {
	if text := p.bind.Load(); text != nil {
		return *text
	}
	text := p.render(nil, 1)
	p.bind.Store(&text)
	return text
}

// LiteralText is the text with the keys written into it; keys[i] are those of
// the SlotFill and SlotExpression rows of Inserts[i].
func (p *Plan) LiteralText(keys []Keys) string {
	var digits [24]byte // room for an integer
	longest := 0        // the last key, as keys ascend; another length is rare
	for i := range keys {
		if n := keys[i].Len(); n > 0 {
			longest = max(longest, len(keys[i].appendLiteral(digits[:0], n-1)))
		}
	}
	return p.render(keys, longest)
}

// render writes the text with its splices. Without keys, placeholders stand in their
// place.
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
	var digits [24]byte // room for an integer
	key := digits[:0]
	pos := 0
	for i := range p.Inserts {
		next := 0 // key of the insert
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

// Splice is one change that a plan makes to its text: Before, then a key if
// HasKey, then After stand in place of what stood from At to End.
type Splice struct {
	Insert        int // which of the plan's inserts, from 0
	At, End       int // the same where something is only added
	Before, After string
	HasKey        bool
}

// Splices yields the changes that the plan makes, in the order of the text:
// all that [Plan.BindText] and [Plan.LiteralText] differ in from the text.
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
	case in.headAt >= 0 && in.headText != "" && !added(in.headAt, in.headText):
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
		case s.End < len(p.text) && isWordByte(p.text[s.End]):
			s.After = " " // the key must not touch the word after it
		}
		if !yield(s) {
			return false
		}
	}
	return (in.aliasAt < 0 || added(in.aliasAt, ", `shardkey_key`")) &&
		(!in.Guarded || added(in.duplicateAt, ", "+in.guard()))
}

// guard is the assignment of a guarded ON DUPLICATE KEY UPDATE. It leaves the
// key as it is, and makes it the last insert id.
func (in *Insert) guard() string {
	column := sqltext.QuoteTable(in.Schema, in.Name) + "." + sqltext.QuoteIdentifier(in.Table.KeyColumn)
	// The key does not change either way; the condition is there to be evaluated.
	// (LAST_INSERT_ID(column) as the value would be unsigned, and out of range for
	// a negative key.)
	return column + " = IF(LAST_INSERT_ID(" + column + ") = 0, " + column + ", " + column + ")"
}
