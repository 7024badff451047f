package driver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/spi"
)

// counted returns a script of 1001, 1002, …
func counted(made *int64) script {
	return func(_ context.Context, _ spi.Column, n int) ([]any, error) {
		keys := make([]any, n)
		for i := range keys {
			*made++
			keys[i] = 1000 + *made
		}
		return keys, nil
	}
}

// lastIDCases begin with LAST_INSERT_ID() 77. The generated keys are k1, k2, … in the order of
// generation, including those of failed statements.
var lastIDCases = []struct {
	name  string
	steps []string
	// want is the last step's LastInsertId or error number, and LAST_INSERT_ID() after it.
	want string
	only testserver.Servers // "" for all
}{
	{"inserted", []string{"INSERT INTO ruled (u) VALUES (1), (2)"}, "k1 k1", ""},
	{"a duplicate fails", []string{"INSERT INTO ruled (u) VALUES (1)", "INSERT INTO ruled (u) VALUES (1)"}, "error 1062, k1", ""},
	{"the first fails", []string{"INSERT INTO ruled (id, u) VALUES (5, 1)", "INSERT INTO ruled (u) VALUES (1)"}, "error 1062, 77", ""},
	{"the second of two rows fails", []string{"INSERT INTO ruled (u) VALUES (1)", "INSERT INTO ruled (u) VALUES (2), (1)"}, "error 1062, k1", ""},
	{"a query's row fails", []string{"INSERT INTO ruled (u) VALUES (1)", "INSERT INTO ruled (u) SELECT 2 UNION SELECT 1"}, "error 1062, k1", ""},
	{"a REPLACE fails", []string{"INSERT INTO ruled (u) VALUES (1)", "REPLACE INTO ruled (u, n) VALUES (2, NULL)"}, "error 1048, k1", ""},
	{"IGNORE drops the row", []string{"INSERT INTO ruled (u) VALUES (1)", "INSERT IGNORE INTO ruled (u) VALUES (1)"}, "0 k1", ""},
	{"IGNORE drops the first row", []string{"INSERT INTO ruled (u) VALUES (1)", "INSERT IGNORE INTO ruled (u) VALUES (1), (2)"}, "k3 k3", ""},
	{"upsert of a new row", []string{"INSERT INTO ruled (u) VALUES (1) ON DUPLICATE KEY UPDATE n = 5"}, "k1 k1", ""},
	{"upsert of a row that exists", []string{"INSERT INTO ruled (u) VALUES (1)", "INSERT INTO ruled (u) VALUES (2)", "INSERT INTO ruled (u) VALUES (1) ON DUPLICATE KEY UPDATE n = n + 1"}, "k1 k2", ""},
	{"upsert of two rows, both new", []string{"INSERT INTO ruled (u) VALUES (1), (2) ON DUPLICATE KEY UPDATE n = n + 1"}, "k1 k1", ""},
	{"upsert of two rows, one new", []string{"INSERT INTO ruled (u) VALUES (1)", "INSERT INTO ruled (u) VALUES (1), (2) ON DUPLICATE KEY UPDATE n = n + 1"}, "k3 k3", ""},
	{"upsert of two rows that are one", []string{"INSERT INTO ruled (u) VALUES (1), (1) ON DUPLICATE KEY UPDATE n = n + 1"}, "k1 k1", ""},
	{"upsert of three rows that are one", []string{"INSERT INTO ruled (u, n) VALUES (1, 1), (1, 2), (1, 2) ON DUPLICATE KEY UPDATE n = VALUES(n)"}, "k1 k1", ""},
	{"upsert of a explicit key that is new", []string{"INSERT INTO ruled (id, u) VALUES (5, 1) ON DUPLICATE KEY UPDATE n = 5"}, "5 77", ""},
	{"upsert that fails after it met a row", []string{
		"INSERT INTO ruled (id, u) VALUES (5, 1)",
		"INSERT INTO ruled (u, n) VALUES (1, 1), (1, 2) ON DUPLICATE KEY UPDATE n = IF(VALUES(n) = 1, 5, NULL)",
	}, "error 1048, 77", ""},
	{"… and after it others", []string{
		"INSERT INTO ruled (id, u) VALUES (5, 1)",
		"!INSERT INTO ruled (u, n) VALUES (1, 1), (1, 2) ON DUPLICATE KEY UPDATE n = IF(VALUES(n) = 1, 5, NULL)",
		"INSERT INTO ruled (u) VALUES (2)",
		"INSERT INTO ruled (u) VALUES (1) ON DUPLICATE KEY UPDATE n = 7",
	}, "5 k3", ""},
	{"upsert of a row whose key is 0", []string{
		"SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'", "INSERT INTO ruled (id, u) VALUES (0, 1)",
		"INSERT INTO ruled (u) VALUES (1) ON DUPLICATE KEY UPDATE n = 5",
	}, "0 77", ""},
	{"upsert of two rows, one has key 0", []string{
		"SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'", "INSERT INTO ruled (id, u) VALUES (0, 1)",
		"INSERT INTO ruled (u) VALUES (1), (2) ON DUPLICATE KEY UPDATE n = 5",
	}, "k2 k2", ""},
	{"upsert of a row whose key is negative", []string{"INSERT INTO ruled (id, u) VALUES (-5, 1)", "INSERT INTO ruled (u) VALUES (1) ON DUPLICATE KEY UPDATE n = 5"}, "-5 77", ""},
	{"upsert that sets it itself", []string{"INSERT INTO ruled (id, u) VALUES (5, 1)", "INSERT INTO ruled (u) VALUES (1) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)"}, "5 5", ""},
	{"upsert within IGNORE", []string{"INSERT INTO ruled (id, u) VALUES (5, 1)", "INSERT IGNORE INTO ruled (u) VALUES (1) ON DUPLICATE KEY UPDATE n = 5"}, "5 77", ""},
	{"a query", []string{"INSERT INTO ruled (u) SELECT 1 UNION SELECT 2"}, "k1 k1", ""},
	{"a query without rows", []string{"INSERT INTO ruled (u) SELECT 1 FROM DUAL WHERE FALSE"}, "0 77", ""},
	{"a query, upsert of a row that exists", []string{"INSERT INTO ruled (id, u) VALUES (5, 1)", "INSERT INTO ruled (u) SELECT 1 FROM DUAL ON DUPLICATE KEY UPDATE n = 5"}, "0 77", ""},
	{"read by a view after a query", []string{"INSERT INTO ruled (u) SELECT 1 UNION SELECT 2", "INSERT INTO free (id, n) SELECT id, 1 FROM last"}, "k1 k1", ""},

	{"an INSERT without rule, then a failure", []string{"INSERT INTO free (n) VALUES (1)", "INSERT INTO ruled (u, n) VALUES (1, NULL)"}, "error 1048, f", ""},
	{"an INSERT without rule that gives its key", []string{"INSERT INTO ruled (u) VALUES (1)", "INSERT INTO free (id, n) VALUES (90, 1)", "INSERT INTO ruled (u) VALUES (1)"}, "error 1062, k1", ""},
	{"an INSERT without rule that fails", []string{"INSERT INTO ruled (u) VALUES (1)", "!INSERT INTO free (id, n) VALUES (NULL, NULL)", "INSERT INTO ruled (u) VALUES (1)"}, "error 1062, k1", ""},
	{"a child without rule", []string{"INSERT INTO ruled (u) VALUES (1)", "INSERT INTO ruled (u) VALUES (1) ON DUPLICATE KEY UPDATE n = 2", "INSERT INTO free (id, n) VALUES (90, LAST_INSERT_ID())", "INSERT INTO ruled (u) VALUES (1)"}, "error 1062, k1", ""},
	{"a procedure", []string{"INSERT INTO ruled (u) VALUES (1)", "CALL inserts()", "INSERT INTO ruled (u) VALUES (1)"}, "error 1062, f", ""},
	{"set by a statement", []string{"DO LAST_INSERT_ID(55)", "INSERT INTO ruled (u, n) VALUES (1, NULL)"}, "error 1048, 55", ""},
	{"set by a variable", []string{"SET @@last_insert_id = 56", "INSERT INTO ruled (u, n) VALUES (1, NULL)"}, "error 1048, 56", ""},
	{"set by another name", []string{"SET identity = 57", "INSERT INTO ruled (u, n) VALUES (1, NULL)"}, "error 1048, 57", ""},
	{"CREATE TABLE … SELECT", []string{"INSERT IGNORE INTO ruled (u) VALUES (1), (1)", "CREATE TABLE made (id INT AUTO_INCREMENT PRIMARY KEY, n INT) AUTO_INCREMENT = 600 SELECT 5 AS n", "INSERT INTO ruled (u) VALUES (1)"}, "error 1062, 600", ""},

	{"RETURNING", []string{"INSERT INTO ruled (u) VALUES (1), (2) RETURNING id"}, "- k1", testserver.MariaDB},
	{"RETURNING fails", []string{"INSERT INTO ruled (u) VALUES (1)", "INSERT INTO ruled (u) VALUES (2), (1) RETURNING id"}, "error 1062, k1", testserver.MariaDB},
	{"RETURNING of a row that exists", []string{"INSERT INTO ruled (u) VALUES (1)", "INSERT INTO ruled (u) VALUES (1) ON DUPLICATE KEY UPDATE n = 6 RETURNING u"}, "- k1", testserver.MariaDB},
	{"RETURNING of a row that IGNORE drops", []string{"INSERT INTO ruled (u) VALUES (1)", "INSERT IGNORE INTO ruled (u) VALUES (1) RETURNING u"}, "- k1", testserver.MariaDB},
}

