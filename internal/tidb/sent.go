package tidb

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/shardkey/shardkey/internal/rewrite"
	"github.com/shardkey/shardkey/internal/sqltext"
)

// sent is the whole text that is sent.
func (c *check) sent() string {
	switch {
	case len(c.plan.Inserts) == 0:
		return c.text
	case c.keys == nil:
		return c.plan.BindText()
	}
	return c.plan.LiteralText(c.keys)
}

// keyWriter writes the keys of splices, one after the other.
type keyWriter struct {
	keys   []rewrite.Keys // nil: placeholders
	insert int
	n      int
	buf    []byte
}

// next is the key of a splice as the text has it, valid until the next call.
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
	if keys := w.keys[s.Insert]; keys.Ints != nil {
		w.buf = strconv.AppendInt(w.buf, keys.Ints[w.n], 10)
	} else {
		w.buf, _ = sqltext.AppendLiteral(w.buf, keys.Values[w.n])
	}
	w.n++
	return w.buf
}

// offsets are the places of statements in the text.
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

// withoutComments is a text without the blanks and comments before it.
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

// splices holds the text that is sent against the plan's splices: they take nothing with
// them but the value that a key replaces, and the text that is sent is the user's, byte
// for byte, but for them. A splice that is out of place panics: see recovered.
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
		return c.disagree(0, nil, fact{"the text that is sent", "another text", "the statement and its keys"})
	}
	return nil
}

// odd are the bytes that TiDB may read otherwise than the servers do.
const odd = "'\"\\#*-\x00"

// endsInComment reports whether what a key replaces takes a comment or blank
// before or after the value with it. What asks for a key, NULL, DEFAULT, ” and
// zeros, has none of these bytes itself.
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
