package rewrite

import (
	"math"
	"slices"
)

// Parse understands a text. It returns a plan without inserts for a text that
// passes through, and a [*StatementError] for one that holds an INSERT or
// REPLACE into a ruled table that it cannot fill. Other errors are those of the
// options' functions.
func Parse(text string, opts Options) (*Plan, error) {
	p, err := parseReading(text, opts, true)
	if err != nil {
		return nil, err
	}
	if !p.lexer.executable {
		return p.plan, nil
	}
	// Whether an executable comment is text depends on the server's version:
	// both readings must come to the same.
	skipped, err := parseReading(text, opts, false)
	if err != nil {
		return nil, err
	}
	p.plan.Consulted |= skipped.plan.Consulted
	if err := p.reconcile(skipped); err != nil {
		return nil, err
	}
	return p.plan, nil
}

func parseReading(text string, opts Options, execute bool) (*parser, error) {
	if len(text) > math.MaxUint32 {
		return nil, NewStatementError(text[:64], opts.Mode, 0, "", "the text is longer than 4 GiB")
	}
	p := &parser{
		lexer: lexer{text: text, mode: opts.Mode, execute: execute},
		opts:  opts,
		plan:  &Plan{text: text},

		mention: -1,
	}
	err := p.script()
	p.plan.Consulted |= p.lexer.consulted
	p.plan.params = p.params
	if err == nil {
		err = p.sourcesAlone()
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// reconcile refuses a text whose executable comments decide what is filled.
func (p *parser) reconcile(skipped *parser) error {
	a, b := p.plan.Inserts, skipped.plan.Inserts
	if p.nested && len(a) > 0 {
		return p.fail(a[0].start, &a[0], "executable comments stand in one another; write the statement without them")
	}
	if skipped.plan.Statements == 0 && len(a) > 0 && a[0].Source == nil {
		return nil // the whole statement is in the comment: it runs or nothing does
	}
	if p.params != skipped.params && len(a) > 0 {
		return p.fail(a[0].start, &a[0], "an executable comment decides how many placeholders there are; write the statement without it")
	}
	for i := range max(len(a), len(b)) {
		if i < len(a) && i < len(b) && a[i].sameFilling(&b[i]) {
			a[i].Ignore = a[i].Ignore || b[i].Ignore // to be on the safe side
			continue
		}
		in := slices.Concat(a[min(i, len(a)):], b[min(i, len(b)):])[0]
		return p.fail(in.start, &in, "an executable comment decides what is inserted; write the statement without it")
	}
	return nil
}

func (s *Source) equal(o *Source) bool {
	if s == nil || o == nil {
		return s == o
	}
	return s.Head == o.Head && s.columns == o.columns && s.Query == o.Query && s.Tail == o.Tail && s.guardAt == o.guardAt &&
		s.QueryParams == o.QueryParams && s.TailParams == o.TailParams
}

func (in *Insert) sameFilling(o *Insert) bool {
	return in.start == o.start && in.Name == o.Name && in.Schema == o.Schema && in.Refused == o.Refused &&
		in.headAt == o.headAt && in.keyPrefix == o.keyPrefix && in.aliasAt == o.aliasAt && in.duplicateAt == o.duplicateAt &&
		in.slots.equal(&o.slots) && in.Source.equal(o.Source)
}

// parser reads a text statement by statement.
type parser struct {
	lexer
	opts    Options
	plan    *Plan
	reading Insert // the one that is being read
	params  int    // placeholders so far
	last    bool   // the present statement read LAST_INSERT_ID()
	// mention is where INSERT or REPLACE is mentioned next, as far as that was
	// looked for: −1 at first.
	mention int
	// behindProgram: a CREATE PROCEDURE or the like with BEGIN … END came before.
	behindProgram bool
}

// word is the text of a word that may be a keyword: in INTO.t the servers take
// INTO for a name.
func (p *parser) word(t token) string {
	if t.kind != tokenWord || t.end+1 < len(p.text) && p.text[t.end] == '.' && isWordByte(p.text[t.end+1]) {
		return ""
	}
	return p.text[t.start:t.end]
}

func (p *parser) isPunct(t token, c byte) bool {
	return t.kind == tokenPunct && p.text[t.start] == c
}

func (p *parser) fail(at int, in *Insert, reason string) error {
	table := ""
	if in != nil {
		table = QuoteTable(in.Schema, in.Name)
	}
	return NewStatementError(p.text, p.opts.Mode, at, table, reason)
}

// sourcesAlone refuses an INSERT … SELECT beside other statements: it takes
// several statements of its own.
func (p *parser) sourcesAlone() error {
	for i := range p.plan.Inserts {
		if in := &p.plan.Inserts[i]; in.Source != nil && p.plan.Statements > 1 {
			return p.fail(in.start, in, "INSERT … SELECT is filled only by itself; send the statements one by one")
		}
	}
	return nil
}