func TestLastID_isThatOfAutoIncrement(t *testing.T) {
	onEachAndOldest(t, testLastID_isThatOfAutoIncrement)
}

func testLastID_isThatOfAutoIncrement(t *testing.T) {
	for _, key := range []string{"BIGINT", "BIGINT AUTO_INCREMENT"} {
		for _, params := range []string{"", "interpolateParams=true", "clientFoundRows=true"} {
			t.Run(key+" "+params, func(t *testing.T) { testLastID(t, key, params) })
		}
	}
}

// testLastID runs the cases alternately with literals and prepared. Without more DSN parameters
// it begins with literals, with parameters it begins with prepared statements.
func testLastID(t *testing.T, key, params string) {
	prepared := params == ""
	var made int64
	ours, plain := openScripted(t, scriptRule(t, counted(&made), "ruled.id"), params)
	ours.SetMaxOpenConns(1)
	for _, ddl := range []string{
		"CREATE TABLE ruled (id " + key + " PRIMARY KEY, u INT UNIQUE, n INT NOT NULL DEFAULT 0)",
		"CREATE TABLE free (id BIGINT AUTO_INCREMENT PRIMARY KEY, n BIGINT NOT NULL)",
		"CREATE VIEW last AS SELECT LAST_INSERT_ID() AS id",
		"CREATE PROCEDURE inserts() INSERT INTO free (n) VALUES (1)",
	} {
		mustExec(t, plain, ddl)
	}
	mustExec(t, ours, "INSERT INTO ruled (u) VALUES (1)") // now the kind of the keys is known
	for _, c := range lastIDCases {
		prepared = !prepared
		if c.only != "" && !testserver.Has(t, c.only, c.name) {
			continue
		}
		for _, query := range []string{"SET sql_mode = 'STRICT_TRANS_TABLES'", "DROP TABLE IF EXISTS made", "DELETE FROM ruled", "DELETE FROM free", "DO LAST_INSERT_ID(77)"} {
			mustExec(t, ours, query)
		}
		before, have := made, ""
		for i, step := range c.steps {
			step, fails := strings.CutPrefix(step, "!")
			have = lastIDStep(ours, step, prepared && !strings.HasPrefix(step, "/*") && !strings.HasPrefix(step, "SET"))
			if strings.HasPrefix(have, "error") != fails && i < len(c.steps)-1 {
				t.Errorf("%s: %s: %s", c.name, step, have)
			}
		}
		last := fmt.Sprint(number(t, ours, "SELECT LAST_INSERT_ID()"))
		want := lastIDWords(t, plain, c.want, before)
		if have += " " + last; have != want {
			t.Errorf("%s: %s\nhave: %s\nwant: %s (%s)", c.name, c.steps[len(c.steps)-1], have, want, c.want)
		}
	}
}

