package tidb

import (
	"cmp"
	"fmt"

	"github.com/shardkey/shardkey/internal/rewrite"
	"github.com/shardkey/shardkey/internal/sqltext"
)

// DisagreementError is the error for a statement that the scanner and TiDB's parser understand
// differently. [rewrite.ErrUnsupportedStatement] and a [*rewrite.StatementError] are in its chain.
type DisagreementError struct {
	What    string // the property that differs
	Scanner string // its value in package rewrite
	Parser  string // its value in TiDB's parser
	At      *rewrite.StatementError
}

func (e *DisagreementError) Error() string { return cmp.Or(e.At, new(rewrite.StatementError)).Error() }

func (e *DisagreementError) Unwrap() error { return cmp.Or(e.At, new(rewrite.StatementError)) }

// fact is a property of a statement with its values in both parsers.
type fact struct {
	what            string
	scanner, parser any
}

// agree returns the error for the first fact that differs.
func (c *check) agree(at int, in *rewrite.Insert, facts ...fact) error {
	for _, f := range facts {
		if f.scanner != f.parser {
			return c.disagree(at, in, f)
		}
	}
	return nil
}

// disagree returns the error for a fact that differs at a position.
func (c *check) disagree(at int, in *rewrite.Insert, f fact) error {
	e := &DisagreementError{What: f.what, Scanner: fmt.Sprint(f.scanner), Parser: fmt.Sprint(f.parser)}
	table := ""
	if in != nil {
		table = sqltext.QuoteTable(in.Schema, in.Name)
	}
	reason := fmt.Sprintf("two parsers disagree about %s: shardkey's found %s, TiDB's found %s; "+
		"please report the statement, and write it in a simpler form", e.What, e.Scanner, e.Parser)
	e.At = rewrite.NewStatementError(c.text, c.opts, at, table, reason)
	return e
}
