package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/cmd/shardkey/internal/lint"
	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/explain"
	"github.com/shardkey/shardkey/internal/sqltext"
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
	// Assumes are what was assumed about the server.
	Assumes []string `json:"assumes,omitempty"`
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

// explainPlan describes the plan of a statement that inserts into sharded tables.
func explainPlan(plan *driver.Plan) *planned {
	v := &planned{SecondReader: plan.Verified, Sent: plan.Query, KeysInText: plan.Literal, Assumes: plan.Assumes}
	several := slices.ContainsFunc(plan.Inserts, func(in driver.PlannedInsert) bool { return in.Statement > 0 })
	for i := range plan.Inserts {
		in := &plan.Inserts[i]
		if of := lint.OutcomeOf(in); v.Outcome != lint.Filled {
			v.Outcome = of // of several, filled when one is
		}
		v.Inserts = append(v.Inserts, insertOf(in, several))
	}
	return v
}

// insertOf is an INSERT with the lines that explain it; several says that the statement is
// one of several.
func insertOf(in *driver.PlannedInsert, several bool) plannedInsert {
	verb := "INSERT"
	if in.Replace {
		verb = "REPLACE"
	}
	if several {
		verb = fmt.Sprintf("statement %d: %s", in.Statement+1, verb)
	}
	table := sqltext.QuoteTable(in.Schema, in.Name)
	return plannedInsert{
		Table: table, RuleTable: in.Table, KeyColumn: in.Column, Generator: in.Generator,
		Keys: append(explain.Rows(in, 0), in.Notes...),
		headline: fmt.Sprintf("%s into %s: table %s of the rule, key column %s, generator %s",
			verb, table, in.Table, in.Column, in.Generator),
	}
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
	if len(v.Assumes) > 0 {
		fmt.Fprintf(p.out, "assumed: %s\n", strings.Join(v.Assumes, "; "))
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
