package rewrite

import (
	"errors"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/shardkey/shardkey/internal/sqltoken"
)

// Parse parses a statement. The plan of one that is passed through has no Insert. Parse returns a [*StatementError] for an INSERT or REPLACE into a sharded table that can't get keys, and
// for a string of several statements of which one may need a key; see [ErrSeveralStatements]. If the
// plan depends on a fact that opts lack, the error's chain has [*Needs].
func Parse(query string, opts Options) (*Plan, error) {
	if !sqltoken.Scan(query, true).MustParse() {
		return &Plan{text: query}, nil
	}
	p := newParser(query, opts)
	if uint64(len(query)) > math.MaxUint32 {
		return nil, p.fail(0, nil, "the statement is longer than 4 GiB")
	}
	err := p.first()
	if p.needs != nil {
		return nil, p.needs
	}
	if errors.Is(err, ErrSeveralStatements) {
		return nil, err
	}
	p.plan.consulted |= p.Lexer.Consulted
	p.plan.NumArgs = p.Params
	p.plan.anyText = p.plan.anyText || !sqltoken.IsASCII(query[:p.readTo()])
	p.MustRead(p.readTo())
	if p.Unsure != "" {
		return p.doubted(err)
	}
	if err != nil {
		return nil, err
	}
	if in := p.plan.Insert; in != nil {
		if p.report(in); p.needs != nil {
			return nil, p.needs
		}
		p.plan.NumKeys = in.countKeys()
	}
	return p.plan, nil
}

// report determines how the server reports keys, if the insert has keys that it can report.
func (p *parser) report(in *Insert) {
	if in.hasIntegerKeys() {
		if server := p.server(); p.opts.ReportKeys {
			in.report(server == serverVitess)
		}
		if in.ReportsExistingKey {
			in.tail = append(in.tail, addition(p.updatesEnd, ", "+in.reportExisting())...)
		}
	}
}

func newParser(query string, opts Options) *parser {
	mode, charset := sqltoken.ParseMode(opts.SQLMode), sqltoken.ParseCharset(opts.Charset)
	return &parser{
		Lexer: sqltoken.NewLexer(query, mode, charset),
		opts:  opts,
		plan:  &Plan{text: query, mode: mode, charset: charset},
	}
}

// readTo returns the position up to which the string must be read.
func (p *parser) readTo() int {
	if p.plan.Insert == nil && p.unread > 0 {
		return p.unread
	}
	return len(p.plan.text)
}

// doubted handles a string that the servers may read differently. It returns err if the string may
// insert into a sharded table, and otherwise a plan that passes it through.
func (p *parser) doubted(err error) (*Plan, error) {
	table := ""
	var failed *StatementError
	switch {
	case errors.As(err, &failed):
		table = failed.Table
	case err != nil:
		return nil, err
	case p.plan.Insert != nil:
		table = sqltoken.TableName(p.plan.Insert.Schema, p.plan.Insert.Name)
	default:
		if table = p.mayInsertInto(p.plan.text); table == "" {
			return p.plan, nil
		}
	}
	return nil, p.fail(p.UnsureAt, &Insert{Name: table}, p.Unsure)
}

// mayInsertInto returns a sharded table that a string names after INSERT, REPLACE or LOAD. It is
// empty if there is none.
func (p *parser) mayInsertInto(text string) string {
	text = text[indexVerb(text):]
	if p.opts.Table == nil {
		return ""
	}
	if p.opts.NamesBeyondASCII && p.Charset != sqltoken.UTF8 && !sqltoken.IsASCII(text) {
		return "beyond ASCII"
	}
	const longest = 300 // in bytes: a quoted name has at most 64 characters
	for i := 0; i < len(text); {
		names := []string(nil)
		c := text[i]
		switch {
		case sqltoken.IsWordByte(c):
			end := sqltoken.WordEnd(text, i)
			names = append(strings.FieldsFunc(text[i:end], func(r rune) bool { return r >= utf8.RuneSelf }), text[i:end])
			i = end
		case (c == '`' || c == '"' || c == '[') && text[i-1] != c: // text begins with a word
			if c == '[' {
				c = ']'
			}
			lx := sqltoken.Lexer{Text: text[i:min(i+longest, len(text))], Mode: sqltoken.ANSIQuotes}
			if end, ok := lx.SkipQuoted(0, c); ok {
				names = []string{sqltoken.UnquoteIdentifier(lx.Text[:end])}
			}
			i++
		default:
			i++
		}
		for _, name := range names {
			if p.opts.Table("", name) != nil {
				return name
			}
		}
	}
	return ""
}

