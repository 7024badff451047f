package driver

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/fakedb"
)

// A query that the connection sent recently isn't read again, also if the comments around an INSERT
// differ. A new query is read once.
func TestRecentQueries_readOnce(t *testing.T) {
	for _, statement := range []string{
		"INSERT INTO t_order (a) VALUES (1)", "INSERT INTO other (a) VALUES (1)", "SELECT 1", "UPDATE t SET a = 1", "SET @a = 1", "USE app",
		"CREATE TABLE t (a INT)", "SELECT LAST_INSERT_ID(5)",
	} {
		for _, comment := range []string{"", " /* trace %d */", " -- trace %d"} {
			db, _ := openFake(t, &fakedb.Server{}, benchRule(t), Config{Server: "mysql"})
			noError(t, pinned(t, db).Raw(func(raw any) error {
				c := raw.(*conn)
				exec := func(n int) uint8 {
					query := statement
					if comment != "" {
						query += fmt.Sprintf(comment, n)
					}
					before := c.recent.next
					must(c.ExecContext(t.Context(), query, nil))(t)
					return c.recent.next - before
				}
				again := uint8(0)
				if comment != "" && !strings.HasPrefix(statement, "INSERT") {
					again = 1 // another query
				}
				equal(t, [3]uint8{exec(0), exec(1), exec(2)}, [3]uint8{1, again, again}, statement, comment)
				return nil
			}))
		}
	}
}

// Few functions of the driver read a query.
func TestRecentQueries_readers(t *testing.T) {
	want := map[string]string{
		"planFor": "Commented Scan Scan", "scan": "Scan", // once for each query
		"findCommented":    "CommentsEnd CommentsEnd", // around an INSERT
		"mayBeCommented":   "EndsWithToken",           // once for each plan
		"countParams":      "CountParams",             // of several statements
		"rollsBack":        "NewLexer",
		"mayReturnRows":    "Contains NewLexer",
		"nextTransaction":  "NewLexer", // after SET TRANSACTION
		"failedEarly":      "NewLexer Scan",
		"ReadsCounts":      "Contains Contains Lexer", // of an INSERT that is planned
		"planStatement":    "Scan",                    // of Connector.Plan
		"mayCallFunctions": "MayCallFunctions",        // once for each plan of an upsert
		"callsAny":         "MayCallFunctions",        // after an error
	}
	have := map[string]string{}
	for _, dir := range []string{".", "internal/session"} {
		files := must(filepath.Glob(dir + "/*.go"))(t)
		for _, file := range slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, "_test.go") }) {
			for name, reads := range readersIn(t, file) {
				have[name] = strings.TrimSpace(have[name] + " " + strings.Join(reads, " "))
			}
		}
	}
	for name, reads := range have {
		if reads != want[name] {
			t.Errorf("%s\nhave: %s\nwant: %s", name, reads, want[name])
		}
	}
}

// readersIn returns the calls that read a query, by function.
func readersIn(t *testing.T, file string) map[string][]string {
	t.Helper()
	reading := []string{"Scan", "Commented", "CommentsEnd", "EndsWithToken", "CountParams", "NewLexer", "Lexer", "Contains",
		"MayCallFunctions", "MentionsLastInsertID", "NamesLastInsertID", "MentionsInsert", "IndexInsert"}
	all := map[string][]string{}
	for _, d := range must(parser.ParseFile(token.NewFileSet(), file, nil, 0))(t).Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Body == nil || f.Name.Name == "Scan" {
			continue
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && slices.Contains(reading, s.Sel.Name) {
				if x, ok := s.X.(*ast.Ident); s.Sel.Name == "Scan" || ok && x.Name == "sqltoken" {
					all[f.Name.Name] = append(all[f.Name.Name], s.Sel.Name)
				}
			}
			return true
		})
		slices.Sort(all[f.Name.Name])
	}
	return all
}
