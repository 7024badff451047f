package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/shardkey/shardkey/rule"
)

var (
	program   = regexp.MustCompile(`(?i)^\s*(?:CREATE|ALTER)\s+[^;(]*?\b(PROCEDURE|FUNCTION|TRIGGER|EVENT|PACKAGE)\b`)
	prepared  = regexp.MustCompile(`(?i)^\s*(?:PREPARE\s+` + ident + `\s+FROM|EXECUTE\s+IMMEDIATE)\s+['"]`)
	explained = regexp.MustCompile(`(?i)^\s*(?:EXPLAIN|DESCRIBE|DESC)\b`)
	selects   = regexp.MustCompile(`(?i)\bSELECT\b`)
)

// unseen returns findings for a statement that stores rows but isn't a plain INSERT, so the
// driver doesn't see the INSERT.
func (l *Linter) unseen(text, masked string) []Finding {
	inserts := namesIn(masked, insertTarget)
	switch {
	case program.MatchString(masked):
		kind := strings.ToLower(program.FindStringSubmatch(masked)[1])
		return l.only(inserts, Unfilled,
			"the server runs the INSERT of a "+kind+", so no key is generated; "+
				"write the key there, or insert from the program")
	case prepared.MatchString(masked):
		return l.prepared(text, masked)
	case explained.MatchString(masked):
		return l.only(inserts, Passed, "EXPLAIN doesn't run the statement")
	case loadTarget.MatchString(masked):
		return l.only(namesIn(masked, loadTarget), Passed, "the file contains the keys")
	case createTarget.MatchString(masked):
		return l.createSelect(masked)
	}
	return l.only(inserts, Unfilled,
		"not recognised as an INSERT, so it is passed through unchanged; send the INSERT by itself")
}

// prepared checks the statement inside PREPARE or EXECUTE IMMEDIATE.
func (l *Linter) prepared(text, masked string) (found []Finding) {
	start := len(prepared.FindString(masked)) - 1
	quoted := tokens(l.Mode).FindString(text[start:])
	inner := mask(quoted[1:max(len(quoted)-1, 1)], l.Mode)
	const why = "the server prepares and runs the INSERT, so no key is generated; " +
		"send the INSERT by itself"
	for _, f := range l.only(namesIn(inner, insertTarget), Unfilled, why) {
		f.offset += start + 1
		found = append(found, f)
	}
	return found
}

// createSelect checks CREATE TABLE … SELECT.
func (l *Linter) createSelect(masked string) (found []Finding) {
	for _, t := range l.ruled(namesIn(masked, createTarget)) {
		if selects.MatchString(masked[t.end:]) {
			const why = "CREATE TABLE … SELECT stores rows without generated keys; " +
				"create the table, then INSERT … SELECT"
			found = append(found, l.only([]target{t}, Unfilled, why)...)
		}
	}
	return found
}

// learn records the columns of CREATE TABLE statements.
func (l *Linter) learn(text string) {
	stmts, err := parse(text, l.Mode)
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
func (l *Linter) updates(text, masked string) (found []Finding) {
	if !strings.Contains(strings.ToUpper(masked), "UPDATE") {
		return nil
	}
	stmts, err := parse(text, l.Mode)
	if err != nil {
		return nil
	}
	for _, s := range stmts {
		switch u := s.(type) {
		case *ast.UpdateStmt:
			found = append(found, l.update(masked, "UPDATE", u.TableRefs, u.List)...)
		case *ast.InsertStmt:
			found = append(found, l.update(masked, "ON DUPLICATE KEY UPDATE", u.Table, u.OnDuplicate)...)
		}
	}
	return found
}

// update checks the assignments of one statement, table by table.
func (l *Linter) update(masked, verb string, refs *ast.TableRefsClause, list []*ast.Assignment) (found []Finding) {
	var tables tableVisitor
	refs.Accept(&tables)
	for _, t := range tables.found {
		own := slices.DeleteFunc(slices.Clone(list), func(a *ast.Assignment) bool {
			return a.Column.Table.O != "" && !strings.EqualFold(a.Column.Table.O, t.alias)
		})
		found = append(found, l.assignments(masked, verb, t, own)...)
	}
	return found
}

// assignments checks the assignments to the columns of one table.
func (l *Linter) assignments(masked, verb string, t aliased, list []*ast.Assignment) (found []Finding) {
	for _, key := range l.lookup(t.schema, t.name) {
		for _, a := range list {
			effect := effectOf(a, key)
			if effect == "" {
				continue
			}
			f := Finding{Outcome: Changed, Table: shown(t.schema, t.name), Reason: verb + " " + effect}
			f.offset = max(strings.Index(strings.ToUpper(masked), verb), 0)
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
		t.Gene != nil && isColumn(t.Gene.Column); {
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
			alias := n.AsName.O
			if alias == "" {
				alias = name.Name.O
			}
			v.found = append(v.found, aliased{name.Schema.O, name.Name.O, alias})
		}
	}
	return n, false
}

func (v *tableVisitor) Leave(n ast.Node) (ast.Node, bool) { return n, true }
