package rewrite

import (
	"math"
	"strings"
)

// Parse understands a text. It returns a plan without inserts for a text that
// passes through, and a [*StatementError] for one that holds an INSERT or
// REPLACE into a ruled table that it cannot fill.
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
		return nil, newStatementError(text[:64], opts.Mode, 0, "", "the text is longer than 4 GiB")
	}
	p := &parser{
		lexer: lexer{text: text, mode: opts.Mode, execute: execute},
		opts:  opts,
		plan:  &Plan{text: text},
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
	p.decideInText()
	return p, nil
}

// reconcile refuses a text whose executable comments decide what is filled.
func (p *parser) reconcile(skipped *parser) error {
	if skipped.plan.Statements == 0 {
		return nil // the whole statement is in the comment: it runs or nothing does
	}
	a, b := p.plan.Inserts, skipped.plan.Inserts
	for i := range max(len(a), len(b)) {
		if i < len(a) && i < len(b) && a[i].sameFilling(&b[i]) {
			continue
		}
		in := append(a, b...)[min(i, len(a)+len(b)-1)]
		return p.fail(in.start, &in, "an executable comment decides what is inserted; write the statement without it")
	}
	return nil
}

func (in *Insert) sameFilling(o *Insert) bool {
	return in.start == o.start && in.Name == o.Name && in.Schema == o.Schema && in.Refused == o.Refused &&
		in.headAt == o.headAt && in.keyPrefix == o.keyPrefix && in.aliasAt == o.aliasAt && in.duplicateAt == o.duplicateAt &&
		in.Source == nil && o.Source == nil && in.Ignore == o.Ignore && in.slots.equal(&o.slots)
}

// parser reads a text statement by statement.
type parser struct {
	lexer
	opts   Options
	plan   *Plan
	params int  // placeholders so far
	last   bool // the present statement read LAST_INSERT_ID()
}

func (p *parser) script() error {
	for {
		t := p.next()
		switch {
		case t.kind == tokenEOF, t.kind == tokenBad:
			return nil
		case p.isPunct(t, ';'):
			continue
		}
		done, err := p.statement(t)
		if done || err != nil {
			return err
		}
		p.plan.Statements++
	}
}

// statement reads one statement, up to its semicolon. It is done when nothing
// behind it can be an insert.
func (p *parser) statement(t token) (done bool, err error) {
	p.last = false
	switch word := p.word(t); {
	case fold(word, "INSERT"), fold(word, "REPLACE"):
		return p.insert(t)
	case fold(word, "ANALYZE"):
		// MariaDB: ANALYZE [FORMAT=JSON] statement runs the statement.
		return false, p.wrapped(t, "ANALYZE of an INSERT runs it; run the INSERT by itself")
	case fold(word, "SET") && fold(p.word(p.peek()), "STATEMENT"):
		return p.setStatement(t)
	case fold(word, "BEGIN") && fold(p.word(p.peek()), "NOT"),
		fold(word, "IF"), fold(word, "CASE"), fold(word, "LOOP"), fold(word, "REPEAT"), fold(word, "WHILE"),
		fold(word, "FOR"), fold(word, "DECLARE"):
		// A compound statement of MariaDB goes on behind its semicolons.
		return true, p.compound(t)
	case fold(word, "CREATE"), fold(word, "ALTER"):
		if p.storedProgram() {
			return true, nil // its body goes on behind its semicolons
		}
	}
	return p.skipStatement(), nil
}

// skipStatement moves behind the next semicolon, and says whether the rest of
// the text cannot hold an insert: long texts are not read in vain.
func (p *parser) skipStatement() (done bool) {
	semicolon := strings.IndexByte(p.text[p.pos:], ';')
	if semicolon < 0 || !mentionsInsert(p.text[p.pos+semicolon:]) {
		// What is not read may be placeholders; nobody counts them.
		p.plan.Statements++
		return len(p.plan.Inserts) == 0 || p.countRest()
	}
	for {
		switch t := p.next(); {
		case t.kind == tokenEOF, t.kind == tokenBad, p.isPunct(t, ';'):
			return false
		case t.kind == tokenParam:
			p.params++
		}
	}
}

