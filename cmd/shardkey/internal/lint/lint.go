// Package lint says of the statements in SQL files and Go programs what becomes
// of them when a rule is used, before they run.
package lint

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/internal/sqltext"
	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/rewrite/tidb"
)

// Outcome is what becomes of a statement.
type Outcome string

const (
	// Filled: keys are generated, or arguments decide whether they are.
	Filled Outcome = "filled"
	// Passed: the statement is sent as it is, and gives its keys itself.
	Passed Outcome = "passed"
	// Refused: shardkey does not send the statement, or the server is certain
	// to refuse it.
	Refused Outcome = "refused"
	// Unfilled: the server stores rows without a generated key.
	Unfilled Outcome = "unfilled"
	// Changed: a row gets another key than the one that was generated.
	Changed Outcome = "changed"
	// Unknown: the text is put together when the program runs, or its table's name is.
	Unknown Outcome = "unknown"
)

// Finding is what becomes of one statement on a ruled table.
type Finding struct {
	File    string  `json:"file"`
	Line    int     `json:"line"`   // from 1
	Column  int     `json:"column"` // in bytes, from 1
	Outcome Outcome `json:"outcome"`
	Table   string  `json:"table"` // as the statement names it
	Reason  string  `json:"reason"`

	offset int // in the statement's text
}

func (f Finding) String() string {
	return fmt.Sprintf("%s:%d:%d: %s: %s: %s", f.File, f.Line, f.Column, f.Outcome, f.Table, f.Reason)
}

// IsProblem reports whether the statement needs attention.
func (f Finding) IsProblem() bool {
	return f.Outcome == Refused || f.Outcome == Unfilled || f.Outcome == Changed
}

// Linter looks at texts. It is not safe for concurrent use.
type Linter struct {
	// Tables finds a ruled table, as [rewrite.Options] do.
	Tables func(schema, name string) *rewrite.Table
	// Names are those of the ruled tables, logical and actual.
	Names []string
	// Unlisted returns the error for a table without a rule that the driver
	// refuses, and nil for all others; it may be nil.
	Unlisted func(schema, name string) error
	// Mode is the sessions' sql_mode.
	Mode rewrite.Mode

	columns  map[string][]string // of tables whose CREATE TABLE was seen, in lower case
	findings []Finding
}

// Findings returns the findings so far, in the order of files and lines.
func (l *Linter) Findings() []Finding {
	slices.SortStableFunc(l.findings, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, a.Column-b.Column)
	})
	return l.findings
}

// Statement is what becomes of a text of one statement or more.
func (l *Linter) Statement(text string) (found []Finding) {
	masked := mask(text, l.Mode)
	plan, err := rewrite.Parse(text, l.options())
	var failed *rewrite.StatementError
	switch {
	case errors.As(err, &failed):
		return []Finding{{Outcome: Refused, Table: failed.Table, Reason: failed.Reason, offset: failed.Offset}}
	case errors.Is(err, errColumns):
		in := namesIn(masked, insertTarget)
		return l.only(in, Filled, "it lists no columns: the table's are read from the server when the statement runs")
	case err != nil:
		return []Finding{{Outcome: Refused, Reason: err.Error()}}
	}
	if rewrite.Classify(text) == rewrite.ClassMayInsert { // what the driver parses
		if _, err := tidb.Check(text, l.options(), plan); errors.As(err, &failed) {
			return []Finding{{Outcome: Refused, Table: failed.Table, Reason: failed.Reason, offset: failed.Offset}}
		}
	}
	found = l.unlisted(namesIn(masked, insertTarget))
	places := l.ruled(namesIn(masked, insertTarget))
	for i := range plan.Inserts {
		f := insertFinding(&plan.Inserts[i])
		if i < len(places) {
			f.offset = places[i].at
		}
		found = append(found, f)
	}
	if len(plan.Inserts) == 0 {
		found = append(found, l.unseen(text, masked)...)
	}
	return append(found, l.updates(text, masked)...)
}

// errColumns says that a statement needs its table's columns.
var errColumns = errors.New("the table's columns are not known")

// options are those of the application's sessions, with the columns that were
// seen.
func (l *Linter) options() rewrite.Options {
	return rewrite.Options{
		Mode:    l.Mode,
		Columns: func(*rewrite.Insert) ([]string, error) { return nil, errColumns },
		Tables: func(schema, name string) *rewrite.Table {
			t := l.Tables(schema, name)
			if t != nil && t.Columns == nil {
				known := *t
				known.Columns = l.columns[strings.ToLower(name)]
				t = &known
			}
			return t
		},
	}
}

// OutcomeOf is what becomes of an insert that is understood.
func OutcomeOf(in *rewrite.Insert) Outcome { return insertFinding(in).Outcome }

// insertFinding is what becomes of an insert that is understood.
func insertFinding(in *rewrite.Insert) Finding {
	f := Finding{Outcome: Filled, Table: sqltext.QuoteTable(in.Schema, in.Name)}
	switch {
	case in.Refused:
		f.Outcome, f.Reason = Refused, "a row has the wrong number of values: the server will refuse it"
		return f
	case in.Source != nil && in.KeepsSource():
		f.Outcome, f.Reason = Passed, "the query gives the keys, and explicitKeys is keep"
		return f
	case in.Source != nil && in.Source.KeyIndex >= 0:
		f.Reason = "a key is generated where the query gives NULL or 0"
		return f
	case in.Source != nil:
		f.Reason = "a key is generated for each row of the query"
		return f
	}
	n := map[rewrite.SlotKind]int{}
	for i := range in.Rows() {
		kind, _ := in.Slot(i)
		n[kind]++
	}
	var reasons []string
	for _, r := range []struct {
		kind rewrite.SlotKind
		one  string
	}{
		{rewrite.SlotFill, "a key is generated"},
		{rewrite.SlotParam, "an argument is the key"},
		{rewrite.SlotKept, "the key is given"},
		{rewrite.SlotUnknown, "the server decides what the key is"},
		{rewrite.SlotExpression, "an expression is the key, or where it comes to nothing a generated one"},
	} {
		switch {
		case n[r.kind] == 0:
		case in.Rows() == 1:
			reasons = append(reasons, r.one)
		default:
			reasons = append(reasons, fmt.Sprintf("%s in %d of %d rows", r.one, n[r.kind], in.Rows()))
		}
	}
	f.Reason = strings.Join(reasons, ", ")
	if n[rewrite.SlotFill] == 0 && n[rewrite.SlotExpression] == 0 && (n[rewrite.SlotParam] == 0 || in.Table.KeepExplicit) {
		f.Outcome = Passed
	}
	return f
}

// add keeps the findings of a statement that begins at an offset of a file's
// text.
func (l *Linter) add(file, text string, base int, found []Finding) {
	for _, f := range found {
		before := text[:min(base+f.offset, len(text))]
		f.File, f.Line = file, 1+strings.Count(before, "\n")
		f.Column = len(before) - strings.LastIndexByte(before, '\n')
		l.findings = append(l.findings, f)
	}
}
