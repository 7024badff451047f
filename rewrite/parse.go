package rewrite

import (
	"errors"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/shardkey/shardkey/internal/sqltoken"
)

// Parse parses a string. It returns a plan without inserts for a string that is passed through. It
// returns a [*StatementError] for an INSERT or REPLACE into a sharded table that can't get keys.
// Other errors come from the functions in opts.
func Parse(text string, opts Options) (*Plan, error) {
	if uint64(len(text)) > math.MaxUint32 {
		return nil, NewStatementError(text[:64], opts, 0, "", "the statement is longer than 4 GiB")
	}
	p := &parser{
		Lexer: sqltoken.NewLexer(text, opts.Mode, opts.Charset),
		opts:  opts,
		plan:  &Plan{text: text, mode: opts.Mode, charset: opts.Charset},

		mention: -1,
	}
	err := p.script()
	p.readUnsettled()
	p.plan.Consulted |= p.Lexer.Consulted
	p.plan.params, p.plan.dialect = p.params, p.server
	p.plan.ConsultedCharset = p.plan.ConsultedCharset || !sqltoken.IsASCII(text[:p.readTo()])
	if err == nil {
		err = p.later
	}
	p.MustRead(p.readTo())
	if p.Unsure != "" {
		return p.doubted(err)
	}
	if err != nil {
		return nil, err
	}
	return p.plan, nil
}

// readTo returns the position up to which the string must be read.
func (p *parser) readTo() int {
	if len(p.plan.Inserts) == 0 && p.unread > 0 {
		return p.unread
	}
	return len(p.plan.text)
}

// doubted handles a string that the servers may read differently. It returns err if the string may
// insert into a sharded table, and otherwise a plan that passes it through.
func (p *parser) doubted(err error) (*Plan, error) {
	table := ""
	var failed *StatementError
	switch inserts := p.plan.Inserts; {
	case errors.As(err, &failed):
		table = failed.Table
	case err != nil:
		return nil, err
	case len(inserts) > 0:
		table = sqltoken.QuoteTable(inserts[0].Schema, inserts[0].Name)
	default:
		if table = p.mayInsertInto(); table == "" {
			return p.plan, nil
		}
	}
	return nil, NewStatementError(p.plan.text, p.opts, p.UnsureAt, table, p.Unsure)
}

// mayInsertInto returns a sharded table that is named after INSERT, REPLACE or LOAD. It is empty if
// there is none.
func (p *parser) mayInsertInto() string {
	text := p.plan.text[indexVerb(p.plan.text):]
	if p.opts.Tables == nil {
		return ""
	}
	if p.opts.NamesBeyondASCII && (p.Charset != sqltoken.UTF8 || p.unsettled > 0) && !sqltoken.IsASCII(text) {
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
			if p.opts.Tables("", name) != nil {
				return sqltoken.QuoteIdentifier(name)
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

// parser parses a string statement by statement.
type parser struct {
	sqltoken.Lexer
	opts   Options
	plan   *Plan
	params int  // the number of placeholders so far
	last   bool // the current statement reads LAST_INSERT_ID()
	// mention is the position of the next INSERT or REPLACE found so far, −1 at first.
	mention int
	// later is the error to return after the string was read.
	later error
	// unsettled is the end of the first statement that may change sql_mode or the character set, 0
	// if there is none. settledModes are the sql_mode bits that the tokens before it depended on.
	unsettled    int
	settledModes sqltoken.Mode
	// unread is the position of the last statement if it is passed through unread, 0 otherwise.
	unread int
	// modeSet: the current statement sets sql_mode for itself.
	modeSet bool
	// answered and server cache the result of Options.Dialect.
	answered bool
	server   Dialect
	// fitting: the current statement may be in a string with an INSERT that gets keys. unfit:
	// another one may not.
	fitting, unfit bool
	// judged is the number of inserts that together has checked. untold and uncertain are its
	// results.
	judged            int
	untold, uncertain bool
	mixed             mixture
	rolledBack        int // the number of inserts that are RolledBack
}

func (p *parser) fail(at int, in *Insert, reason string) error {
	table := ""
	if in != nil {
		table = sqltoken.QuoteTable(in.Schema, in.Name)
	}
	return NewStatementError(p.Text, p.opts, at, table, reason)
}

// failLater sets the error to return after the string was read.
func (p *parser) failLater(err error) {
	if p.later == nil {
		p.later = err
	}
}

// dialect returns the server's dialect.
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

// isMySQL reports whether the server parses statements as MySQL does.
func (p *parser) isMySQL() bool {
	d := p.dialect()
	return d == DialectMySQL || d == DialectVitess
}

// noteWord detects that the statement reads LAST_INSERT_ID(), @@last_insert_id or @@identity.
func (p *parser) noteWord(t sqltoken.Token) {
	switch name := strings.Trim(p.Text[t.Start:t.End], "`"); {
	case len(name) < len("IDENTITY"):
	case sqltoken.Is(name, "IDENTITY"), sqltoken.NamesLastInsertID(name):
		p.last = true
	}
}
