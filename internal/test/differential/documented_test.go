package differential

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	testmust "github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

// documented is an example of a row of docs/reference/sql-differences.md, whose last column has its
// name. Its last step, or a table after it, differs from AUTO_INCREMENT.
type documented struct {
	name   string
	on     testserver.Servers // "": each server
	not    testserver.Servers
	class  string // of known_test.go, if random statements have the difference too
	kind   tableKind
	params string
	ddl    []string
	steps  []step
	field  string // what differs
}

var differences = []documented{
	{name: "next key", steps: []step{q("SET insert_id = 555"), q("INSERT INTO t (a) VALUES (1)")}, field: "LastInsertId"},
	{
		name: "greatest key", class: "an explicit key above all others",
		steps: []step{dirty("INSERT INTO t (id, a) VALUES (9223372036854775807, 1), (NULL, 2)")}, field: "error",
	},
	{name: "DEFAULT", class: "DEFAULT under NO_AUTO_VALUE_ON_ZERO", steps: []step{q("SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'"), q("INSERT INTO t (id, a) VALUES (DEFAULT, 1)")}, field: "LastInsertId"},
	{name: "key in its row", steps: []step{q("INSERT INTO child (id, t_id) VALUES (NULL, id + 1)")}, field: "table child"},
	{
		name: "key in a trigger", ddl: []string{"CREATE TRIGGER tr BEFORE INSERT ON child FOR EACH ROW SET NEW.t_id = NEW.id"},
		steps: []step{q("INSERT INTO child (a) VALUES (1)")}, field: "table child",
	},
	{
		name: "VALUES(id)", class: "VALUES(id) in an update list",
		steps: []step{q("INSERT INTO t (id, u) VALUES (5, 1), (6, 2)"), q("INSERT INTO t (u) VALUES (1), (2) ON DUPLICATE KEY UPDATE s = VALUES(id)")}, field: "table t",
	},
	{
		name: "later column", on: testserver.MariaDB, ddl: []string{"ALTER TABLE t ADD x INT DEFAULT (y), ADD y INT DEFAULT 3"},
		steps: []step{q("INSERT INTO t VALUES (NULL, 1, 1, 'a', DEFAULT, 10), (NULL, 2, 2, 'b', DEFAULT, 20)")}, field: "table t",
	},
	{
		name: "case of the table", ddl: []string{"CREATE TABLE T (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT) AUTO_INCREMENT = 7000"},
		steps: []step{q("INSERT INTO T (a) VALUES (1)")}, field: "WithKeys",
	},
	{
		name: "address as the key", on: testserver.MariaDB, class: "the value of an expression as the key", ddl: []string{"ALTER TABLE t ADD x INET6"},
		steps: []step{dirty("INSERT INTO t (x, id) VALUES ('::1', x)")}, field: "error",
	},
	{
		name: "function in a query", class: "a function that runs twice",
		ddl:   []string{functions[1].create()},
		steps: []step{q("INSERT INTO t (a) SELECT a FROM src WHERE fi(a) > 0 ORDER BY a LIMIT 2")}, field: "table free",
	},
	{
		name: "view", class: "a view or function that reads LAST_INSERT_ID()", ddl: []string{views[0].create()},
		steps: []step{q("INSERT INTO t (u) VALUES (1)"), {text: "INSERT IGNORE INTO t (u) VALUES (1)", read: "SELECT l FROM vl"}}, field: "read",
	},
	{
		name: "function in the values", class: "a view or function that reads LAST_INSERT_ID()", ddl: []string{functions[2].create()},
		steps: []step{q("INSERT INTO child (t_id) VALUES (fl()), (fl())")}, field: "table child",
	},
	{
		name: "trigger of another table", class: "a trigger of a table without a rule, or of UPDATE or DELETE, that reads LAST_INSERT_ID()",
		ddl: []string{"CREATE TRIGGER tr BEFORE UPDATE ON free FOR EACH ROW SET NEW.a = LAST_INSERT_ID()"},
		steps: []step{
			q("INSERT INTO free (a) VALUES (1)"), q("INSERT INTO t (u) VALUES (1)"),
			{text: "INSERT IGNORE INTO t (u) VALUES (1)", read: "SELECT 1"}, // SELECT LAST_INSERT_ID() would correct it
			{text: "UPDATE free SET a = 3", read: "SELECT 1"},
		}, field: "table free",
	},
	{
		name: "trigger of INSERT … SELECT", class: "a trigger that reads LAST_INSERT_ID() during an upsert of several rows, or INSERT … SELECT",
		ddl:   []string{"CREATE TRIGGER tr AFTER INSERT ON t FOR EACH ROW INSERT INTO free (a) VALUES (LAST_INSERT_ID())"},
		steps: []step{q("INSERT INTO t (a) SELECT a FROM src ORDER BY a")}, field: "table free",
	},
	{name: "sql_auto_is_null", steps: []step{q("SET sql_auto_is_null = 1"), q("INSERT INTO t (a) VALUES (1)"), q("SELECT COUNT(*) FROM t WHERE id IS NULL")}, field: "rows"},
	{
		name: "bound key that the server changes", class: "LastInsertId of an expression, or of a key that the server changes",
		steps: []step{{text: "INSERT INTO t (id, a) VALUES (?, 1)", args: []any{3.5}, marks: "dirty key"}}, field: "LastInsertId",
	},
	{
		name: "expression", class: "LastInsertId of an expression, or of a key that the server changes",
		steps: []step{dirty("INSERT INTO t (id, a) VALUES (2 + 3, 1)")}, field: "LastInsertId",
	},
	{name: "keys of a query", class: "LastInsertId of explicit keys of a query", steps: []step{q("INSERT INTO t (id, a) SELECT a, a FROM src ORDER BY a")}, field: "LastInsertId"},
	{
		name: "trigger that sets the key", ddl: []string{"CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.id = 500"},
		steps: []step{q("INSERT INTO t (a) VALUES (1)")}, field: "LastInsertId",
	},
	{
		name: "trigger that sets NULL", ddl: []string{"CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW SET NEW.id = NULL"},
		steps: []step{q("INSERT INTO t (a) VALUES (1)")}, field: "error",
	},
	{
		name: "upsert that reads", class: "upsert of an existing row that reads LAST_INSERT_ID()",
		steps: []step{q("INSERT INTO t (id, u) VALUES (5, 1)"), q("INSERT INTO t (u) VALUES (1) ON DUPLICATE KEY UPDATE a = LAST_INSERT_ID()")}, field: "LastInsertId",
	},
	{
		name: "upsert with an UPDATE trigger", class: "upsert of an existing row with an UPDATE trigger: LastInsertId",
		ddl:   []string{"CREATE TRIGGER tr BEFORE UPDATE ON t FOR EACH ROW SET NEW.id = 700"},
		steps: []step{q("INSERT INTO t (id, u) VALUES (5, 1)"), q("INSERT INTO t (u) VALUES (1) ON DUPLICATE KEY UPDATE a = 9")}, field: "LastInsertId",
	},
	{
		name: "upsert that changes the key of its own row", class: "an upsert that changes the key of a row that it has inserted",
		steps: []step{q("INSERT INTO t (u) VALUES (1), (1) ON DUPLICATE KEY UPDATE id = 600")}, field: "LastInsertId",
	},
	{
		name: "upsert of the key in SIMULTANEOUS_ASSIGNMENT", on: testserver.MariaDB,
		steps: []step{q("INSERT INTO t (id, u) VALUES (5, 1)"), q("SET sql_mode = 'SIMULTANEOUS_ASSIGNMENT'"), q("INSERT INTO t (u) VALUES (1) ON DUPLICATE KEY UPDATE id = 600")}, field: "WithKeys",
	},
	{
		name: "clientFoundRows", class: "upsert by an explicit key that changes nothing, with clientFoundRows", params: "clientFoundRows=true",
		ddl:   []string{"CREATE TRIGGER tr BEFORE UPDATE ON t FOR EACH ROW SET NEW.s = NULL"},
		steps: []step{q("INSERT INTO t (id, u, a) VALUES (5, 1, 1)"), q("INSERT INTO t (id, u, a) VALUES (5, 11, 1) ON DUPLICATE KEY UPDATE a = 1")}, field: "LastInsertId",
	},
	{
		name: "upsert with a trigger that skips rows", on: "MariaDB 11.8", class: "upsert of several rows, of which a trigger skips one",
		ddl:   []string{"CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW IF NEW.u = 2 THEN SIGNAL SQLSTATE '02TRG'; END IF"},
		steps: []step{q("INSERT INTO t (id, u) VALUES (5, 1)"), q("INSERT INTO t (u) VALUES (1), (2) ON DUPLICATE KEY UPDATE a = 9")}, field: "LastInsertId",
	},
	{
		name: "REPLACE with a trigger that skips rows", on: "MariaDB 11.8", class: "REPLACE of several rows, of which a trigger may skip one",
		ddl:   []string{"CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW IF NEW.u = 2 THEN SIGNAL SQLSTATE '02TRG'; END IF"},
		steps: []step{q("REPLACE INTO t (u) VALUES (1), (1) RETURNING id")}, field: "LAST_INSERT_ID()",
	},
	{
		name: "string that replaces", class: "keys of rows that the same string replaces", params: "multiStatements=true",
		steps: []step{q("REPLACE INTO t (u) VALUES (1); REPLACE INTO t (u) VALUES (1)")}, field: "WithKeys",
	},
	{
		name: "counts", class: "ROW_COUNT() or warnings after a statement for which shardkey asked",
		steps: []step{q("INSERT INTO t (u) VALUES (1)"), {text: "INSERT IGNORE INTO t (u) VALUES (1), (2)", read: "SHOW WARNINGS"}}, field: "read",
	},
	{name: "columns of SELECT *", steps: []step{q("INSERT INTO child SELECT * FROM src ON DUPLICATE KEY UPDATE a = src.a")}, field: "error"},
	{name: "grouped by LAST_INSERT_ID()", steps: []step{q("INSERT INTO t (a) SELECT COUNT(*) FROM src GROUP BY LAST_INSERT_ID()")}, field: "error"},
	{
		name: "NULL of an expression", class: "an expression or a column of a query as the key: NULL or 0",
		steps: []step{dirty("INSERT INTO t (id, a) VALUES (NULLIF(1, 1), 1)")}, field: "error",
	},
	{name: "UPDATE to DEFAULT", steps: []step{q("INSERT INTO t (id, u) VALUES (5, 1)"), q("UPDATE t SET id = DEFAULT")}, field: "error"},
	{name: "upsert to NULL", steps: []step{q("INSERT INTO t (id, u) VALUES (5, 1)"), q("INSERT INTO t (u) VALUES (1) ON DUPLICATE KEY UPDATE id = NULL")}, field: "error"},
	{
		name: "upsert that changes the key", on: testserver.MySQL, class: "an upsert that changes the key to another row's: 1869",
		steps: []step{q("INSERT INTO t (u) VALUES (1), (1), (2) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)")}, field: "error",
	},
	{
		name: "REPLACE after a generated key", on: testserver.MariaDB, class: "REPLACE with an explicit key that exists, after a generated one",
		steps: []step{q("INSERT INTO t (id, u) VALUES (5, 1)"), q("REPLACE INTO t (id, u) VALUES (?, 1), (?, 1), (?, 3)", nil, 5, 5)}, field: "error",
	},
	{
		name: "READ ONLY", on: testserver.MySQL, class: "a view without tables between SET TRANSACTION and an INSERT", ddl: []string{views[0].create()},
		steps: []step{q("SET TRANSACTION READ ONLY"), q("SELECT l > 0 FROM vl"), q("INSERT INTO t (a) VALUES (1)")}, field: "error",
	},
	{
		name: "EXCEPT of an argument", on: testserver.MySQL, class: "a UNION of an argument and text",
		steps: []step{q("INSERT INTO t (s, u) SELECT CAST(a AS CHAR), a FROM src EXCEPT SELECT ?, a FROM src", 4)}, field: "error",
	},
	{name: "empty statement", params: "multiStatements=true", steps: []step{q("INSERT INTO t (a) VALUES (1);; INSERT INTO t (a) VALUES (2)")}, field: "error"},
	{
		name: "columns of a query", class: "columns of a query that is in another one, in ON DUPLICATE KEY UPDATE",
		steps: []step{q("INSERT INTO t (u) SELECT DISTINCT src.a FROM src ON DUPLICATE KEY UPDATE a = src.a")}, field: "error",
	},
	{
		name: "UNION with a warning", on: testserver.MariaDB, not: "MariaDB 11.8", class: "a UNION with a warning",
		steps: []step{q("INSERT INTO t (a) SELECT CAST('1x' AS SIGNED) UNION SELECT 2")}, field: "error",
	},
	{
		name: "brackets", on: testserver.MariaDB,
		steps: []step{q("INSERT INTO t (a) (SELECT a FROM src UNION SELECT 2 ORDER BY a)")}, field: "error",
	},
	{
		name: "VALUES with LIMIT", on: testserver.MySQL,
		steps: []step{q("INSERT INTO t (a) VALUES ROW(1), ROW(2) LIMIT 1")}, field: "affected",
	},
	{
		name: "order by a literal", on: testserver.MySQL, class: "as in a common table expression",
		steps: []step{q("INSERT INTO t (a, u) WITH c AS (SELECT 13, a FROM src ORDER BY 1) SELECT * FROM c")}, field: "error",
	},
	{
		name: "bits of a query in another", on: testserver.MySQL, class: "as in a common table expression", ddl: []string{"CREATE TABLE bits (bit8 BIT(8))"},
		steps: []step{q("INSERT INTO t (a, u) SELECT DISTINCT bit8, 1 FROM (SELECT * FROM bits) x LIMIT 5")}, field: "error",
	},
	{
		name: "two columns of one name", on: testserver.MariaDB, class: "a query whose columns have one name twice",
		steps: []step{q("INSERT INTO t (a, s) WITH c AS (SELECT ?, LAST_INSERT_ID() FROM src) SELECT * FROM c UNION ALL SELECT * FROM c", 5)}, field: "error",
	},
	{
		name: "hidden table", class: "a view, or a temporary table that hides another",
		steps: []step{q("CREATE TEMPORARY TABLE t (s VARCHAR(60), id {key}, a INT)"), q("INSERT INTO t (a) VALUES (LAST_INSERT_ID(9))")}, field: "LastInsertId",
	},
	{
		name: "upsert of a system-versioned table", on: testserver.MariaDB, class: "upsert of an existing row of a system-versioned table", kind: versioned,
		ddl:   []string{"ALTER TABLE t ADD SYSTEM VERSIONING"},
		steps: []step{q("INSERT INTO t (id, u) VALUES (5, 1)"), q("INSERT INTO t (u) VALUES (1) ON DUPLICATE KEY UPDATE a = 8")}, field: "LastInsertId",
	},
	{
		name: "trigger of another process", class: "within 10 seconds of another process's ALTER or CREATE TRIGGER",
		steps: []step{q("INSERT INTO t (a) VALUES (1)"), {text: "CREATE TRIGGER {db}.tr BEFORE INSERT ON {db}.t FOR EACH ROW SET NEW.id = 500 + NEW.a", by: unseen},
			q("INSERT INTO t (a) VALUES (3)")}, field: "WithKeys",
	},
}