// countRest counts the placeholders and statements behind the last insert.
func (p *parser) countRest() bool {
	fresh := false
	for {
		t := p.next()
		switch {
		case t.kind == tokenEOF, t.kind == tokenBad:
			return true
		case p.isPunct(t, ';'):
			fresh = true
			continue
		case t.kind == tokenParam:
			p.params++
		}
		if fresh {
			p.plan.Statements++
			fresh = false
		}
	}
}

// wrapped refuses a statement that runs an insert into a ruled table.
func (p *parser) wrapped(t token, reason string) error {
	for {
		switch u := p.next(); {
		case u.kind == tokenEOF, u.kind == tokenBad, p.isPunct(u, ';'):
			return nil
		case u.kind == tokenParam:
			p.params++
		case fold(p.word(u), "INSERT"), fold(p.word(u), "REPLACE"):
			if in := p.target(); in != nil {
				return p.fail(t.start, in, reason)
			}
		}
	}
}

// compound refuses a compound statement that inserts into a ruled table
// anywhere in the rest of the text.
func (p *parser) compound(t token) error {
	for p.pos < len(p.text) {
		if err := p.wrapped(t, "an INSERT within a compound statement is not filled; run it by itself"); err != nil {
			return err
		}
	}
	return nil
}

// setStatement reads MariaDB's SET STATEMENT variable = value FOR statement.
func (p *parser) setStatement(t token) (done bool, err error) {
	for {
		switch u := p.next(); {
		case u.kind == tokenEOF, u.kind == tokenBad, p.isPunct(u, ';'):
			return false, nil
		case u.kind == tokenParam:
			p.params++
		case fold(p.word(u), "FOR"):
			return p.statement(p.next())
		}
	}
}

// storedProgram tells whether CREATE or ALTER is of a PROCEDURE, FUNCTION,
// TRIGGER, EVENT or PACKAGE: their bodies are not this session's statements.
func (p *parser) storedProgram() bool {
	saved := p.lexer
	defer func() { p.lexer = saved }()
	for range 16 {
		t := p.next()
		switch word := p.word(t); {
		case fold(word, "PROCEDURE"), fold(word, "FUNCTION"), fold(word, "TRIGGER"), fold(word, "EVENT"), fold(word, "PACKAGE"):
			return true
		case t.kind == tokenEOF, t.kind == tokenBad, p.isPunct(t, ';'), p.isPunct(t, '('), fold(word, "TABLE"):
			return false
		}
	}
	return false
}

func (p *parser) word(t token) string {
	if t.kind != tokenWord {
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
	return newStatementError(p.text, p.opts.Mode, at, table, reason)
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

// decideInText chooses, for each insert, how the server comes to know the
// key that LAST_INSERT_ID() shall return.
func (p *parser) decideInText() {
	if !p.opts.InText {
		return
	}
	for i := range p.plan.Inserts {
		in := &p.plan.Inserts[i]
		if in.Table.Kind != Integer || in.MentionsLastID || in.Refused {
			continue
		}
		if in.Source != nil {
			in.Guarded = in.OnDuplicate && !in.Returning
			continue
		}
		alone := p.plan.Statements <= 1 && !in.Returning
		if in.OnDuplicate && alone {
			in.Guarded = true
			continue
		}
		// An ignored row would leave its key behind as LAST_INSERT_ID(). Where
		// the value cannot be set afterwards, that is the lesser evil.
		if (in.Ignore || in.OnDuplicate) && alone {
			continue
		}
		in.inTextSlot = in.firstFill()
		in.InText = in.inTextSlot >= 0
	}
}

// firstFill is the first row whose key is generated for certain, −1 when an
// argument may ask for one, or none is.
func (in *Insert) firstFill() int {
	first := -1
	for i := range in.Rows() {
		switch in.slots.kind(i) {
		case Param:
			return -1
		case Fill:
			if first < 0 {
				first = i
			}
			if in.slots.kinds == nil {
				return first
			}
		}
	}
	return first
}
