package tidb

import (
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

// bytes holds the text that is sent against the plan's splices: it is the user's
// text, byte for byte, and nothing is added or replaced but for them.
func (c *check) bytes() error {
	if err := c.places(); err != nil {
		return err
	}
	rest, pos := remainder{text: c.sent()}, 0
	key := keyWriter{keys: c.keys}
	for s := range c.plan.Splices() {
		rest.take(c.text[pos:s.At])
		rest.take(s.Before)
		rest.take(string(key.next(s)))
		rest.take(s.After)
		if rest.differs {
			return c.otherText(pos)
		}
		pos = s.End
	}
	if rest.text != c.text[pos:] {
		return c.otherText(pos)
	}
	return nil
}

// remainder is what is left of a text after what it must begin with.
type remainder struct {
	text    string
	differs bool
}

func (r *remainder) take(prefix string) {
	after, ok := strings.CutPrefix(r.text, prefix)
	r.text, r.differs = after, r.differs || !ok
}

func (c *check) otherText(at int) error {
	return c.disagree(at, nil, fact{"the text that is sent", "another text", "the statement and its keys"})
}

// places holds that the splices are in the order of the text and take nothing
// with them but the value that a key replaces.
func (c *check) places() error {
	pos := 0
	for s := range c.plan.Splices() {
		in := &c.plan.Inserts[s.Insert]
		if s.At < pos || s.End < s.At || s.End > len(c.text) {
			return c.disagree(min(max(s.At, 0), len(c.text)), in, fact{"where the key goes", "out of order", "within the statement"})
		}
		if endsInComment(c.text[s.At:s.End]) {
			return c.disagree(s.At, in, fact{"the value that the key replaces", "one with a comment", "one without"})
		}
		pos, c.spliced = s.End, true
	}
	return nil
}

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