// dirty returns a step with an explicit key or an expression as the key.
func dirty(text string, args ...any) step { return step{text: text, args: args, marks: "dirty key"} }

// TestDifferences runs the examples of docs/reference/sql-differences.md. It fails if one is the
// same as AUTO_INCREMENT. TestDifferential_random fails if there are others.
func TestDifferences(t *testing.T) { onEach(t, testDifferences) }

func testDifferences(t *testing.T) {
	features := featuresOf(t)
	for _, d := range differences {
		t.Run(d.name, func(t *testing.T) {
			if d.on != "" && !testserver.Has(t, d.on, d.name) || d.not != "" && testserver.Has(t, d.not, d.name) {
				return
			}
			both := sides(t, d.params, shapes[0])
			w := &world{variant: variant{shape: shapes[0], params: d.params}, features: features, kind: d.kind}
			for _, ddl := range d.ddl {
				if trigger, ok := strings.CutPrefix(ddl, "CREATE TRIGGER tr "); ok {
					w.triggers = append(w.triggers, object{"TRIGGER", "tr", trigger})
				}
				for _, s := range both {
					mustExec(t, s.db, ddl)
				}
			}
			run := &duel{t: t, sides: both, variant: w.variant}
			run.open()
			defer run.close()
			diff := run.run(d.steps)
			if diff == nil {
				t.Fatal("have: as AUTO_INCREMENT\nwant: a difference, or no row of the page")
			}
			testmust.Equal(t, diff.field, d.field, diff)
			testmust.Equal(t, knownClass(w, diff), d.class, diff)
		})
	}
}

