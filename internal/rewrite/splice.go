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