// lastIDStep executes a statement and returns its LastInsertId or error.
func lastIDStep(db *sql.DB, query string, prepared bool) string {
	exec, rows := db.Exec, db.Query
	if prepared {
		st, err := db.Prepare(query)
		if err != nil {
			return err.Error()
		}
		defer st.Close()
		exec = func(_ string, args ...any) (sql.Result, error) { return st.Exec(args...) }
		rows = func(_ string, args ...any) (*sql.Rows, error) { return st.Query(args...) }
	}
	var res sql.Result
	var err error
	if strings.Contains(query, "RETURNING") {
		err = drain(rows(query))
	} else {
		res, err = exec(query)
	}
	var my *mysql.MySQLError
	switch {
	case errors.As(err, &my):
		return fmt.Sprintf("error %d,", my.Number)
	case err != nil:
		return err.Error()
	case res == nil:
		return "-"
	}
	id, err := res.LastInsertId()
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(id)
}

// lastIDWords replaces k1, k2, … and f, the newest key of free, with numbers.
func lastIDWords(t *testing.T, db *sql.DB, words string, made int64) string {
	t.Helper()
	var out []string
	for word := range strings.FieldsSeq(words) {
		var k int64
		switch _, err := fmt.Sscanf(word, "k%d", &k); {
		case err == nil:
			word = fmt.Sprint(1000 + made + k)
		case word == "f":
			word = fmt.Sprint(number(t, db, "SELECT MAX(id) FROM free"))
		}
		out = append(out, word)
	}
	return strings.Join(out, " ")
}