// TestDocs_differences checks that each row of docs/reference/sql-differences.md names its examples or
// tests, that each example is in a row, and that each known class has an example.
func TestDocs_differences(t *testing.T) {
	page := string(must(os.ReadFile("../../../docs/reference/sql-differences.md"))(t))
	_, lists, _ := strings.Cut(page, "\n## Differences from AUTO_INCREMENT\n")
	lists, _, _ = strings.Cut(lists, "\n## ")
	var named []string
	rows := regexp.MustCompile(`(?m)^\| .* \| ([^|]*) \|$`).FindAllStringSubmatch(lists, -1)
	for _, row := range rows {
		names := regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1)
		if len(names) == 0 && row[1] != "test" && row[1] != "---" {
			t.Errorf("have: %s\nwant: an example or a test in the last column", row[0])
		}
		for _, name := range names {
			if pkg, test, ok := strings.Cut(name[1], ".Test"); ok {
				testmust.Equal(t, testIsIn(t, pkg, "Test"+test), true, name[1])
				continue
			}
			named = append(named, name[1])
		}
	}
	if n := len(rows) - 6; n > 32 { // three tables have two lines above their rows
		t.Errorf("have: %d rows\nwant: at most 32", n)
	}
	for _, d := range differences {
		testmust.Equal(t, slices.Contains(named, d.name), true, "the page lists", d.name)
	}
	for _, name := range named {
		testmust.Equal(t, slices.ContainsFunc(differences, func(d documented) bool { return d.name == name }), true, "there is the example", name)
	}
	for _, k := range slices.Concat(knownKeys, knownInsertIDs, knownReads, knownSelects) {
		testmust.Equal(t, slices.ContainsFunc(differences, func(d documented) bool { return d.class == k.name }), true, "an example has the class", k.name)
	}
}

// testIsIn reports whether a package has a test.
func testIsIn(t *testing.T, pkg, test string) bool {
	t.Helper()
	for _, file := range must(filepath.Glob("../../../" + pkg + "/*_test.go"))(t) {
		if strings.Contains(string(must(os.ReadFile(file))(t)), "func "+test+"(") {
			return true
		}
	}
	return false
}
