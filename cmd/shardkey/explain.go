package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/shardkey/shardkey/cmd/shardkey/internal/lint"
	"github.com/shardkey/shardkey/internal/explain"
	"github.com/shardkey/shardkey/internal/sqltext"
	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/rewrite/tidb"
	"github.com/shardkey/shardkey/rule"
)

// planned is what becomes of a text.
type planned struct {
	Outcome lint.Outcome `json:"outcome"` // filled, passed or refused
	Reason  string       `json:"reason,omitempty"`
	// Inserts are those into ruled tables.
	Inserts []plannedInsert `json:"inserts,omitempty"`
	// SecondReader is what TiDB's parser says of the text: agrees, or unknown.
	SecondReader string `json:"secondReader,omitempty"`
	// Sent is the text that is sent; where KeysInText is set, with the keys in place
	// of each ?.
	Sent       string `json:"sent,omitempty"`
	KeysInText bool   `json:"keysInText,omitempty"`
	// DidYouMean is a ruled table whose name is like one without a rule.
	DidYouMean string   `json:"didYouMean,omitempty"`
	Remarks    []remark `json:"remarks,omitempty"`

	problem bool // among the remarks
}

// remark is what lint says of a text that passes.
type remark struct {
	Outcome lint.Outcome `json:"outcome"`
	Table   string       `json:"table"`
	Reason  string       `json:"reason"`
}

// plannedInsert is what becomes of one INSERT or REPLACE.
type plannedInsert struct {
	Table     string   `json:"table"` // as it is named
	RuleTable string   `json:"ruleTable"`
	KeyColumn string   `json:"keyColumn"`
	Generator string   `json:"generator"`
	Keys      []string `json:"keys"` // in words, what becomes of the rows' keys

	headline string
}

// explainPlan says what becomes of a text that is not refused.
func explainPlan(text string, plan *rewrite.Plan, tables map[*rewrite.Table]*rule.Table, second tidb.Outcome) *planned {
	switch {
	case !rewrite.Classify(text).MustParse():
		return &planned{Outcome: lint.Passed, Reason: "it inserts nothing"}
	case len(plan.Inserts) == 0:
		return &planned{Outcome: lint.Passed, Reason: "no table that it inserts into has a rule"}
	}
	v := &planned{SecondReader: "agrees"}
	for i := range plan.Inserts {
		in := &plan.Inserts[i]
		if of := lint.OutcomeOf(in); v.Outcome != lint.Filled {
			v.Outcome = of // of several, filled when one is
		}
		v.Inserts = append(v.Inserts, insertOf(plan, in, tables[in.Table]))
	}
	if second == tidb.OutcomeUnknown {
		v.SecondReader = "unknown"
	}
	if plan.Inserts[0].Source != nil {
		return v
	}
	v.Sent, v.KeysInText = plan.BindText(), plan.Fills() > 0 && plan.Params() == 0
	return v
}

// insertOf is an INSERT with the lines that explain it.
func insertOf(plan *rewrite.Plan, in *rewrite.Insert, t *rule.Table) plannedInsert {
	var b strings.Builder
	explainInsert(&b, plan, in, t)
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	v := plannedInsert{
		Table: sqltext.QuoteTable(in.Schema, in.Name), RuleTable: t.Logical, KeyColumn: t.Column, Generator: t.GeneratorName,
		headline: lines[0],
	}
	for _, line := range lines[1:] {
		v.Keys = append(v.Keys, strings.TrimPrefix(line, "  "))
	}
	return v
}

func (v *planned) print(p *program) {
	if len(v.Inserts) == 0 {
		fmt.Fprintf(p.out, "passes as it is: %s\n", v.Reason)
	}
	for _, in := range v.Inserts {
		fmt.Fprintln(p.out, in.headline)
		for _, line := range in.Keys {
			fmt.Fprintln(p.out, " ", line)
		}
	}
	switch v.SecondReader {
	case "unknown":
		fmt.Fprintln(p.out, "TiDB's parser, the second reader, does not know the statement")
	case "agrees":
		fmt.Fprintln(p.out, "TiDB's parser, the second reader, agrees")
	}
	switch {
	case v.KeysInText:
		fmt.Fprintf(p.out, "sent with the keys themselves in place of the ?, since the statement has no arguments:\n%s\n", v.Sent)
	case v.Sent != "":
		fmt.Fprintf(p.out, "sent:\n%s\n", v.Sent)
	}
	if v.DidYouMean != "" {
		fmt.Fprintf(p.out, "did you mean %s?\n", v.DidYouMean)
	}
	for _, f := range v.Remarks {
		fmt.Fprintf(p.out, "%s: %s: %s\n", p.outcome(f.Outcome), f.Table, f.Reason)
	}
}

// outcome colours an outcome.
func (p *program) outcome(o lint.Outcome) string {
	switch o {
	case lint.Refused, lint.Unfilled, lint.Changed:
		return p.colours.out(red, string(o))
	case lint.Unknown:
		return p.colours.out(yellow, string(o))
	}
	return string(o)
}

func explainInsert(w io.Writer, plan *rewrite.Plan, in *rewrite.Insert, t *rule.Table) {
	verb := "INSERT"
	if in.Replace {
		verb = "REPLACE"
	}
	if plan.Statements > 1 {
		verb = fmt.Sprintf("statement %d: %s", in.Statement+1, verb)
	}
	fmt.Fprintf(w, "%s into %s: table %s of the rule, key column %s, generator %s\n",
		verb, sqltext.QuoteTable(in.Schema, in.Name), t.Logical, t.Column, t.GeneratorName)
	switch {
	case in.Refused:
		fmt.Fprintln(w, "  passes as it is: the server will refuse it, for a row has the wrong number of values")
	case in.Source != nil:
		explainSource(w, in)
	default:
		for _, row := range explain.Rows(in, 0) {
			fmt.Fprintf(w, "  %s\n", row)
		}
	}
	explainGenes(w, plan, in, t)
	explainShard(w, in, t)
	if in.InText {
		fmt.Fprintln(w, "  LAST_INSERT_ID(key) makes the server report the first key")
	}
	if in.Guarded {
		fmt.Fprintln(w, "  ON DUPLICATE KEY UPDATE reports the key of a row that exists already")
	}
}

func rowsText(first, last int) string {
	if last > first {
		return fmt.Sprintf("rows %d to %d", first+1, last+1)
	}
	return fmt.Sprintf("row %d", first+1)
}

func explainSource(w io.Writer, in *rewrite.Insert) {
	s := in.Source
	switch {
	case s.KeyIndex < 0:
		fmt.Fprintln(w, "  the query is read to its end, and each of its rows is inserted with a key:")
	case in.Table.KeepExplicit:
		fmt.Fprintln(w, "  passes as it is: the query gives the keys, and explicitKeys is keep:")
	default:
		fmt.Fprintln(w, "  the query is read to its end, and its rows are inserted, with a key where the query returns NULL or 0:")
	}
	fmt.Fprintln(w, "  "+strings.TrimSpace(s.Query))
}
