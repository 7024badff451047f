package tidb

import (
	"bytes"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
)

// rewritten compares the statement to send with the original's tree: the same statement, with the key
// at its place. An earlier check has shown that other bytes are unchanged.
func (c *check) rewritten(t tree) error {
	text := c.sent
	if c.odd && !comparable(text, c.opts) {
		return errUnknown
	}
	stmts, err := c.parse(text, c.opts)
	switch {
	case errors.Is(err, errUnknown), err != nil && strings.Contains(text, "WITH shardkey_rows"): // not all queries can be in another one
		return errUnknown
	case err != nil:
		return c.disagree(t.at, fact{"the statement to send", "a statement", "no statement"})
	}
	sent, err := c.inserts(text, stmts)
	if err == nil {
		err = c.agree(t.at, fact{"the INSERTs to send", 1, len(sent)})
	}
	if err != nil {
		return err
	}
	ours := make(map[int]bool)
	if err := c.sentInsert(t, sent[0], c.plan.Insert, ours); err != nil {
		return err
	}
	return c.order(markersOf(stmts...), t, ours)
}

// sameInsert compares an insert to send with the original: the same statement with these columns.
func (c *check) sameInsert(t, sent tree, in *rewrite.Insert, columns []string) error {
	assigned, last := len(t.OnDuplicate), in.Table.Key
	if in.ReportsExistingKey {
		assigned++
		if n := len(sent.OnDuplicate); n > 0 {
			last = sent.OnDuplicate[n-1].Column.Name.O
		}
	}
	return c.agree(t.at,
		fact{"the table to send", t.schema + "." + t.table, sent.schema + "." + sent.table},
		fact{"REPLACE", t.IsReplace, sent.IsReplace},
		fact{"IGNORE", t.IgnoreErr, sent.IgnoreErr},
		fact{"the columns to send", strings.Join(columns, ", "), strings.Join(listed(sent), ", ")},
		fact{"the number of rows to send", len(t.Lists), len(sent.Lists)},
		fact{"the assignments of ON DUPLICATE KEY UPDATE", assigned, len(sent.OnDuplicate)},
		fact{"the last assignment of ON DUPLICATE KEY UPDATE", in.Table.Key, last})
}

// sentInsert compares an insert to send with the original, and records the placeholders of keys.
func (c *check) sentInsert(t, sent tree, in *rewrite.Insert, ours map[int]bool) error {
	switch {
	case in.Invalid, in.SelectKey == rewrite.Literal, in.SelectKey == rewrite.Unknown:
		return nil
	case t.Select != nil:
		return c.sentQuery(t, sent, in, ours)
	}
	columns := columnsOf(t, in)
	want := columns // the statement to send always lists the columns
	key := keyIndex(columns, in)
	added := key < 0
	if added {
		want = append(slices.Clone(columns), in.Table.Key)
		key = len(columns)
	}
	if err := c.sameInsert(t, sent, in, want); err != nil {
		return err
	}
	for n, row := range sent.Lists {
		values := len(t.Lists[n])
		if added {
			values++
		}
		if len(row) != values {
			return c.disagree(c.rowAt(t, n), fact{"the number of values of a row to send", values, len(row)})
		}
		if in.Rows[n].Key == rewrite.Generated && !c.isKey(row[key], ours) {
			return c.disagree(c.rowAt(t, n), fact{"the key of a row to send", "a generated one", "another value"})
		}
	}
	return nil
}

func (c *check) rowAt(t tree, n int) int {
	if len(t.Lists[n]) == 0 {
		return t.at
	}
	return t.Lists[n][0].OriginTextPosition()
}

// isKey reports whether an expression is a generated key, perhaps within LAST_INSERT_ID().
func (c *check) isKey(e ast.ExprNode, ours map[int]bool) bool {
	e = unwrapped(e)
	if call, ok := e.(*ast.FuncCallExpr); ok && call.FnName.L == "last_insert_id" && len(call.Args) == 1 {
		e = call.Args[0]
	}
	if marker, ok := e.(ast.ParamMarkerExpr); ok {
		ours[positionOf(marker)] = true
		return c.keys == nil
	}
	if minus, ok := e.(*ast.UnaryOperationExpr); ok {
		e = minus.V
	}
	_, ok := e.(ast.ValueExpr)
	return ok && c.keys != nil
}

