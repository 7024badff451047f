package rewrite

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/shardkey/shardkey/internal/sqltoken"
)

// Exports for the tests of package rewrite_test, which use the second parser.

// GoldenCase is one statement of testdata.
type GoldenCase struct {
	Title, Text string
	Options     Options
}

// GoldenCases are the statements of testdata/*.golden.
func GoldenCases(t testing.TB) (cases []GoldenCase) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.golden")
	if err != nil || len(files) == 0 {
		t.Fatal("no golden files", err)
	}
	for _, file := range files {
		for _, c := range readGolden(t, file) {
			cases = append(cases, GoldenCase{file + ": " + c.title, c.text, c.opts})
		}
	}
	return cases
}

// CountPlaceholders counts the placeholders that the lexer finds in a statement.
func CountPlaceholders(text string, opts Options) int {
	lx := sqltoken.NewLexer(text, sqltoken.ParseMode(opts.SQLMode), sqltoken.ParseCharset(opts.Charset))
	for t := lx.Next(); t.Kind != sqltoken.EOF && t.Kind != sqltoken.Bad; t = lx.Next() {
	}
	return lx.Params
}

// SetSent sets the statement that a plan sends, for tests that break plans.
func (plan *Plan) SetSent(text string) { plan.bind.Store(&text) }

// SetHead moves and replaces the addition to the column list.
func (in *Insert) SetHead(at int, text string) { in.head = addition(at, text) }

// SetKeyPrefix sets the prefix of an added key.
func (in *Insert) SetKeyPrefix(text string) { in.keyPrefix = text }

// SetSlot sets the bytes that the key of a row replaces.
func (in *Insert) SetSlot(row, at, end int) { in.places[row] = place{uint32(at), uint32(end)} }

// MoveKey moves the key of a query.
func (in *Insert) MoveKey(by int) {
	last := &in.query.changes[len(in.query.changes)-1]
	last.at, last.end = last.at+uint32(by), last.end+uint32(by)
}

// DropRow forgets the last row.
func (in *Insert) DropRow() {
	in.Rows, in.places = in.Rows[:len(in.Rows)-1], in.places[:len(in.places)-1]
}

// CheckStatementError checks that an error is complete.
func CheckStatementError(t *testing.T, text string, err error) {
	t.Helper()
	var failed *StatementError
	switch {
	case !errors.As(err, &failed), !errors.Is(err, ErrUnsupportedStatement):
		t.Fatalf("%q\nhave: %#v\nwant: *StatementError", text, err)
	case failed.Line < 1, failed.Char < 1, failed.offset(text) > len(text), failed.Near == "", failed.Message == "":
		t.Fatalf("%q\n%#v", text, failed)
	}
}
