package lint

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/mysql"
	_ "github.com/pingcap/tidb/pkg/parser/test_driver" // the values in the parser's trees
	"github.com/shardkey/shardkey/rule"
)

// Mode is the part of a session's sql_mode that affects the quoting of strings and names.
type Mode uint8

const (
	ansiQuotes Mode = 1 << iota
	noBackslashEscapes
)

// ParseMode parses the value of @@sql_mode.
func ParseMode(sqlMode string) (m Mode) {
	for word := range strings.SplitSeq(sqlMode, ",") {
		switch strings.ToUpper(strings.TrimSpace(word)) {
		case "ANSI_QUOTES", "ANSI":
			m |= ansiQuotes
		case "NO_BACKSLASH_ESCAPES":
			m |= noBackslashEscapes
		}
	}
	return m
}

// longest is the length of a query up to which it is parsed: a longer one could be an
// expression that is too deep for the parser.
const longest = 64 << 10

// parse parses a query with TiDB's parser.
func parse(text string, mode Mode) (stmts []ast.StmtNode, err error) {
	if len(text) > longest {
		return nil, errors.New("the query is too long")
	}
	defer func() {
		if panicked := recover(); panicked != nil { // at an odd literal
			stmts, err = nil, fmt.Errorf("the parser panicked: %v", panicked)
		}
	}()
	p := parser.New()
	var m mysql.SQLMode
	if mode&ansiQuotes != 0 {
		m |= mysql.ModeANSIQuotes
	}
	if mode&noBackslashEscapes != 0 {
		m |= mysql.ModeNoBackslashEscapes
	}
	p.SetSQLMode(m)
	stmts, _, err = p.ParseSQL(text)
	return stmts, err
}

// QuoteTable quotes a table's name for display, with its schema if there is one.
func QuoteTable(schema, name string) string {
	quoted := "`" + strings.ReplaceAll(name, "`", "``") + "`"
	if schema != "" {
		quoted = "`" + strings.ReplaceAll(schema, "`", "``") + "`." + quoted
	}
	return quoted
}

// mask replaces the content of strings and comments with blanks of the same length. It keeps
// names, quotes and the content of executable comments.
func mask(text string, mode Mode) string {
	return tokens(mode).ReplaceAllStringFunc(text, func(token string) string {
		switch first, n := token[0], len(token); {
		case first == '`', first == '"' && mode&ansiQuotes != 0:
			return token // a quoted name
		case first != '\'' && first != '"':
			return blank(token)
		case n > 1 && token[n-1] == first:
			return token[:1] + blank(token[1:n-1]) + token[:1]
		default:
			return token[:1] + blank(token[1:])
		}
	})
}

// tokens returns a pattern for quoted names, strings and comments, including unfinished ones.
var tokens = func() func(Mode) *regexp.Regexp {
	const escape = `|\\(?s:.)?`
	const form = "`(?:``|[^`])*`?" + `|'(?:''|[^'\\]%s)*'?|"(?:""|[^"\\]%s)*"?|` +
		`#[^\n]*|--(?:[\x00-\t\v-\x20][^\n]*|\n|\z)|/\*M?!\d*|/\*(?s:.*?)(?:\*/|\z)|\*/`
	forms := map[Mode]*regexp.Regexp{}
	for _, mode := range []Mode{0, ansiQuotes, noBackslashEscapes, ansiQuotes | noBackslashEscapes} {
		text := escape
		if mode&noBackslashEscapes != 0 {
			text = `|\\`
		}
		double := text
		if mode&ansiQuotes != 0 {
			double = `|\\`
		}
		forms[mode] = regexp.MustCompile(fmt.Sprintf(form, text, double))
	}
	return func(mode Mode) *regexp.Regexp { return forms[mode] }
}()

func blank(text string) string {
	return notNewline.ReplaceAllStringFunc(text, func(s string) string { return strings.Repeat(" ", len(s)) })
}

var notNewline = regexp.MustCompile(`[^\n]+`)

// target is a table in a masked statement.
type target struct {
	at           int // offset of the statement's verb
	end          int // offset after the name
	schema, name string
}

// ident is a name with or without quotes; table is one or two of them.
const (
	ident = "(`(?:[^`]|``)+`|[\\w$\\x80-\\x{10ffff}]+)"
	table = "(?:" + ident + `\s*\.\s*)?` + ident
	words = `(?:\s+(?:LOW_PRIORITY|HIGH_PRIORITY|DELAYED|IGNORE)\b)*`
)

var (
	// A hole may stand for the verb, or for the words between the verb and INTO.
	insertTarget = regexp.MustCompile(`(?i)(?:(?:\b(?:INSERT|REPLACE)` + words + `(?:\s*` + hole + `)?|` +
		hole + `)\s*\bINTO\s+|\b(?:INSERT|REPLACE)` + words + `\s+)` + table)
	loadTarget   = regexp.MustCompile(`(?i)^\s*LOAD\s+(?:DATA|XML)\b[^;]*?\bINTO\s+TABLE\s+` + table)
	createTarget = regexp.MustCompile(`(?i)^\s*CREATE\s+(?:OR\s+REPLACE\s+)?(?:TEMPORARY\s+)?TABLE\s+` +
		`(?:IF\s+NOT\s+EXISTS\s+)?` + table)
)

var insertBody = regexp.MustCompile(`(?i)^\s*(?:\(|(?:SET|VALUES?|SELECT)\b)`)

// isInsert reports whether a masked string is a complete INSERT, not text that mentions one.
func isInsert(masked string) bool {
	targets := namesIn(masked, insertTarget)
	return len(targets) > 0 && targets[0].at == blanksOf(masked) && insertBody.MatchString(masked[targets[0].end:])
}

// namesIn returns the tables that a pattern matches.
func namesIn(masked string, pattern *regexp.Regexp) (found []target) {
	for _, m := range pattern.FindAllStringSubmatchIndex(masked, -1) {
		t := target{at: m[0] + blanksOf(masked[m[0]:]), end: m[1], name: unquoted(masked[m[4]:m[5]])}
		if m[2] >= 0 {
			t.schema = unquoted(masked[m[2]:m[3]])
		}
		found = append(found, t)
	}
	return found
}

func blanksOf(s string) int { return len(s) - len(strings.TrimLeft(s, " \t\n\v\f\r")) }

func unquoted(name string) string {
	if strings.HasPrefix(name, "`") {
		return strings.ReplaceAll(name[1:len(name)-1], "``", "`")
	}
	return name
}

// computedTable begins the reason for a table whose name is computed at run time.
const computedTable = "table computed at run time"

// composed returns the findings for a query with holes.
func (l *Linter) composed(text string) (found []Finding) {
	masked := mask(text, l.Mode)
	for _, t := range append(namesIn(masked, insertTarget), namesIn(masked, loadTarget)...) {
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
	return append(found, l.updates(text, masked)...)
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
	return strings.ReplaceAll(QuoteTable(schema, name), hole, "…")
}

// ruled returns the targets that are sharded tables.
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
		table := QuoteTable(t.schema, t.name)
		found = append(found, Finding{Outcome: o, Table: table, Reason: reason, offset: t.at})
	}
	return found
}