// The most frequent cases need no additional statements.
func TestLastID_costsNoRoundTrips(t *testing.T) { onEachAndOldest(t, testLastID_costsNoRoundTrips) }

func testLastID_costsNoRoundTrips(t *testing.T) {
	var made int64
	ours, plain := openScripted(t, scriptRule(t, counted(&made), "ruled.id"), "interpolateParams=true")
	ours.SetMaxOpenConns(1)
	mustExec(t, plain, "CREATE TABLE ruled (id BIGINT PRIMARY KEY, u INT UNIQUE, n INT NOT NULL DEFAULT 0)")
	mustExec(t, plain, "CREATE TABLE free (id BIGINT AUTO_INCREMENT PRIMARY KEY, n BIGINT NOT NULL) AUTO_INCREMENT = 5000")
	mustExec(t, ours, "INSERT INTO ruled (u) VALUES (1)")
	mustExec(t, ours, "INSERT INTO ruled (u) VALUES (?)", 2)
	for _, c := range []struct {
		name    string
		queries []string
		more    int64 // additional statements
	}{
		{"with and without rule", []string{"INSERT INTO ruled (u) VALUES (10)", "INSERT INTO free (n) VALUES (1)", "INSERT INTO ruled (u) VALUES (11)"}, 0},
		{"parent and child", []string{"INSERT INTO ruled (u) VALUES (20)", "INSERT INTO free (n) VALUES (LAST_INSERT_ID())", "INSERT INTO ruled (u) VALUES (21)"}, 0},
		{"read", []string{"INSERT INTO ruled (u) VALUES (30)", "DO LAST_INSERT_ID()", "INSERT INTO ruled (u) VALUES (31)"}, 0},
		{"upserts", []string{"INSERT INTO ruled (u) VALUES (40) ON DUPLICATE KEY UPDATE n = 1", "INSERT INTO ruled (u) VALUES (40) ON DUPLICATE KEY UPDATE n = 2", "INSERT INTO ruled (u) VALUES (41), (42) ON DUPLICATE KEY UPDATE n = 1"}, 0},
		{"IGNORE", []string{"INSERT IGNORE INTO ruled (u) VALUES (50)", "INSERT IGNORE INTO ruled (u) VALUES (50)"}, 0},
		{"an upsert that met a row, and a child", []string{"INSERT INTO ruled (u) VALUES (1) ON DUPLICATE KEY UPDATE n = 3", "INSERT INTO free (n) VALUES (LAST_INSERT_ID())"}, 1},
		{"set by a statement", []string{"DO LAST_INSERT_ID(60)", "INSERT INTO ruled (u) VALUES (60)"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			mustExec(t, ours, "INSERT INTO ruled (u) VALUES (NULL)") // the kind is known, and the server reports the key
			before := number(t, ours, "SHOW SESSION STATUS LIKE 'Questions'")
			for _, query := range c.queries {
				mustExec(t, ours, query)
			}
			have := number(t, ours, "SHOW SESSION STATUS LIKE 'Questions'") - before - 1 - int64(len(c.queries))
			equal(t, have, c.more)
		})
	}
}