// order checks the order of the program's arguments and the keys, given the positions of all
// placeholders to send and of ours. A mistake would swap arguments.
func (c *check) order(markers []int, t tree, ours map[int]bool) error {
	if have, want := len(c.markers)+len(ours), len(markers); have != want {
		return c.disagree(t.at, fact{"the number of placeholders to send", have, want})
	}
	program := 0
	want := slices.Repeat([]int{key}, len(markers))
	wantAsked := slices.Clone(want)
	for i, at := range markers {
		if ours[at] {
			continue
		}
		program++
		want[i] = program
		if !c.keyArgs[program] {
			wantAsked[i] = program
		}
	}
	if err := c.sameArgs(t, c.args, want); err != nil {
		return err
	}
	return c.sameArgs(t, c.asked, wantAsked)
}

func (c *check) sameArgs(t tree, have, want []int) error {
	for i := range min(len(have), len(want)) {
		if have[i] != want[i] {
			return c.disagree(t.at, fact{fmt.Sprintf("argument %d to send", i+1), have[i], want[i]})
		}
	}
	return c.agree(t.at, fact{"the number of arguments to send", len(have), len(want)})
}

// key is the ordinal of a key; see [rewrite.Plan.Bind].
const key = -1

// bind determines what will be sent.
func (c *check) bind() {
	keys := rewrite.Keys{Counted: 2}
	if in := c.plan.Insert; in != nil {
		for i := range max(len(in.Rows), keys.Counted) {
			keys.Ints = append(keys.Ints, 1<<61+int64(i))
		}
	}
	args := make([]driver.NamedValue, c.plan.NumArgs)
	for i := range args {
		args[i].Ordinal = i + 1
	}
	literal := c.keys != nil
	_, asked, _ := c.plan.Bind(nil, args, asking(c.plan.Insert, keys), literal)
	if literal {
		keys = *c.keys
	}
	c.sent, args, _ = c.plan.Bind(nil, args, &keys, literal)
	c.args, c.asked = ordinals(args), ordinals(asked)
}

func ordinals(args []driver.NamedValue) []int {
	found := make([]int, len(args))
	for i, arg := range args {
		found[i] = arg.Ordinal
	}
	return found
}

// asking returns keys of which one replaces each argument that may ask for it.
func asking(in *rewrite.Insert, keys rewrite.Keys) *rewrite.Keys {
	if in == nil || in.Invalid || in.Table.KeepExplicit {
		return &keys
	}
	keys.Asked = make([]bool, len(in.Rows))
	for row, r := range in.Rows {
		keys.Asked[row] = r.Key == rewrite.Argument
	}
	return &keys
}

// spliced compares the statement to send with the plan's splices. A splice may only replace the key's
// value; all other bytes must be the program's. A splice out of range panics.
func (c *check) spliced() error {
	if c.plan.Insert == nil {
		return nil
	}
	var want strings.Builder
	pos, next := 0, 0 // next: the next key
	for s := range c.plan.Splices() {
		if c.endsInComment(c.text[s.At:s.End]) {
			what := fact{"the value that the key replaces", "one with a comment", "one without"}
			return c.disagree(s.At, what)
		}
		want.WriteString(c.text[pos:s.At] + s.Before)
		key := []byte(nil)
		switch {
		case s.HasKey && c.keys == nil:
			key = append(key, '?')
		case s.HasKey:
			key, _ = sqltoken.AppendLiteral(key, c.keys.At(next))
			next++
		}
		want.Write(key)
		want.WriteString(s.After)
		const odd = "'\"\\#*-\x00"
		c.odd = c.odd || strings.ContainsAny(s.Before, odd) || !sqltoken.IsASCII(s.Before) || bytes.ContainsAny(key, odd)
		pos = s.End
	}
	want.WriteString(c.text[pos:])
	if c.sent != want.String() {
		return c.disagree(0, fact{"the statement to send", "another statement", "the program's with keys"})
	}
	return nil
}

// endsInComment reports whether a replaced value includes a comment or blank at its end or
// beginning.
func (c *check) endsInComment(replaced string) bool {
	mode, charset := session(c.opts)
	lx, end := sqltoken.NewLexer(replaced, mode, charset), 0
	for {
		t := lx.Next()
		switch {
		case end == 0 && t.Start > 0, t.Kind == sqltoken.Bad:
			return true
		case t.Kind == sqltoken.EOF:
			return end < len(replaced)
		}
		end = t.End
	}
}
