package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rule"
)

// script is a string of statements, perhaps with holes.
type script struct {
	text   string
	tokens []sqltoken.Token
}

func (l *Linter) read(text string) (s script) {
	s.text = text
	lx := sqltoken.NewLexer(text, l.Mode, sqltoken.UTF8)
	for t := lx.Next(); t.Kind != sqltoken.EOF && t.Kind != sqltoken.Bad; t = lx.Next() {
		s.tokens = append(s.tokens, t)
	}
	return s
}

// from returns the script without the tokens before an offset.
func (s script) from(pos int) script {
	i, _ := slices.BinarySearchFunc(s.tokens, pos, func(t sqltoken.Token, pos int) int { return t.Start - pos })
	s.tokens = s.tokens[i:]
	return s
}

// word returns token i if it is a word or the punctuation c, and otherwise an empty string.
func (s script) word(i int) string {
	if i < 0 || i >= len(s.tokens) || s.tokens[i].Kind != sqltoken.Word && s.tokens[i].Kind != sqltoken.Punct {
		return ""
	}
	return s.text[s.tokens[i].Start:s.tokens[i].End]
}

func (s script) is(i int, words ...string) bool { return sqltoken.Is(s.word(i), words...) }

// index returns the index of the first of the words in a row, −1 if they aren't there.
func (s script) index(words ...string) int {
	for i := range s.tokens {
		if n := 0; s.is(i, words[n]) {
			for n < len(words) && s.is(i+n, words[n]) {
				n++
			}
			if n == len(words) {
				return i
			}
		}
	}
	return -1
}

// after returns the index after token i if it is one of the words, and otherwise i.
func (s script) after(i int, words ...string) int {
	if s.is(i, words...) {
		i++
	}
	return i
}

type target struct {
	at           int // offset of the statement's verb
	end          int // index of the token after the name
	schema, name string
}

// table returns the table whose name begins with token i.
func (s script) table(at, i int) (t target, ok bool) {
	if t.name, ok = s.name(i); !ok {
		return t, false
	}
	if t.at, t.end = at, i+1; s.word(t.end) == "." {
		if name, ok := s.name(t.end + 1); ok {
			t.schema, t.name, t.end = t.name, name, t.end+2
		}
	}
	return t, true
}

func (s script) name(i int) (string, bool) {
	if i >= len(s.tokens) {
		return "", false
	}
	switch t := s.tokens[i]; {
	case t.Kind == sqltoken.Word:
		return s.text[t.Start:t.End], true
	case t.Kind == sqltoken.Quoted, s.isDoubleQuoted(i):
		return sqltoken.UnquoteIdentifier(s.text[t.Start:t.End]), true
	}
	return "", false
}

// isDoubleQuoted reports whether token i is a string that is a name with ANSI_QUOTES.
func (s script) isDoubleQuoted(i int) bool {
	t := s.tokens[i]
	return t.Kind == sqltoken.String && s.text[t.Start] == '"' && s.text[t.End-1] == '"'
}

// inserts returns the tables of all INSERTs and REPLACEs, also within other statements. A hole may
// stand for the verb, or for the words between the verb and INTO.
func (s script) inserts() (found []target) {
	for i := 0; i < len(s.tokens); i++ {
		word, next := strings.TrimLeft(s.word(i), hole), i+1
		switch verb := strings.TrimRight(word, hole); {
		case sqltoken.Is(verb, "INSERT", "REPLACE"):
			for s.is(next, "LOW_PRIORITY", "HIGH_PRIORITY", "DELAYED", "IGNORE") {
				next++
			}
			if s.word(next) == hole && s.is(next+1, "INTO") {
				next++
			}
			if s.is(next, "OR") { // of SQLite
				next += 2
			}
			if next == i+1 && verb != word && !s.is(next, "INTO") {
				continue
			}
			next = s.after(next, "INTO")
		case strings.HasSuffix(s.word(i), hole) && s.is(next, "INTO"):
			next++
		default:
			continue
		}
		at := s.tokens[i].Start
		if word != "" {
			at = s.tokens[i].End - len(word)
		}
		if t, ok := s.table(at, next); ok {
			found, i = append(found, t), t.end-1
		}
	}
	return found
}

var dollar = regexp.MustCompile(`^\$\d+$`)

// dialect reports what an INSERT has that MySQL and MariaDB refuse and other databases accept, or "".
func (s script) dialect() string {
	for _, t := range s.inserts() {
		if s.isDoubleQuoted(t.end - 1) {
			return "a name in double quotes needs the sql_mode ANSI_QUOTES (--sql-mode), and MySQL refuses it otherwise"
		}
	}
	for i, t := range s.tokens {
		switch {
		case s.is(i, "INSERT") && s.is(i+1, "OR"):
			return "INSERT OR " + strings.ToUpper(s.word(i+2)) + " is SQLite's, and MySQL refuses it"
		case s.is(i, "ON") && s.is(i+1, "CONFLICT"):
			return "ON CONFLICT is PostgreSQL's and SQLite's, and MySQL refuses it"
		case s.is(i, "DEFAULT") && s.is(i+1, "VALUES"):
			return "DEFAULT VALUES is PostgreSQL's and SQLite's, and MySQL refuses it"
		case s.is(i, "USING") && s.is(i+1, "TTL"), s.word(i) == ")" && s.is(i+1, "IF") && s.is(i+2, "NOT"):
			return s.word(i+1) + " after the values is Cassandra's, and MySQL refuses it"
		case dollar.MatchString(s.word(i)):
			return s.word(i) + " is a placeholder of PostgreSQL, and MySQL refuses it"
		case s.word(i) == ":" && s.word(i+1) == ":" && s.tokens[i+1].Start == t.End:
			return "the operator :: is PostgreSQL's, and MySQL refuses it"
		}
	}
	return ""
}

