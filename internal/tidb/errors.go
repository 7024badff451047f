package tidb

import (
	"cmp"
	"fmt"

	"github.com/shardkey/shardkey/internal/rewrite"
	"github.com/shardkey/shardkey/internal/sqltext"
)

// DisagreementError says that the scanner and TiDB's parser read a statement
// differently, and where. [rewrite.ErrUnsupportedStatement] and a
// [*rewrite.StatementError] are in its chain.
type DisagreementError struct {
	What    string // what they disagree about
	Scanner string // what package rewrite read
	Parser  string // what TiDB's parser read
	At      *rewrite.StatementError
}

func (e *DisagreementError) Error() string { return cmp.Or(e.At, new(rewrite.StatementError)).Error() }

func (e *DisagreementError) Unwrap() error { return cmp.Or(e.At, new(rewrite.StatementError)) }

// fact is one thing that both readers say.
type fact struct {
	what            string
	scanner, parser any
}

// agree returns the error of the first fact that differs.
func (c *check) agree(at int, in *rewrite.Insert, facts ...fact) error {
	for _, f := range facts {
		if f.scanner != f.parser {
			return c.disagree(at, in, f)
		}
	}
	return nil
}

// disagree makes the error of a fact that differs at a position of the text.
func (c *check) disagree(at int, in *rewrite.Insert, f fact) error {
	e := &DisagreementError{What: f.what, Scanner: fmt.Sprint(f.scanner), Parser: fmt.Sprint(f.parser)}
	table := ""
	if in != nil {
		table = sqltext.QuoteTable(in.Schema, in.Name)
	}
	reason := fmt.Sprintf("its two readers disagree about %s: the scanner has %s, TiDB's parser %s; "+
		"please report the statement, or turn the second parser off with shardkeyVerify=off", e.What, e.Scanner, e.Parser)
	e.At = rewrite.NewStatementError(c.text, c.opts, at, table, reason)
	return e
}
