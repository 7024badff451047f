// Package lint reports how the statements in SQL files and Go programs will be handled under
// a rule, before they run.
package lint

import (
	"cmp"
	"errors"
	"fmt"
	"go/token"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/explain"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/rule"
)

// Outcome is what happens to a statement.
type Outcome string

const (
	// Filled: keys are generated, or arguments decide whether they are.
	Filled Outcome = "filled"
	// Passed: the statement has explicit keys and is passed through unchanged.
	Passed Outcome = "passed"
	// Refused: shardkey doesn't send the statement, or the server is certain to refuse it.
	Refused Outcome = "refused"
	// Unfilled: the server stores rows without a generated key.
	Unfilled Outcome = "unfilled"
	// Changed: an UPDATE changes the key of a row.
	Changed Outcome = "changed"
	// Foreign: the statement is written for another database, and MySQL refuses it.
	Foreign Outcome = "foreign"
	// Unknown: the statement, or the name of its table, is computed at run time.
	Unknown Outcome = "unknown"
)

// Finding reports what happens to one statement on a sharded table.
type Finding struct {
	File    string  `json:"file"`
	Line    int     `json:"line"`   // from 1
	Column  int     `json:"column"` // in bytes, from 1
	Outcome Outcome `json:"outcome"`
	Table   string  `json:"table"` // as the statement names it
	Reason  string  `json:"reason"`

	offset   int  // in the statement, in bytes
	computed bool // the table's name is computed at run time
}

func (f Finding) String() string {
	s := fmt.Sprintf("%s:%d:%d: %s: ", sqltoken.Printable(f.File), f.Line, f.Column, f.Outcome)
	if !f.computed {
		s += sqltoken.Printable(f.Table) + ": "
	}
	return s + sqltoken.Printable(f.Reason)
}

// IsProblem reports whether the statement is refused, unfilled or changed, or has a computed
// table.
func (f Finding) IsProblem() bool {
	return f.computed || f.Outcome == Refused || f.Outcome == Unfilled || f.Outcome == Changed
}

// Summary counts what a Linter has read and judged.
type Summary struct {
	Packages   int `json:"packages"`   // of Go, without those that they import
	Files      int `json:"files"`      // of SQL
	Statements int `json:"statements"` // on sharded tables
	// OtherInserts are the INSERTs into tables that the rule doesn't have.
	OtherInserts int `json:"otherInserts"`
	// Unchecked are the calls of ORMs and query builders that may store rows of such tables.
	Unchecked int `json:"unchecked"`
	// Warnings are packages with errors. Statements in them may be missing.
	Warnings []string `json:"warnings,omitempty"`
}

// String returns the summary in one line, without the warnings.
func (su Summary) String() string {
	text := fmt.Sprintf("read %s and %s: %s on tables of the rule, %s into other tables",
		Counted(su.Packages, "Go package"), Counted(su.Files, "SQL file"),
		Counted(su.Statements, "statement"), Counted(su.OtherInserts, "INSERT"))
	if su.Unchecked > 0 {
		text += fmt.Sprintf("; not checked: %s of ORMs and query builders that may store rows", Counted(su.Unchecked, "call"))
	}
	return text
}

// Counted returns a number with its unit, such as "2 errors".
func Counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Linter checks statements and collects findings. It is not safe for concurrent use.
type Linter struct {
	// Connector plans the statements.
	Connector *driver.Connector
	// Names are the names of the sharded tables, logical and actual.
	Names []string
	// Mode is the sql_mode of the sessions.
	Mode sqltoken.Mode
	// Progress is called with each step of Packages before it begins.
	Progress func(step string)

	columns  map[string][]string // from CREATE TABLE, by the table's name in lower case
	findings []Finding
	seen     map[Finding]bool // a package and its test variant share files
	summary  Summary
	others   map[token.Position]int // INSERTs into other tables
	// unchecked are the calls of ORMs and query builders that may store rows.
	unchecked map[token.Position]bool
}

// Summary returns the counts so far.
func (l *Linter) Summary() Summary {
	s := l.summary
	places := map[string]bool{} // a statement that is built in several ways has several findings
	for _, f := range l.findings {
		places[fmt.Sprint(f.File, f.Line, f.Column)] = true
	}
	s.Statements, s.Unchecked = len(places), len(l.unchecked)
	for _, n := range l.others {
		s.OtherInserts += n
	}
	return s
}

// count records the INSERTs into other tables in a query at a position.
func (l *Linter) count(at token.Position, text string) {
	inserts := l.read(text).inserts()
	if n := len(inserts) - len(l.ruled(inserts)); n > 0 {
		if l.others == nil {
			l.others = map[token.Position]int{}
		}
		l.others[at] = n
	}
}

// Findings returns the findings so far, ordered by file, line and column.
func (l *Linter) Findings() []Finding {
	slices.SortStableFunc(l.findings, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, a.Column-b.Column)
	})
	return l.findings
}