// isInsert reports whether a string is a complete INSERT, not a text that mentions one.
func (s script) isInsert() bool {
	t := s.inserts()
	return len(t) > 0 && t[0].at == s.tokens[0].Start && s.is(t[0].end, "(", "SET", "VALUES", "VALUE", "SELECT")
}

func (s script) loads() []target {
	if s.is(0, "LOAD") && s.is(1, "DATA", "XML") {
		for i := 2; i < len(s.tokens) && s.word(i) != ";"; i++ {
			if t, ok := s.table(s.tokens[0].Start, i+2); ok && s.is(i, "INTO") && s.is(i+1, "TABLE") {
				return []target{t}
			}
		}
	}
	return nil
}

func (s script) creates() []target {
	i := s.after(s.after(s.after(1, "OR"), "REPLACE"), "TEMPORARY")
	if !s.is(0, "CREATE") || !s.is(i, "TABLE") {
		return nil
	}
	if t, ok := s.table(s.tokens[0].Start, s.after(s.after(s.after(i+1, "IF"), "NOT"), "EXISTS")); ok {
		return []target{t}
	}
	return nil
}

// program returns the kind of stored program that CREATE or ALTER defines, and an empty string for
// other statements.
func (s script) program() string {
	if !s.is(0, "CREATE", "ALTER") {
		return ""
	}
	for i := range s.tokens {
		switch {
		case s.is(i, "(", ";"):
			return ""
		case s.is(i, "PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE"):
			return strings.ToLower(s.word(i))
		}
	}
	return ""
}

// prepared returns the string of PREPARE or EXECUTE IMMEDIATE.
func (s script) prepared() (t sqltoken.Token, ok bool) {
	i := 2
	switch {
	case s.is(0, "PREPARE") && s.is(2, "FROM"):
		i = 3
	case !s.is(0, "EXECUTE") || !s.is(1, "IMMEDIATE"):
		return t, false
	}
	if i < len(s.tokens) {
		t = s.tokens[i]
	}
	return t, t.Kind == sqltoken.String
}

// computedTable begins the reason for a table whose name is computed at run time.
const computedTable = "table computed at run time"

// composed returns the findings for a query with holes.
func (l *Linter) composed(text string) (found []Finding) {
	s := l.read(text)
	if dialect := s.dialect(); dialect != "" {
		return l.only(s.inserts(), Foreign, dialect)
	}
	for _, t := range append(s.inserts(), s.loads()...) {
		rules := l.lookup(t.schema, t.name)
		if len(rules) == 0 {
			continue
		}
		f := Finding{Outcome: Unknown, Table: shown(t.schema, t.name), offset: t.at,
			Reason: "parts of the statement are computed at run time"}
		if f.computed = strings.Contains(t.schema+t.name, hole); f.computed {
			f.Reason = fmt.Sprintf("%s: %s may be a table of %s; check the resulting statements with shardkey plan",
				computedTable, f.Table, logical(rules))
		}
		found = append(found, f)
	}
	return append(found, l.updates(s)...)
}

// logical returns the names of the logical tables, or "the rule" if there are more than 3.
func logical(rules []*rule.Table) string {
	var names []string
	for _, t := range rules {
		names = append(names, t.Logical)
	}
	slices.Sort(names)
	if names = slices.Compact(names); len(names) > 3 {
		return "the rule"
	}
	return strings.Join(names, " or ")
}

// lookup returns the sharded tables that have a name. There may be several if the name has a
// hole.
func (l *Linter) lookup(schema, name string) (rules []*rule.Table) {
	if strings.Contains(schema, hole) {
		schema = ""
	}
	names := []string{name}
	if parts := strings.Split(name, hole); len(parts) > 1 {
		names = nil
		// Try a few numbers and dates, for rules whose tables aren't known before run time.
		for _, digits := range []string{"0", "00", "2026", "202601", "20260102"} {
			names = append(names, strings.Join(parts, digits))
		}
		base := unnumbered(parts[0])
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		like := regexp.MustCompile("(?is)^" + strings.Join(parts, ".*") + "$")
		for _, n := range l.Names {
			if like.MatchString(n) || base != "" && strings.EqualFold(unnumbered(n), base) {
				names = append(names, n)
			}
		}
	}
	for _, n := range names {
		if t := l.Connector.Lookup(schema, n); t != nil {
			rules = append(rules, t)
		}
	}
	return rules
}

// unnumbered returns a table's name without the number at its end.
func unnumbered(name string) string { return strings.TrimRight(name, "_-0123456789") }

// shown returns a table's name for a finding, with an ellipsis for each hole.
func shown(schema, name string) string {
	return strings.ReplaceAll(sqltoken.QuoteTable(schema, name), hole, "…")
}

func (l *Linter) ruled(targets []target) (found []target) {
	for _, t := range targets {
		if l.Connector.Lookup(t.schema, t.name) != nil {
			found = append(found, t)
		}
	}
	return found
}

// only returns a finding with this outcome and reason for each target that is a sharded table.
func (l *Linter) only(targets []target, o Outcome, reason string) (found []Finding) {
	for _, t := range l.ruled(targets) {
		table := sqltoken.QuoteTable(t.schema, t.name)
		found = append(found, Finding{Outcome: o, Table: table, Reason: reason, offset: t.at})
	}
	return found
}
