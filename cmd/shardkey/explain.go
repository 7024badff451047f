package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/shardkey/shardkey/internal/sqltext"
	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/rewrite/tidb"
	"github.com/shardkey/shardkey/rule"
)

// explain prints what becomes of a text.
func explain(w io.Writer, text string, plan *rewrite.Plan, tables map[*rewrite.Table]*rule.Table, second tidb.Outcome) {
	switch {
	case !rewrite.Classify(text).MustParse():
		fmt.Fprintln(w, "passes as it is: it inserts nothing")
		return
	case len(plan.Inserts) == 0:
		fmt.Fprintln(w, "passes as it is: no table that it inserts into has a rule")
		return
	}
	for i := range plan.Inserts {
		in := &plan.Inserts[i]
		explainInsert(w, plan, in, tables[in.Table])
	}
	if second == tidb.OutcomeUnknown {
		fmt.Fprintln(w, "TiDB's parser, the second reader, does not know the statement")
	} else {
		fmt.Fprintln(w, "TiDB's parser, the second reader, agrees")
	}
	if plan.Inserts[0].Source != nil {
		return
	}
	if plan.Fills() > 0 && plan.Params() == 0 {
		fmt.Fprintln(w, "sent with the keys themselves in place of the ?, since the statement has no arguments:")
	} else {
		fmt.Fprintln(w, "sent:")
	}
	fmt.Fprintln(w, plan.BindText())
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
		explainRows(w, in)
	}
	explainShard(w, in, t)
	if in.InText {
		fmt.Fprintln(w, "  LAST_INSERT_ID(key) makes the server report the first key")
	}
	if in.Guarded {
		fmt.Fprintln(w, "  ON DUPLICATE KEY UPDATE reports the key of a row that exists already")
	}
}

// explainRows prints what becomes of each row's key. Adjacent rows of the same kind
// share a line.
func explainRows(w io.Writer, in *rewrite.Insert) {
	for first := 0; first < in.Rows(); {
		fate := keyFate(in, first)
		last := first
		for last+1 < in.Rows() && keyFate(in, last+1) == fate {
			last++
		}
		rows := fmt.Sprintf("row %d", first+1)
		if last > first {
			rows = fmt.Sprintf("rows %d to %d", first+1, last+1)
		}
		fmt.Fprintf(w, "  %s: %s\n", rows, fate)
		first = last + 1
	}
}

func keyFate(in *rewrite.Insert, row int) string {
	switch kind, param := in.Slot(row); kind {
	case rewrite.SlotFill:
		return "a key is generated"
	case rewrite.SlotParam:
		if in.Table.KeepExplicit {
			return fmt.Sprintf("argument %d is the key", param+1)
		}
		empty := "nil or 0"
		if in.Table.Kind == rewrite.KindText {
			empty = `nil or ""`
		}
		return fmt.Sprintf("argument %d is the key; for %s one is generated", param+1, empty)
	case rewrite.SlotKept:
		return "the key is kept as it is written"
	case rewrite.SlotExpression:
		return "the key is what the expression comes to; where that is nothing, the server takes a generated one"
	default:
		return "what is written is left to the server, and the key is not reported"
	}
}

func explainSource(w io.Writer, in *rewrite.Insert) {
	s := in.Source
	switch {
	case s.KeyIndex < 0:
		fmt.Fprintln(w, "  a key is generated for each row of the query, which is run once, into a temporary table:")
	case in.Table.KeepExplicit:
		fmt.Fprintln(w, "  passes as it is: the query gives the keys, and explicitKeys is keep:")
	default:
		fmt.Fprintln(w, "  a key is generated where the query, which is run once into a temporary table, gives NULL or 0:")
	}
	fmt.Fprintln(w, "  "+strings.TrimSpace(s.Query))
}