// Statement checks a query of one or more statements and returns the findings.
func (l *Linter) Statement(text string) (found []Finding) {
	s := l.read(text)
	inserts := s.inserts()
	places := l.ruled(inserts)
	if dialect := s.dialect(); dialect != "" {
		return l.only(inserts, Foreign, dialect)
	}
	plan, err := l.plan(text, places)
	switch {
	case errors.Is(err, driver.ErrNoConnection) && !errors.As(err, new(*rule.UnlistedTableError)):
		return l.only(inserts, Filled, "no column list: at run time shardkey queries the table's columns")
	case err != nil:
		return []Finding{refused(text, err, append(places, inserts...))}
	}
	for _, one := range append([]*driver.Plan{plan}, plan.Others...) {
		if in := one.Insert; in != nil {
			f := insertFinding(in)
			if one.Detail.Unlisted && f.Outcome == Filled {
				f.Outcome, f.Reason = Passed, f.Reason+"; the rule doesn't list the table, so nil or 0 is refused"
			}
			if one.Detail.Unrouted != "" {
				f.Reason += "; " + one.Detail.Unrouted
			}
			isPlace := func(t target) bool { return t.schema == in.Schema && t.name == in.Name }
			if j := slices.IndexFunc(inserts, isPlace); j >= 0 {
				f.offset, inserts = inserts[j].at, inserts[j+1:]
			}
			found = append(found, f)
		}
	}
	if len(found) == 0 {
		found = append(found, l.unseen(s)...)
	}
	return append(found, l.updates(s)...)
}

// offsetOf returns the offset of a place in a query. Lines and bytes count from 1.
func offsetOf(text string, line, char int) (offset int) {
	for ; line > 1; line-- {
		offset += strings.IndexByte(text[offset:], '\n') + 1
	}
	return offset + char - 1
}

// plan plans a statement, with the columns of its table if a CREATE TABLE was read.
func (l *Linter) plan(text string, places []target) (*driver.Plan, error) {
	for _, t := range places {
		if columns := l.columns[strings.ToLower(t.name)]; columns != nil {
			return l.Connector.Plan(text, columns...)
		}
	}
	return l.Connector.Plan(text)
}

// refused returns the finding for an error of plan. inserts are the tables of the INSERTs.
func refused(text string, err error, inserts []target) Finding {
	if failed, ok := errors.AsType[*driver.StatementError](err); ok && failed.Line > 0 {
		f := Finding{Outcome: Refused, Reason: failed.Message, offset: offsetOf(text, failed.Line, failed.Char)}
		if schema, name, found := strings.Cut(failed.Table, "."); found {
			f.Table = sqltoken.QuoteTable(schema, name)
		} else if failed.Table != "" {
			f.Table = sqltoken.QuoteTable("", failed.Table)
		}
		return f
	}
	if e, ok := errors.AsType[*rule.UnlistedTableError](err); ok {
		err = e // of the causes
	}
	reason := strings.TrimPrefix(err.Error(), driver.ErrUnsupportedStatement.Error()+": ")
	f := Finding{Outcome: Refused, Reason: strings.TrimPrefix(reason, "shardkey: ")}
	if len(inserts) > 0 {
		f.Table, f.offset = sqltoken.QuoteTable(inserts[0].schema, inserts[0].name), inserts[0].at
	}
	return f
}

// Targets returns the names of the tables that a query inserts into.
func (l *Linter) Targets(text string) (names []string) {
	for _, t := range l.read(text).inserts() {
		names = append(names, t.name)
	}
	return names
}

// OutcomeOf returns the outcome of a planned INSERT.
func OutcomeOf(in *rewrite.Insert) Outcome { return insertFinding(in).Outcome }

func insertFinding(in *rewrite.Insert) Finding {
	f := Finding{Outcome: Passed, Table: sqltoken.QuoteTable(in.Schema, in.Name), Reason: explain.Summary(in)}
	switch {
	case in.Invalid:
		f.Outcome = Refused
	case explain.Fills(in):
		f.Outcome = Filled
	}
	return f
}

// report adds findings about a text that begins at start.
func (l *Linter) report(start token.Position, text string, found []Finding) {
	if l.seen == nil {
		l.seen = map[Finding]bool{}
	}
	line, lineStart, read := 0, 0, 0 // of the text up to read
	slices.SortStableFunc(found, func(a, b Finding) int { return a.offset - b.offset })
	for _, f := range found {
		for at := min(f.offset, len(text)); read < at; read++ {
			if text[read] == '\n' {
				line, lineStart = line+1, read+1
			}
		}
		f.File, f.Line, f.Column = start.Filename, start.Line+line, read-lineStart+1
		if line == 0 {
			f.Column = start.Column + read
		}
		if f.offset = 0; !l.seen[f] {
			l.seen[f] = true
			l.findings = append(l.findings, f)
		}
	}
}
