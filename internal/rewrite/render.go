package rewrite

import (
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
	longest := 0
	for i := range keys {
		if keys[i].Ints == nil && keys[i].Len() > 0 {
			longest = max(longest, len(keys[i].appendLiteral(nil, 0)))
		} else {
			longest = max(longest, 20)
		}
	}
	return p.render(keys, longest)
}

// render writes the text with its additions. Without keys, placeholders stand
// in their place.
func (p *Plan) render(keys []Keys, longest int) string {
	size := len(p.text)
	for i := range p.Inserts {
		in := &p.Inserts[i]
		size += len(in.headText) + in.Rows()*(len(in.keyPrefix)+longest) + len(" LAST_INSERT_ID()")
		if in.OnDuplicate || in.wrapper != nil || in.Refused {
			size += 256
		}
	}
	w := writer{text: p.text}
	w.out.Grow(size)
	for i := range p.Inserts {
		in := &p.Inserts[i]
		if in.Refused {
			w.upTo(in.refuseAt)
			w.add(in.refuseText)
		}
		if in.Refused || in.Source != nil {
			continue
		}
		if keys != nil {
			w.insert(in, &keys[i])
		} else {
			w.insert(in, nil)
		}
	}
	w.upTo(len(p.text))
	return w.out.String()
}

// writer copies the text and puts the additions in.
type writer struct {
	text    string
	out     strings.Builder
	pos     int
	integer decimal
}

func (w *writer) upTo(end int) {
	w.out.WriteString(w.text[w.pos:end])
	w.pos = end
}

func (w *writer) add(s string) { w.out.WriteString(s) }

func (w *writer) key(keys *Keys, i int) {
	if keys.Ints != nil {
		w.out.Write(w.integer.text(keys.Ints[i]))
		return
	}
	w.out.Write(keys.appendLiteral(nil, i))
}

func (w *writer) insert(in *Insert, keys *Keys) {
	if in.headAt >= 0 && in.headText != "" {
		w.upTo(in.headAt)
		w.add(in.headText)
	}
	next := 0 // the next generated key
	for i := range in.slots.at {
		before, after := in.keyPrefix, ""
		switch in.slots.kind(i) {
		case SlotFill:
			w.upTo(int(in.slots.at[i]))
			w.pos = in.slots.end(i)
			after = gap(w.text, w.pos)
			if in.InText && i == in.inTextSlot {
				before, after = before+"LAST_INSERT_ID(", ")"
			}
		case SlotExpression:
			w.upTo(int(in.slots.at[i]))
			w.add(in.wrapper.before)
			w.upTo(in.slots.end(i))
			before, after = in.wrapper.between, in.wrapper.after
		default:
			continue
		}
		w.add(before)
		if keys != nil {
			w.key(keys, next)
			next++
		} else {
			w.add("?")
		}
		w.add(after)
	}
	if in.aliasAt >= 0 {
		w.upTo(in.aliasAt)
		w.add(", `shardkey_key`")
	}
	if in.Guarded {
		w.upTo(in.duplicateAt)
		w.add(", " + in.guard())
	}
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
