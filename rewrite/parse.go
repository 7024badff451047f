package rewrite

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/shardkey/shardkey/internal/sqltext"
)

// Parse understands a text. It returns a plan without inserts for a text that
// passes through, and a [*StatementError] for one that holds an INSERT or
// REPLACE into a ruled table that it cannot fill. Other errors are those of the
// options' functions.
func Parse(text string, opts Options) (*Plan, error) {
	p, err := parseReading(text, opts, engine{all: true})
	if err != nil {
		return nil, err
	}
	// Whether an executable comment is text depends on the server and its
	// version: all readings must come to the same.
	if len(p.notes.openings) > 0 {
		for _, e := range engines(p.notes.openings)[1:] {
			other, err := parseReading(text, opts, e)
			if err != nil {
				return nil, err
			}
			p.plan.Consulted |= other.plan.Consulted
			if err := p.reconcile(other); err != nil {
				return nil, err
			}
		}
	}
	return p.plan, p.sure()
}

func parseReading(text string, opts Options, e engine) (*parser, error) {
	if uint64(len(text)) > math.MaxUint32 {
		return nil, NewStatementError(text[:64], opts, 0, "", "the text is longer than 4 GiB")
	}
	p := &parser{
		lexer: lexer{text: text, mode: opts.Mode, charset: opts.Charset, engine: e},
		opts:  opts,
		plan:  &Plan{text: text, mode: opts.Mode, charset: opts.Charset},

		mention: -1,
	}
	p.notes = &p.found
	if opts.Charset == charsetUnknown && !isASCII(text) {
		p.notes.unsure = "the session's character set is not known to read letters beyond ASCII; use utf8mb4"
	}
	err := p.script()
	p.plan.Consulted |= p.lexer.consulted
	p.plan.params, p.plan.dialect = p.params, p.server
	p.plan.ConsultedCharset = !isASCII(text[:p.readTo()])
	if err == nil {
		err = p.later
	}
	if err == nil {
		err = p.sourcesAlone()
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// readTo is how far the text decides what becomes of it.
func (p *parser) readTo() int {
	if len(p.plan.Inserts) == 0 && p.unread > 0 {
		return p.unread
	}
	return len(p.text)
}

// sure refuses a text that the servers may read otherwise, when it inserts into
// a ruled table, or may do so.
func (p *parser) sure() error {
	if p.notes.unsure == "" {
		return nil
	}
	if inserts := p.plan.Inserts; len(inserts) > 0 {
		return p.fail(inserts[0].start, &inserts[0], p.notes.unsure)
	}
	lx := lexer{text: p.text[indexInsert(p.text):], mode: p.mode, charset: p.charset, engine: engine{all: true}}
	for t := lx.next(); t.kind != tokenEOF && t.kind != tokenBad; t = lx.next() {
		if t.kind != tokenWord && t.kind != tokenQuoted {
			continue
		}
		for _, name := range lx.namesIn(t) {
			if p.opts.Tables != nil && p.opts.Tables("", name) != nil {
				return p.fail(len(p.text)-len(lx.text)+t.start, &Insert{Name: name}, p.notes.unsure)
			}
		}
	}
	return nil
}

// namesIn are the names that a token may be: whole, and cut where it is not
// ASCII.
func (lx *lexer) namesIn(t token) []string {
	name := lx.text[t.start:t.end]
	if t.kind == tokenQuoted {
		name = unquoteIdentifier(name)
	}
	return append(strings.FieldsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf }), name)
}

// reconcile refuses a text whose executable comments decide what is filled.
func (p *parser) reconcile(skipped *parser) error {
	a, b := p.plan.Inserts, skipped.plan.Inserts
	if skipped.notes.unsure != "" && p.notes.unsure == "" {
		p.notes.unsure = skipped.notes.unsure
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
	opts   Options
	plan   *Plan
	found  notes // those of lexer
	params int   // placeholders so far
	last   bool  // the present statement read LAST_INSERT_ID()
	// mention is where INSERT or REPLACE is mentioned next, as far as that was
	// looked for: −1 at first.
	mention int
	// later is the error of a text that is refused when it has been read.
	later error
	// unread is where a statement that passes begins that is the text's last, 0
	// for none.
	unread int
	// modeSet: the statement at hand sets sql_mode for itself.
	modeSet bool
	// answered and server are the answer of Options.Dialect.
	answered bool
	server   Dialect
	// afterProgram: a CREATE PROCEDURE or the like with BEGIN … END came before.
	afterProgram bool
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
		table = sqltext.QuoteTable(in.Schema, in.Name)
	}
	return NewStatementError(p.text, p.opts, at, table, reason)
}

// failLater refuses the text once it has been read.
func (p *parser) failLater(err error) {
	if p.later == nil {
		p.later = err
	}
}

// dialect asks what the server is.
func (p *parser) dialect() Dialect {
	if !p.answered && p.opts.Dialect != nil {
		var err error
		if p.server, err = p.opts.Dialect(); err != nil {
			p.failLater(err)
		}
	}
	p.answered = true
	return p.server
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
