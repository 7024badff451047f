package tidb

import (
	"slices"
	"strings"

	"github.com/shardkey/shardkey/internal/rewrite"
)

// source compares an INSERT … SELECT with its tree, and the statement with another query.
func (c *check) source(t tree, in *rewrite.Insert) error {
	s, columns := in.Source, columnsOf(t, in)
	err := c.agree(t.at, in,
		fact{"the parts of the statement", true, c.hasParts(t.at, s)},
		fact{"the columns", strings.Join(s.Columns, ", "), strings.Join(columns, ", ")},
		fact{"the key's column", s.KeyIndex, keyIndex(columns, in)},
		fact{"the placeholders of the query", s.QueryParams, len(markersOf(t.Select))},
		fact{"the placeholders after the query", s.TailParams, len(markersOf(t.OnDuplicate...))})
	if err != nil {
		return err
	}
	if s.KeyIndex < 0 {
		columns = append(slices.Clone(columns), in.Table.KeyColumn)
	}
	return c.sentSource(t, in, columns)
}

// hasParts reports whether the statement at a position consists of the parts of a source, with its
// columns between the first two.
func (c *check) hasParts(at int, s *rewrite.Source) bool {
	rest, ok := strings.CutPrefix(c.text[at:], s.Head)
	if !ok {
		return false
	}
	if _, rest, ok = strings.Cut(rest, s.Query); !ok {
		return false
	}
	return strings.Contains(rest, s.Tail)
}

// sentSource compares the statement with listed columns with the original.
func (c *check) sentSource(t tree, in *rewrite.Insert, columns []string) error {
	notOne := fact{"the statement with its columns listed", "INSERT … SELECT", "another statement"}
	stmts, err := Parse(in.Text(in.Source.Query), c.opts)
	if err != nil || len(stmts) != 1 || Runs(stmts[0]) == nil {
		return c.disagree(t.at, in, notOne)
	}
	sent, err := newTree(Runs(stmts[0]), 0)
	if err != nil || sent.Select == nil {
		return c.disagree(t.at, in, notOne)
	}
	assigned := len(t.OnDuplicate)
	if in.Guarded {
		assigned++
	}
	return c.agree(t.at, in,
		fact{"the table to send", t.schema + "." + t.table, sent.schema + "." + sent.table},
		fact{"REPLACE", t.IsReplace, sent.IsReplace},
		fact{"IGNORE", t.IgnoreErr, sent.IgnoreErr},
		fact{"the columns to send", strings.Join(columns, ", "), strings.Join(listed(sent), ", ")},
		fact{"the placeholders of the query to send", in.Source.QueryParams, len(markersOf(sent.Select))},
		fact{"the assignments of ON DUPLICATE KEY UPDATE", assigned, len(sent.OnDuplicate)})
}
