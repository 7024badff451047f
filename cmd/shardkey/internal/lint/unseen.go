package lint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/internal/tidb"
	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/rule"
)

// unseen returns findings for a statement that stores rows but isn't a plain INSERT, so the
// driver doesn't see the INSERT.
func (l *Linter) unseen(s script) []Finding {
	inserts, creates, kind := s.inserts(), s.creates(), s.program()
	inner, isPrepared := s.prepared()
	switch {
	case kind != "":
		return l.only(inserts, Unfilled,
			"the server runs the INSERT of the "+kind+", so no key is generated; "+
				"write the key there, or insert from the program")
	case isPrepared:
		return l.prepared(s.text, inner)
	case s.is(0, "EXPLAIN", "DESCRIBE", "DESC"):
		return l.only(inserts, Passed, "EXPLAIN doesn't run the statement")
	case s.loads() != nil:
		return l.only(s.loads(), Passed, "the file contains the keys")
	case len(creates) > 0 && s.index("SELECT") < creates[0].end:
		return nil
	case len(creates) > 0:
		return l.only(creates, Unfilled, "CREATE TABLE … SELECT stores rows without generated keys; "+
			"create the table, then INSERT … SELECT")
	}
	return l.only(inserts, Unfilled,
		"not recognised as an INSERT, so it is passed through unchanged; send the INSERT by itself")
}

// prepared checks the statement in the string of PREPARE or EXECUTE IMMEDIATE.
func (l *Linter) prepared(text string, inner sqltoken.Token) (found []Finding) {
	const why = "the server prepares and runs the INSERT, so no key is generated; " +
		"send the INSERT by itself"
	for _, f := range l.only(l.read(text[inner.Start+1:inner.End-1]).inserts(), Unfilled, why) {
		f.offset += inner.Start + 1
		found = append(found, f)
	}
	return found
}

// learn records the columns of CREATE TABLE statements.
func (l *Linter) learn(text string) {
	stmts, err := tidb.ParseAny(text, rewrite.Options{SQLMode: l.Mode.String()})
	if err != nil {
		return
	}
	for _, s := range stmts {
		create, ok := s.(*ast.CreateTableStmt)
		if !ok || create.Select != nil || len(create.Cols) == 0 {
			continue
		}
		if l.columns == nil {
			l.columns = make(map[string][]string)
		}
		columns := make([]string, len(create.Cols))
		for i, c := range create.Cols {
			columns[i] = c.Name.Name.O
		}
		l.columns[create.Table.Name.L] = columns
	}
}

// updates returns findings for UPDATEs that change the key of a row.
func (l *Linter) updates(s script) (found []Finding) {
	update, duplicate := s.index("UPDATE"), max(s.index("ON", "DUPLICATE", "KEY", "UPDATE"), 0)
	if update < 0 {
		return nil
	}
	stmts, err := tidb.ParseAny(s.text, rewrite.Options{SQLMode: l.Mode.String()})
	if err != nil {
		return nil
	}
	for _, stmt := range stmts {
		switch u := stmt.(type) {
		case *ast.UpdateStmt:
			found = append(found, l.update(s.tokens[update].Start, "UPDATE", u.TableRefs, u.List)...)
		case *ast.InsertStmt:
			found = append(found, l.update(s.tokens[duplicate].Start, "ON DUPLICATE KEY UPDATE", u.Table, u.OnDuplicate)...)
		}
	}
	return found
}

// update checks the assignments of one statement, table by table. at is the offset of verb.
func (l *Linter) update(at int, verb string, refs *ast.TableRefsClause, list []*ast.Assignment) (found []Finding) {
	var tables tableVisitor
	refs.Accept(&tables)
	for _, t := range tables.found {
		found = append(found, l.assignments(at, verb, t, list)...)
	}
	return found
}

// assignments checks the assignments to the columns of one table.
func (l *Linter) assignments(at int, verb string, t aliased, list []*ast.Assignment) (found []Finding) {
	for _, key := range l.lookup(t.schema, t.name) {
		for _, a := range list {
			effect, of := effectOf(a, key), a.Column.Table.O
			if effect == "" || of != "" && !strings.EqualFold(of, t.alias) {
				continue
			}
			f := Finding{Outcome: Changed, Table: shown(t.schema, t.name), Reason: verb + " " + effect, offset: at}
			if strings.Contains(t.name, hole) {
				f.Outcome, f.computed = Unknown, true
				f.Reason = fmt.Sprintf("%s: if %s is a table of %s, %s", computedTable, f.Table, key.Logical, f.Reason)
				return []Finding{f}
			}
			found = append(found, f)
		}
	}
	return found
}

// effectOf returns how an assignment affects a row's key or shard, or "" if it doesn't.
func effectOf(a *ast.Assignment, t *rule.Table) string {
	column := a.Column.Name
	isColumn := func(name string) bool { return strings.EqualFold(name, column.O) }
	values, ok := a.Expr.(*ast.ValuesExpr)
	isInserted := ok && values.Column.Name.Name.L == column.L // VALUES(column)
	switch decides := t.Sharding != nil && slices.ContainsFunc(t.Sharding.Columns, isColumn) ||
		t.ShardBits != nil && isColumn(t.ShardBits.Column); {
	case keeps(a):
	case isColumn(t.Column):
		return "changes the key of a row"
	case decides && !isInserted:
		return "changes the sharding column " + column.O + ", but the row stays in its table; " +
			"delete the row, and insert it into the right table"
	}
	return ""
}

// keeps reports whether an assignment doesn't change its column: id = id, or the idiom
// id = LAST_INSERT_ID(id).
func keeps(a *ast.Assignment) bool {
	e := a.Expr
	if call, ok := e.(*ast.FuncCallExpr); ok && call.FnName.L == "last_insert_id" && len(call.Args) == 1 {
		e = call.Args[0]
	}
	column, ok := e.(*ast.ColumnNameExpr)
	return ok && column.Name.Name.L == a.Column.Name.L
}

// tableVisitor collects the tables of a FROM or UPDATE clause.
type tableVisitor struct{ found []aliased }

type aliased struct{ schema, name, alias string }

func (v *tableVisitor) Enter(n ast.Node) (ast.Node, bool) {
	switch n := n.(type) {
	case *ast.SubqueryExpr:
		return n, true
	case *ast.TableSource:
		if name, ok := n.Source.(*ast.TableName); ok {
			v.found = append(v.found, aliased{name.Schema.O, name.Name.O, cmp.Or(n.AsName.O, name.Name.O)})
		}
	}
	return n, false
}

func (v *tableVisitor) Leave(n ast.Node) (ast.Node, bool) { return n, true }