// indexVerb returns the position of the first INSERT, REPLACE or LOAD that may begin a statement,
// or the string's length. It ignores functions, before a bracket, and trigger events, before ON.
func indexVerb(text string) int {
	for i := sqltoken.IndexInsert(text); i < len(text); i += sqltoken.IndexInsert(text[i:]) {
		start := i
		for i++; i < len(text) && text[i] < utf8.RuneSelf && sqltoken.IsWordByte(text[i]); i++ {
		}
		word := text[start:i]
		if !sqltoken.Is(word, "INSERT", "REPLACE", "LOAD") ||
			start > 0 && text[start-1] < utf8.RuneSelf && sqltoken.IsWordByte(text[start-1]) {
			continue
		}
		rest := strings.TrimLeft(text[i:], " \t\n\v\f\r")
		if !strings.HasPrefix(rest, "(") && !sqltoken.Is(rest[:sqltoken.WordEnd(rest, 0)], "ON") {
			return start
		}
	}
	return len(text)
}

// parser parses the first statement of a string.
type parser struct {
	sqltoken.Lexer
	opts Options
	plan *Plan
	last bool // the statement reads LAST_INSERT_ID()
	// reads are the statement's calls of LAST_INSERT_ID(). setsLast is the position where it calls the
	// function with an argument, or names a variable with the same value; 0 if it doesn't.
	reads    []change
	setsLast int
	// setsVar is the position of the first assignment to a user variable; 0 if there is none.
	setsVar int
	// needs is the missing fact about the server, to return after the statement was read.
	needs *Needs
	// updatesEnd is the end of ON DUPLICATE KEY UPDATE's assignments.
	updatesEnd int
	// unread is the position of the statement if it is passed through unread, 0 otherwise.
	unread int
	// modeSet: the statement sets sql_mode for itself.
	modeSet bool
}

// server returns the server's name, for a plan that depends on the facts about it.
func (p *parser) server() string {
	if p.opts.ServerUnknown {
		p.needs = &Needs{Server: true}
	}
	p.plan.dialect = p.opts.Server
	return p.opts.Server
}

// The names of servers whose SQL differs. MySQL's is also that of engines compatible with it.
const (
	serverMySQL   = "mysql"   // RETURNING is a name, and IGNORE isn't a value
	serverMariaDB = "mariadb" // RETURNING is reserved, and IGNORE means DEFAULT
	serverVitess  = "vitess"  // like MySQL, but a key can't be an added expression
)

// isMySQL reports whether the server parses statements as MySQL does.
func (p *parser) isMySQL() bool {
	name := p.server()
	return name == serverMySQL || name == serverVitess
}

// noteWord detects that the statement reads LAST_INSERT_ID(), @@last_insert_id or @@identity.
func (p *parser) noteWord(t sqltoken.Token) {
	switch name := strings.Trim(p.Text[t.Start:t.End], "`"); {
	case len(name) < len("IDENTITY"):
	case sqltoken.Is(name, "IDENTITY"), sqltoken.NamesLastInsertID(name):
		p.last = true
		p.noteLast(t)
	}
}

// noteLast notes what t names: a call of LAST_INSERT_ID(), a variable or something else.
func (p *parser) noteLast(t sqltoken.Token) {
	defer p.LookAhead()()
	if !p.IsPunct(p.Next(), '(') {
		before := strings.ToLower(strings.TrimRight(p.Text[:t.Start], " ."))
		if strings.HasSuffix(before, "@@") || strings.HasSuffix(before, "@@session") || strings.HasSuffix(before, "@@local") {
			p.setsLast = t.Start
		}
		return
	}
	if end := p.Next(); p.IsPunct(end, ')') {
		p.reads = append(p.reads, change{place: place{uint32(t.Start), uint32(end.End)}, made: theLast, params: p.Params})
		return
	}
	p.setsLast = t.Start
}
