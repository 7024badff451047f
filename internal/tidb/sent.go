package tidb

import (
	"bytes"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/shardkey/shardkey/internal/rewrite"
	"github.com/shardkey/shardkey/internal/sqltext"
)

// sent returns the statement to send.
func (c *check) sent() string {
	switch {
	case len(c.plan.Inserts) == 0:
		return c.text
	case c.keys == nil:
		return c.plan.BindText()
	}
	return c.plan.LiteralText(c.keys)
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
	w.buf, _ = sqltext.AppendLiteral(w.buf, w.keys[s.Insert].At(w.n))
	w.n++
	return w.buf
}

// offsets returns the positions of statements in the string.
func (c *check) offsets(stmts []ast.StmtNode) []int {
	offsets, pos := make([]int, len(stmts)), 0
	for i, stmt := range stmts {
		text := withoutComments(stmt.OriginalText())
		if found := strings.Index(c.text[pos:], text); found >= 0 {
			offsets[i] = pos + found
			pos += found + len(text)
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
		if endsInComment(c.text[s.At:s.End]) {
			what := fact{"the value that the key replaces", "one with a comment", "one without"}
			return c.disagree(s.At, &c.plan.Inserts[s.Insert], what)
		}
		written := key.next(s)
		want.WriteString(c.text[pos:s.At] + s.Before)
		want.Write(written)
		want.WriteString(s.After)
		c.plain = c.plain && !strings.ContainsAny(s.Before, odd) && (c.keys == nil || !bytes.ContainsAny(written, odd))
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
// beginning. The values that a key replaces (NULL, DEFAULT, an empty string and zeros) contain none
// of these bytes.
func endsInComment(replaced string) bool {
	if replaced == "" {
		return false
	}
	if strings.TrimSpace(replaced) != replaced || strings.HasPrefix(replaced, "/*") || strings.HasSuffix(replaced, "*/") {
		return true
	}
	last := replaced[strings.LastIndexByte(replaced, '\n')+1:]
	return strings.Contains(last, "#") || strings.Contains(last, "-- ") || strings.HasPrefix(replaced, "#")
}