// LAST_INSERT_ID(key) is unsigned, so negative keys are written without it.
func TestLastID_negativeKeys(t *testing.T) { onEachAndOldest(t, testLastID_negativeKeys) }

func testLastID_negativeKeys(t *testing.T) {
	for _, params := range bothWays {
		t.Run(params, func(t *testing.T) {
			ours, plain := openScripted(t, scriptRule(t, listed(int64(7), int64(-1), int64(-2), int64(-3), int64(-4), int64(-5), int64(8)), "ruled.id"), params)
			ours.SetMaxOpenConns(1)
			mustExec(t, plain, "CREATE TABLE ruled (id BIGINT PRIMARY KEY, u INT UNIQUE)")
			mustExec(t, ours, "INSERT INTO ruled (u) VALUES (1)")
			st := must(ours.Prepare("INSERT INTO ruled (u) VALUES (?)"))(t)
			defer st.Close()
			for _, exec := range []func() (sql.Result, error){
				func() (sql.Result, error) { return ours.Exec("INSERT INTO ruled (u) VALUES (2)") },
				func() (sql.Result, error) { return ours.Exec("INSERT INTO ruled (u) VALUES (?)", 3) },
				func() (sql.Result, error) { return st.Exec(4) },
				func() (sql.Result, error) {
					return ours.Exec("INSERT INTO ruled (u) VALUES (?) ON DUPLICATE KEY UPDATE u = 9", 5)
				},
			} {
				res, err := exec()
				if err != nil {
					t.Errorf("%v", err)
					continue
				}
				id, _ := res.LastInsertId()
				if have := number(t, ours, "SELECT CAST(LAST_INSERT_ID() AS SIGNED)"); id >= 0 || have != id {
					t.Errorf("have: LastInsertId %d, LAST_INSERT_ID() %d\nwant: a negative key, twice", id, have)
				}
			}
			equal(t, column(t, plain, "SELECT id FROM ruled ORDER BY id DESC"), "7 -1 -2 -3 -4")
		})
	}
}

// If a server doesn't allow an upsert to assign the key to itself, the upsert is sent without the
// assignment.
func TestLastID_unguarded(t *testing.T) { onEachAndOldest(t, testLastID_unguarded) }

func testLastID_unguarded(t *testing.T) {
	dsn := testserver.Database(t)
	cfg := must(mysql.ParseDSN(dsn))(t)
	root := mustOpen(t, "mysql", dsn)
	user := "u" + cfg.DBName[max(0, len(cfg.DBName)-15):]
	for _, query := range []string{
		"CREATE TABLE other (id BIGINT PRIMARY KEY, u INT UNIQUE, n INT NOT NULL DEFAULT 0)",
		"CREATE VIEW viewed AS SELECT id, u, n FROM other",
		"CREATE USER " + user,
		"GRANT SELECT, INSERT, UPDATE (n) ON other TO " + user,
	} {
		mustExec(t, root, query)
	}
	defer mustExec(t, root, "DROP USER "+user)
	cfg.User, cfg.Passwd = user, ""
	var made int64
	ours, _ := openScriptedOn(t, cfg.FormatDSN(), scriptRule(t, counted(&made), "other.id"))
	ours.SetMaxOpenConns(1)
	unread := testserver.Has(t, testserver.MySQL8, "upserts of columns that the user may not read")
	for _, prepared := range []bool{false, true} {
		for _, query := range []string{"INSERT INTO other (u) VALUES (1) ON DUPLICATE KEY UPDATE n = n + 1", "INSERT INTO other (u) VALUES (2), (3) ON DUPLICATE KEY UPDATE n = n + 1"} {
			if have := lastIDStep(ours, query, prepared); strings.HasPrefix(have, "error") && unread {
				t.Errorf("prepared=%v, %s: %s", prepared, query, have)
			}
		}
	}
	if unread && number(t, root, "SELECT SUM(n) FROM other") != 3 {
		t.Errorf("the rows were not updated once")
	}
	throughView, _ := openScriptedOn(t, dsn, scriptRule(t, counted(&made), "viewed.id"))
	for _, prepared := range []bool{false, true} {
		for _, query := range []string{"INSERT INTO viewed (u) VALUES (1) ON DUPLICATE KEY UPDATE n = n + 1", "INSERT INTO viewed (u) VALUES (2), (4) ON DUPLICATE KEY UPDATE n = n + 1"} {
			if have := lastIDStep(throughView, query, prepared); strings.HasPrefix(have, "error") {
				t.Errorf("through a view, prepared=%v, %s: %s", prepared, query, have)
			}
		}
	}
	// A statement that is also refused without the assignment is refused once.
	equal(t, lastIDStep(ours, "INSERT INTO other (u) VALUES (1) ON DUPLICATE KEY UPDATE u = 9", false), "error 1143,")
}

