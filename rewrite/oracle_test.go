package rewrite

import (
	"fmt"
	"regexp"
	"slices"
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

// comparable tells texts that TiDB reads as MySQL does. It takes "/*T!" and
// "/*+" for text, executes every "/*!" and never "/*M!", lets a string go on
// behind a NUL byte, reads a control character behind "--" otherwise, and puts
// '?' in place of bytes that are no UTF-8. With ANSI_QUOTES it sees escapes in
// "names\"", where the servers see none.
func comparable(text string, mode Mode) bool {
	if mode&ANSIQuotes != 0 && strings.Contains(text, `"`) && strings.Contains(text, `\`) {
		return false
	}
	return utf8.ValidString(text) && !oddText.MatchString(text)
}

var oddText = regexp.MustCompile(`/\*[!MT+]|\x00|--[^ -~\n]`)

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

// checkInserts holds what a plan says against the trees.
func checkInserts(trees []*ast.InsertStmt, p *Plan) error {
	if len(trees) != len(p.Inserts) {
		return fmt.Errorf("inserts\nhave: %d\nwant: %d", len(p.Inserts), len(trees))
	}
	for i, tree := range trees {
		if err := checkInsert(tree, &p.Inserts[i]); err != nil {
			return fmt.Errorf("insert %d: %w", i, err)
		}
	}
	return nil
}

func checkInsert(tree *ast.InsertStmt, in *Insert) error {
	name := tree.Table.TableRefs.Left.(*ast.TableSource).Source.(*ast.TableName)
	have := fmt.Sprint(in.Schema, ".", in.Name, in.Replace, in.Ignore, in.OnDuplicate, in.Source != nil)
	want := fmt.Sprint(name.Schema.O, ".", name.Name.O, tree.IsReplace, tree.IgnoreErr, tree.OnDuplicate != nil, tree.Select != nil)
	if have != want {
		return fmt.Errorf("what it is\nhave: %s\nwant: %s", have, want)
	}
	if in.Source != nil {
		return nil
	}
	if !in.Refused && in.Rows() != len(tree.Lists) {
		return fmt.Errorf("rows\nhave: %d\nwant: %d", in.Rows(), len(tree.Lists))
	}
	columns := columnsOf(tree, in)
	refused := slices.ContainsFunc(tree.Lists, func(row []ast.ExprNode) bool { return len(row) != len(columns) })
	if in.Refused != refused {
		return fmt.Errorf("wrong number of values\nhave: %v\nwant: %v", in.Refused, refused)
	}
	if refused {
		return nil
	}
	key := slices.IndexFunc(columns, func(c string) bool { return strings.EqualFold(c, in.Table.KeyColumn) })
	for i, row := range tree.Lists {
		kind, _ := in.Slot(i)
		if err := checkKind(kind, row, key, in.Table.KeepExplicit); err != nil {
			return fmt.Errorf("row %d: %w", i, err)
		}
	}
	return nil
}

// columnsOf are the columns that the rows of a tree are for.
func columnsOf(tree *ast.InsertStmt, in *Insert) (columns []string) {
	for _, c := range tree.Columns {
		columns = append(columns, c.Name.O)
	}
	if len(columns) == 0 && len(tree.Lists[0]) > 0 {
		return in.Table.Columns
	}
	return columns
}

func checkKind(kind SlotKind, row []ast.ExprNode, key int, keep bool) error {
	want := "fill"
	if key >= 0 {
		want = kindOf(row[key], keep)
	}
	if have := [...]string{"fill", "param", "kept", "unknown"}[kind]; !strings.Contains(want, have) {
		return fmt.Errorf("key\nhave: %s\nwant: %s", have, want)
	}
	return nil
}

// kindOf tells what may become of a key.
func kindOf(e ast.ExprNode, keep bool) string {
	brackets := false
	for {
		b, ok := e.(*ast.ParenthesesExpr)
		if !ok {
			break
		}
		e, brackets = b.Expr, true
	}
	switch e := e.(type) {
	case ast.ParamMarkerExpr:
		return "param"
	case *ast.DefaultExpr:
		if e.Name == nil && !brackets && !keep {
			return "fill"
		}
	case ast.ValueExpr:
		switch {
		case e.GetValue() != nil:
			return "fill kept unknown" // what is zero is not for this oracle
		case !keep:
			return "fill"
		}
	case *ast.UnaryOperationExpr:
		return "fill kept unknown"
	case *ast.IsTruthExpr, *ast.ColumnNameExpr:
		return "unknown"
	}
	return "unknown"
}

// checkRewritten holds a rewritten text to be the original when the key is
// taken off.
func (o *oracle) checkRewritten(text, rewritten string, mode Mode, p *Plan) error {
	before, err := o.parse(text, mode)
	if err != nil {
		return err
	}
	for i, tree := range inserts(before) {
		takeKeys(tree, &p.Inserts[i], false)
	}
	want, err := restore(before)
	if err != nil {
		return nil // what the parser reads and cannot print is not ours
	}
	after, err := o.parse(rewritten, mode)
	if err != nil {
		return fmt.Errorf("it does not parse: %w", err)
	}
	for i, tree := range inserts(after) {
		takeKeys(tree, &p.Inserts[i], true)
	}
	if have, err := restore(after); have != want {
		return fmt.Errorf("but for the key\nhave: %s\nwant: %s\n%v", have, want, err)
	}
	return nil
}

// takeKeys takes off a tree what is of the key: generated values become nil,
// and when they were added, they and their column go.
func takeKeys(tree *ast.InsertStmt, in *Insert, rewritten bool) {
	if in.Listed {
		tree.Columns = nil
	}
	if in.Refused || in.Source != nil || in.Rows() == 0 {
		return
	}
	added := in.keyPrefix != "" || in.headText != ""
	if in.Guarded && rewritten {
		tree.OnDuplicate = tree.OnDuplicate[:len(tree.OnDuplicate)-1]
	}
	if in.headText != "" && !strings.HasPrefix(in.headText, ",") {
		tree.Columns = nil // the text had none, or ()
	} else if rewritten && added {
		tree.Columns = tree.Columns[:len(tree.Columns)-1]
	}
	null := ast.NewValueExpr(nil, "", "")
	for i := range tree.Lists {
		row := &tree.Lists[i]
		kind, _ := in.Slot(i)
		switch {
		case added && rewritten:
			*row = (*row)[:len(*row)-1]
		case !added && kind == Fill:
			(*row)[in.keyIndex(columnsOf(tree, in))] = null
		}
	}
}

// checkSplices holds that the bind text is the text but for its splices, byte
// for byte, and that they are what they must be.
func checkSplices(text string, p *Plan) error {
	type splice struct {
		at, end int
		want    *regexp.Regexp
		exact   string // without want
	}
	var splices []splice
	for i := range p.Inserts {
		in := &p.Inserts[i]
		if in.Listed {
			splices = append(splices, splice{in.headAt, in.headAt, nil, in.headText})
		}
		if in.Refused || in.Source != nil {
			continue
		}
		if in.headText != "" {
			splices = append(splices, splice{in.headAt, in.headAt, headSplice, ""})
		}
		for row := range in.Rows() {
			if kind, _ := in.Slot(row); kind == Fill {
				splices = append(splices, splice{int(in.slots.at[row]), in.slots.end(row), keySplice, ""})
			}
		}
		if in.aliasAt >= 0 {
			splices = append(splices, splice{in.aliasAt, in.aliasAt, aliasSplice, ""})
		}
		if in.Guarded {
			splices = append(splices, splice{in.duplicateAt, in.duplicateAt, nil, ", " + in.guard()})
		}
	}
	rest, pos := p.BindText(), 0
	for _, s := range splices {
		if s.at < pos || s.end < s.at {
			return fmt.Errorf("splice at %d to %d behind %d", s.at, s.end, pos)
		}
		kept, ok := strings.CutPrefix(rest, text[pos:s.at])
		added := s.exact
		if s.want != nil {
			added = s.want.FindString(kept)
		}
		if !ok || added == "" || !strings.HasPrefix(kept, added) {
			return fmt.Errorf("at %d\nhave: %q\nwant: %q and then %v%s", pos, rest, text[pos:s.at], s.want, s.exact)
		}
		rest, pos = kept[len(added):], s.end
	}
	if rest != text[pos:] {
		return fmt.Errorf("at %d\nhave: %q\nwant: %q", pos, rest, text[pos:])
	}
	return nil
}

var (
	headSplice  = regexp.MustCompile("^(, `id`| \\((`[as]`, )*`id`\\)|(`[as]`, )*`id`)")
	keySplice   = regexp.MustCompile("^(, )?(`id` = )?(LAST_INSERT_ID\\(\\?\\)|\\?)")
	aliasSplice = regexp.MustCompile("^, `shardkey_key`")
)
