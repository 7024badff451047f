package tidb

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/rewrite"
)

// rewritten compares the statement to send with the original's trees: the same statements, with the
// key at its place. An earlier check has shown that other bytes are unchanged.
func (c *check) rewritten(trees []tree) error {
	text := c.sent()
	if len(text) > longest || !c.plain && !comparable(text, c.opts) {
		return ErrUnknown
	}
	stmts, err := c.parse(text, c.opts)
	if err != nil {
		return c.disagree(trees[0].at, &c.plan.Inserts[0], fact{"the statement to send", "a statement", "no statement"})
	}
	sent, err := c.inserts(text, stmts)
	if err != nil {
		return err
	}
	if len(sent) != len(trees) {
		return c.disagree(trees[0].at, nil, fact{"the INSERTs to send", len(trees), len(sent)})
	}
	ours := make(map[int]bool)
	for i := range trees {
		if err := c.sentInsert(trees[i], sent[i], &c.plan.Inserts[i], ours); err != nil {
			return err
		}
	}
	return c.order(stmts, trees[0], ours)
}

// sentInsert compares an insert to send with the original, and records the placeholders of keys.
func (c *check) sentInsert(t, sent tree, in *rewrite.Insert, ours map[int]bool) error {
	if in.Invalid || in.Source != nil {
		return nil
	}
	columns := columnsOf(t, in)
	want := columns // the statement to send always lists the columns
	key := keyIndex(columns, in)
	added := key < 0
	if added {
		want = append(slices.Clone(columns), in.Table.Key)
		key = len(columns)
	}
	assigned := len(t.OnDuplicate)
	if in.ReportsExistingKey {
		assigned++
	}
	err := c.agree(t.at, in,
		fact{"the columns to send", strings.Join(want, ", "), strings.Join(listed(sent), ", ")},
		fact{"the number of rows to send", len(t.Lists), len(sent.Lists)},
		fact{"the assignments of ON DUPLICATE KEY UPDATE", assigned, len(sent.OnDuplicate)})
	if err != nil {
		return err
	}
	if in.ReportsExistingKey {
		const what = "the last assignment of ON DUPLICATE KEY UPDATE"
		last := sent.OnDuplicate[assigned-1].Column.Name.O
		if !strings.EqualFold(last, in.Table.Key) {
			return c.disagree(t.at, in, fact{what, in.Table.Key, last})
		}
	}
	for n, row := range sent.Lists {
		values := len(t.Lists[n])
		if added {
			values++
		}
		if len(row) != values {
			return c.disagree(c.rowAt(t, n), in, fact{"the number of values of a row to send", values, len(row)})
		}
		switch in.Rows[n].Key {
		case rewrite.Generated:
		case rewrite.Expression:
			c.noteLast(row[key], ours)
			continue
		default:
			continue
		}
		if !c.isKey(row[key], ours) {
			return c.disagree(c.rowAt(t, n), in, fact{"the key of a row to send", "a generated one", "another value"})
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

// noteLast records the last placeholder of an expression, which is the placeholder of its key. An
// earlier check has shown that the rest is unchanged.
func (c *check) noteLast(e ast.ExprNode, ours map[int]bool) {
	if markers := markersOf(e); c.keys == nil && len(markers) > 0 {
		ours[markers[len(markers)-1]] = true
	}
}

// isKey reports whether an expression is a generated key, perhaps within LAST_INSERT_ID().
func (c *check) isKey(e ast.ExprNode, ours map[int]bool) bool {
	e = unwrapped(e)
	if call, ok := e.(*ast.FuncCallExpr); ok && call.FnName.L == "last_insert_id" && len(call.Args) == 1 {
		e = call.Args[0]
	}
	if marker, ok := e.(ast.ParamMarkerExpr); ok {
		ours[marker.OriginTextPosition()] = true
		return c.keys == nil
	}
	if minus, ok := e.(*ast.UnaryOperationExpr); ok {
		e = minus.V
	}
	_, ok := e.(ast.ValueExpr)
	return ok && c.keys != nil
}

// order checks the plan's order of the user's placeholders and those for keys. A mistake would swap
// arguments.
func (c *check) order(stmts []ast.StmtNode, first tree, ours map[int]bool) error {
	markers := markersOf(stmts...)
	if have, want := len(c.markers)+len(ours), len(markers); have != want {
		return c.disagree(first.at, nil, fact{"the number of placeholders to send", have, want})
	}
	if c.keys != nil {
		return nil
	}
	bound, user := c.bound(), 0
	for i, at := range markers {
		want := user
		if ours[at] {
			want = ofKey
		} else {
			user++
		}
		if i >= len(bound) || bound[i] != want {
			return c.disagree(first.at, nil, fact{fmt.Sprintf("argument %d to send", i+1), len(bound), want})
		}
	}
	return nil
}

// ofKey stands for a generated key among the user's arguments.
const ofKey = -1

// bound returns the indexes of the user's arguments in the order to send, with those for keys between
// them.
func (c *check) bound() (args []int) {
	user := 0
	until := func(next int) {
		for ; user < next; user++ {
			args = append(args, user)
		}
	}
	for i := range c.plan.Inserts {
		for _, r := range c.plan.Inserts[i].Rows {
			if !c.plan.Inserts[i].Invalid && (r.Key == rewrite.Generated || r.Key == rewrite.Expression) {
				until(r.Arg)
				args = append(args, ofKey)
			}
		}
	}
	until(len(c.markers))
	return args
}

// sent returns the statement to send.
func (c *check) sent() string {
	switch {
	case len(c.plan.Inserts) == 0:
		return c.text
	case c.keys == nil:
		return c.plan.Query()
	}
	query, _ := c.plan.Literal(c.keys)
	return query
}

// keyWriter writes the keys of splices in order.
type keyWriter struct {
	keys   []rewrite.Keys // nil: placeholders
	insert int
	n      int
	buf    []byte
}

// next returns the next splice's key as SQL, valid until the next call.
func (w *keyWriter) next(s rewrite.Splice) []byte {
	w.buf = w.buf[:0]
	switch {
	case !s.HasKey:
		return nil
	case w.keys == nil:
		w.buf = append(w.buf, '?')
		return w.buf
	}
	if s.Insert != w.insert {
		w.insert, w.n = s.Insert, 0
	}
	w.buf, _ = sqltoken.AppendLiteral(w.buf, w.keys[s.Insert].At(w.n))
	w.n++
	return w.buf
}

// offsetsIn returns the positions of statements in their string.
func offsetsIn(text string, stmts []ast.StmtNode) []int {
	offsets, pos := make([]int, len(stmts)), 0
	for i, stmt := range stmts {
		one := withoutComments(stmt.OriginalText())
		if found := strings.Index(text[pos:], one); found >= 0 {
			offsets[i] = pos + found
			pos += found + len(one)
		}
	}
	return offsets
}

// withoutComments returns a string without leading blanks and comments.
func withoutComments(text string) string {
	for {
		text = strings.TrimLeft(text, " \t\n\v\f\r")
		end := ""
		switch {
		case strings.HasPrefix(text, "/*"):
			end = "*/"
		case strings.HasPrefix(text, "#"), strings.HasPrefix(text, "--"):
			end = "\n"
		default:
			return text
		}
		_, text, _ = strings.Cut(text, end)
	}
}

// splices compares the statement to send with the plan's splices. A splice may only replace the
// key's value; all other bytes must be the program's. A splice out of range panics; see recovered.
func (c *check) splices() error {
	var want strings.Builder
	pos, key := 0, keyWriter{keys: c.keys}
	c.plain = true
	for s := range c.plan.Splices() {
		if c.endsInComment(c.text[s.At:s.End]) {
			what := fact{"the value that the key replaces", "one with a comment", "one without"}
			return c.disagree(s.At, &c.plan.Inserts[s.Insert], what)
		}
		written := key.next(s)
		want.WriteString(c.text[pos:s.At] + s.Before)
		want.Write(written)
		want.WriteString(s.After)
		c.plain = c.plain && !strings.ContainsAny(s.Before, odd) && sqltoken.IsASCII(s.Before) && (c.keys == nil || !bytes.ContainsAny(written, odd))
		pos, c.spliced = s.End, true
	}
	want.WriteString(c.text[pos:])
	if c.sent() != want.String() {
		return c.disagree(0, nil, fact{"the statement to send", "another statement", "the program's with keys"})
	}
	return nil
}

// odd are bytes that TiDB may interpret differently from the servers.
const odd = "'\"\\#*-\x00"

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