// TestKeys_nest checks that an execution sets the Keys of all contexts around it.
func TestKeys_nest(t *testing.T) { onEachAndOldest(t, testKeys_nest) }

func testKeys_nest(t *testing.T) {
	ours, plain, _ := openFilled(t)
	mustExec(t, plain, "ALTER TABLE ruled ADD u INT UNIQUE")
	var outer, inner Keys
	ctx := WithKeys(t.Context(), &outer)
	for _, c := range []struct{ query, want, column string }{
		{"INSERT INTO ruled (u) VALUES (1), (2)", "[1 2]", "id"},
		{"INSERT INTO ruled (u) VALUES (1)", "[]", ""},
		{"INSERT INTO ruled (u) SELECT 3", "[4]", "id"},
		{"DELETE FROM ruled WHERE u = 3", "[]", ""},
		// The existing row isn't the one whose key the server saw last.
		{"INSERT INTO ruled (id, u) VALUES (DEFAULT, 5), (DEFAULT, 1), (2, 2), (DEFAULT, 6) ON DUPLICATE KEY UPDATE id = id", "[5 <nil> 2 7]", "id"},
		{"INSERT INTO ruled (u) VALUES (1), (7) ON DUPLICATE KEY UPDATE a = 1", "[1 9]", "id"},
	} {
		t.Run(c.query, func(t *testing.T) {
			_, _ = ours.ExecContext(WithKeys(ctx, &inner), c.query)
			for name, keys := range map[string]*Keys{"inner": &inner, "outer": &outer} {
				if have := fmt.Sprint(keys.Values()); have != c.want || keys.Column() != c.column {
					t.Errorf("%s\nhave: %s of %q\nwant: %s of %q", name, have, keys.Column(), c.want, c.column)
				}
			}
		})
	}
}

func TestJudge_cases(t *testing.T) {
	plain, ignore := insertFacts{}, insertFacts{ignore: true}
	upsert := insertFacts{upsert: true, guarded: true, key: 9}
	carries := insertFacts{upsert: true, guarded: true, carries: true, key: 9}
	both := insertFacts{upsert: true, guarded: true, carries: true, key: 9, ignore: true}
	zero := insertFacts{upsert: true, guarded: true, key: 9, zero: true}
	unguarded, replace := insertFacts{upsert: true}, insertFacts{replace: true}
	for _, c := range []struct {
		name               string
		facts              insertFacts
		rows, affected, id int64
		foundRows          bool
		want               verdict
	}{
		{"inserted", plain, 2, 2, 0, false, allInserted},
		{"in a comment for other servers", plain, 1, 0, 0, false, noneInserted},
		{"of several statements, unknown", plain, 2, unknownCount, 0, false, allInserted},
		{"REPLACE of a row", replace, 1, 2, 0, false, allInserted},
		{"REPLACE, perhaps of a row of its own", replace, 2, 3, 0, false, laterReplaced},
		{"IGNORE inserts all", ignore, 2, 2, 0, false, allInserted},
		{"IGNORE drops all", ignore, 2, 0, 0, false, noneInserted},
		{"IGNORE drops some", ignore, 2, 1, 0, false, unclear},

		{"new: the key comes back", carries, 1, 1, 9, false, allInserted},
		{"changed", carries, 1, 2, 5, false, oneExists},
		{"unchanged", carries, 1, 0, 5, false, oneExists},
		{"unchanged, found", carries, 1, 1, 5, true, oneExists},
		{"changed, its key is 0", carries, 1, 2, 0, false, oneExists},
		{"dropped by IGNORE", both, 1, 0, 9, false, noneInserted},

		{"not told: new", upsert, 1, 1, 0, false, allInserted},
		{"not told: new, AUTO_INCREMENT says its key", upsert, 1, 1, 9, false, allInserted},
		{"not told: changed", upsert, 1, 2, 5, false, oneExists},
		{"not told: changed, its key is 0", upsert, 1, 2, 0, false, oneExists},
		{"not told: unchanged, found", upsert, 1, 1, 5, true, oneExists},

		{"many: new", upsert, 2, 2, 0, false, allInserted},
		{"many: new, AUTO_INCREMENT says the last key", upsert, 2, 2, 9, false, allInserted},
		{"many: one existed", upsert, 2, 3, 5, false, unclear},
		{"many: one existed, its key is 0", upsert, 2, 3, 0, false, unclear},
		{"many: as many as rows, by chance", upsert, 3, 3, 5, false, unclear},
		{"many: as many as rows, by chance, its key is 0", zero, 4, 4, 0, false, unclear},
		{"many: new, a key may be 0", zero, 2, 2, 9, false, allInserted},

		{"unguarded: new", unguarded, 1, 1, 0, false, allInserted},
		{"unguarded: changed", unguarded, 1, 2, 0, false, noneInserted},
		{"unguarded: new or found", unguarded, 1, 1, 0, true, unclear},
		{"unguarded: many", unguarded, 2, 2, 0, false, unclear},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.facts.rows, c.facts.foundRows = c.rows, c.foundRows
			equal(t, judge(c.facts, insertReport{c.affected, c.id}), c.want)
		})
	}
}

