package rewrite

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	tidb "github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/format"
	"github.com/pingcap/tidb/pkg/parser/mysql"
	_ "github.com/pingcap/tidb/pkg/parser/test_driver"
)

// oracle holds plans against the parser of TiDB, which is a grammar of MySQL
// that others wrote. Where it differs from the servers the oracle is silent:
// see comparable.
type oracle struct{ parser *tidb.Parser }

func newOracle() *oracle { return &oracle{tidb.New()} }

func (o *oracle) parse(text string, mode Mode) (stmts []ast.StmtNode, err error) {
	defer func() {
		if p := recover(); p != nil { // its test driver panics at long decimals
			err = fmt.Errorf("the parser panicked: %v", p)
			o.parser = tidb.New()
		}
	}()
	var m mysql.SQLMode
	if mode&ANSIQuotes != 0 {
		m |= mysql.ModeANSIQuotes
	}
	if mode&NoBackslashEscapes != 0 {
		m |= mysql.ModeNoBackslashEscapes
	}
	o.parser.SetSQLMode(m)
	stmts, _, err = o.parser.Parse(text, "", "")
	return stmts, err
}

// comparable tells texts that TiDB reads as MySQL and MariaDB do. It takes
// "/*T!" and "/*+" for text, executes every "/*!" and never "/*M!", lets a text
// go on behind a NUL byte, reads a control character behind "--" otherwise,
// takes the 0 of "t. 0" and the INTO of "INTO. t" for names, puts '?' in place of bytes that are no
// UTF-8, and with ANSI_QUOTES sees escapes in "names\"", where there are none.
func comparable(text string, mode Mode) bool {
	if mode&ANSIQuotes != 0 && strings.Contains(text, `"`) && strings.Contains(text, `\`) {
		return false
	}
	return utf8.ValidString(text) && !oddText.MatchString(text)
}

var oddText = regexp.MustCompile(`(?i)/\*[!MT+]|\x00|--[^ -~\n]|\.\s+[0-9]|(insert|replace|into|ignore|priority|delayed)\s*\.|\.\s*(/\*|#|--)`)

// inserts are the INSERTs and REPLACEs among statements.
func inserts(stmts []ast.StmtNode) (found []*ast.InsertStmt) {
	for _, s := range stmts {
		if in, ok := s.(*ast.InsertStmt); ok {
			plainRows(in)
			found = append(found, in)
		}
	}
	return found
}

// plainRows makes rows of VALUES ROW(…), which is a query to TiDB.
func plainRows(in *ast.InsertStmt) {
	query, ok := in.Select.(*ast.SelectStmt)
	if !ok || query.Kind != ast.SelectStmtKindValues {
		return
	}
	in.Select = nil
	for _, row := range query.Lists {
		in.Lists = append(in.Lists, row.Values)
	}
}

// restore prints statements with names and strings as they are.
func restore(stmts []ast.StmtNode) (string, error) {
	var b strings.Builder
	for _, s := range stmts {
		if err := s.Restore(format.NewRestoreCtx(format.DefaultRestoreFlags, &b)); err != nil {
			return "", err
		}
		b.WriteString(";\n")
	}
	return b.String(), nil
}

// paramCounter counts the placeholders of a tree.
type paramCounter struct{ n int }

func (c *paramCounter) Enter(n ast.Node) (ast.Node, bool) {
	if _, ok := n.(ast.ParamMarkerExpr); ok {
		c.n++
	}
	return n, false
}

func (c *paramCounter) Leave(n ast.Node) (ast.Node, bool) { return n, true }

func countParams(stmts []ast.StmtNode) int {
	var c paramCounter
	for _, s := range stmts {
		s.Accept(&c)
	}
	return c.n
}

// checkPlan tells what is wrong with the plan of a text; keys are literals for
// each of its inserts.
func (o *oracle) checkPlan(text string, mode Mode, p *Plan, keys []Keys) error {
	if err := checkSplices(text, p); err != nil {
		return err
	}
	if have, want := countTokens(p.BindText(), mode), countTokens(text, mode)+p.Fills(); have != want {
		return fmt.Errorf("placeholders of the bind text\nhave: %d\nwant: %d", have, want)
	}
	if have := countTokens(text, mode); have != p.Params() {
		return fmt.Errorf("placeholders of the text\nhave: %d\nwant: %d", p.Params(), have)
	}
	if !comparable(text, mode) {
		return nil
	}
	stmts, err := o.parse(text, mode)
	if err != nil {
		return nil // not for this parser
	}
	if countParams(stmts) != p.Params() {
		return fmt.Errorf("placeholders\nhave: %d\nwant: %d", p.Params(), countParams(stmts))
	}
	if err := checkInserts(inserts(stmts), p); err != nil {
		return err
	}
	for _, rewritten := range []string{p.BindText(), p.LiteralText(keys)} {
		if err := o.checkRewritten(text, rewritten, mode, p); err != nil {
			return fmt.Errorf("%s\n%w", rewritten, err)
		}
	}
	return nil
}

func countTokens(text string, mode Mode) int {
	lx, n := lexer{text: text, mode: mode, execute: true}, 0
	for {
		switch t := lx.next(); t.kind {
		case tokenEOF, tokenBad:
			return n
		case tokenParam:
			n++
		}
	}
}
