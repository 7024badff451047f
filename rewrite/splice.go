package rewrite

import "iter"

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
			numbered := func(s Splice) bool {
				s.Insert = i
				return yield(s)
			}
			if !p.Inserts[i].splices(p.text, numbered) {
				return
			}
		}
	}
}

func (in *Insert) splices(text string, yield func(Splice) bool) bool {
	added := func(at int, more string) bool { return yield(Splice{At: at, End: at, Before: more}) }
	switch {
	case in.Refused:
		return added(in.refuseAt, in.refuseText)
	case in.Source != nil:
		return true
	case in.headAt >= 0 && in.headText != "" && !added(in.headAt, in.headText):
		return false
	}
	for i := range in.Rows() {
		kind := in.slots.kind(i)
		if kind == SlotExpression && !added(int(in.slots.at[i]), in.wrapper.before) {
			return false
		}
		if kind.takesKey() && !yield(in.keySplice(text, i)) {
			return false
		}
	}
	return (in.aliasAt < 0 || added(in.aliasAt, ", `shardkey_key`")) &&
		(!in.Guarded || added(in.duplicateAt, ", "+in.guard()))
}

func (in *Insert) keySplice(text string, row int) Splice {
	s := Splice{At: int(in.slots.at[row]), End: in.slots.end(row), Before: in.keyPrefix, HasKey: true}
	s.After = gap(text, s.End)
	if in.slots.kind(row) == SlotExpression {
		s.At, s.Before, s.After = s.End, in.wrapper.between, in.wrapper.after
	}
	if in.InText && row == in.inTextSlot {
		s.Before, s.After = s.Before+"LAST_INSERT_ID(", ")"
	}
	return s
}

// gap is a blank where a key must not touch the word after it.
func gap(text string, pos int) string {
	if pos < len(text) && isWordByte(text[pos]) {
		return " "
	}
	return ""
}

// Middle is the part of the text between the first n and the last n rows of an
// insert, with the comma before it: without it the text is a statement of 2n
// rows. It is empty when there are no more than that, and where the rows do not
// end as they must. The options are those that the plan was made with.
func (p *Plan) Middle(in *Insert, n int, opts Options) (from, to int) {
	if in.Rows() <= 2*n || in.Refused {
		return 0, 0
	}
	from, ok := p.rowEnd(in, n-1, opts)
	to, ok2 := p.rowEnd(in, in.Rows()-n-1, opts)
	if !ok || !ok2 || to < from {
		return 0, 0
	}
	return from, to
}

// rowEnd is the position after the closing bracket of a row.
func (p *Plan) rowEnd(in *Insert, row int, opts Options) (end int, ok bool) {
	r := rowReader{parser: &parser{lexer: lexer{text: p.text, pos: in.slots.end(row), mode: opts.Mode, charset: opts.Charset}, plan: &Plan{}}, in: in}
	_, _, err := r.skipValues(false)
	return r.pos + 1, err == nil
}