// A trigger of the table reads the LAST_INSERT_ID() from before the INSERT. A stored function in
// the INSERT's second row reads the new key. docs/reference/sql.md lists this difference.
func TestLastID_readWhileInserting(t *testing.T) { onEach(t, testLastID_readWhileInserting) }

func testLastID_readWhileInserting(t *testing.T) {
	var made int64
	ours, plain := openScripted(t, scriptRule(t, counted(&made), "watched.id", "called.id"))
	ours.SetMaxOpenConns(1)
	for _, ddl := range []string{
		"CREATE TABLE watched (id BIGINT NOT NULL PRIMARY KEY, u INT UNIQUE, s BIGINT)",
		"CREATE TABLE called (id BIGINT NOT NULL PRIMARY KEY, s BIGINT)",
		"CREATE TRIGGER reads_last BEFORE INSERT ON watched FOR EACH ROW SET NEW.s = LAST_INSERT_ID()",
		"CREATE FUNCTION last_id() RETURNS BIGINT READS SQL DATA RETURN LAST_INSERT_ID()",
	} {
		mustExec(t, plain, ddl)
	}
	for i, c := range []struct {
		query   string
		s, last int64 // the sum of the new rows' s, and LAST_INSERT_ID() afterwards
	}{
		{"INSERT INTO watched (u) VALUES (1)", 77, 1001},
		{"INSERT INTO watched (u) VALUES (2), (3)", 77 + 77, 1002},
		{"INSERT INTO watched (u) VALUES (1) ON DUPLICATE KEY UPDATE s = VALUES(s)", 0, 77},
		{"INSERT IGNORE INTO watched (u) VALUES (4), (1)", 77, 1005},
		{"REPLACE INTO watched (u) VALUES (NULL)", 77, 1007},
		{"INSERT INTO called (s) VALUES (last_id())", 77, 1008},
		{"INSERT INTO called (s) VALUES (last_id()), (last_id())", 77 + 1009, 1009}, // twice 77 with AUTO_INCREMENT
	} {
		t.Run(c.query, func(t *testing.T) {
			mustExec(t, ours, "DO LAST_INSERT_ID(77)")
			before := number(t, ours, "SELECT COALESCE(SUM(s), 0) FROM (SELECT s FROM watched UNION ALL SELECT s FROM called) AS a")
			mustExec(t, ours, c.query)
			last := number(t, ours, "SELECT LAST_INSERT_ID()")
			s := number(t, ours, "SELECT COALESCE(SUM(s), 0) FROM (SELECT s FROM watched UNION ALL SELECT s FROM called) AS a") - before
			if s != c.s || last != c.last {
				t.Errorf("%d: %s\nhave: s %d, LAST_INSERT_ID() %d\nwant: s %d, LAST_INSERT_ID() %d", i, c.query, s, last, c.s, c.last)
			}
		})
	}
}
