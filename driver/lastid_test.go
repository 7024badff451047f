package driver

import (
	"fmt"
	"testing"

	testserver "github.com/shardkey/shardkey/internal/test/server"
)

// The most frequent cases need no additional statements.
func TestLastID_costsNoRoundTrips(t *testing.T) { onEach(t, testLastID_costsNoRoundTrips) }

func testLastID_costsNoRoundTrips(t *testing.T) {
	ours, plain := openScripted(t, generatorRule(t, counted(), "ruled.id"), "interpolateParams=true")
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
		{"upserts with functions of the server", []string{"INSERT INTO ruled (u, n) VALUES (43, ABS(1)), (44, COALESCE(NULL, 2)) ON DUPLICATE KEY UPDATE n = IF(VALUES(n) > 1, 1, 2)"}, 0},
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

// If a server doesn't allow an upsert to assign the key to itself, the upsert is sent without the
// assignment.
func TestLastID_unreported(t *testing.T) { onEach(t, testLastID_unreported) }

func testLastID_unreported(t *testing.T) {
	dsn := testserver.Database(t)
	root := mustOpen(t, "mysql", dsn)
	mustExec(t, root, "CREATE TABLE ruled (id BIGINT PRIMARY KEY, u INT UNIQUE, n INT NOT NULL DEFAULT 0)")
	mustExec(t, root, "CREATE VIEW viewed AS SELECT id, u, n FROM ruled")
	ours, _ := openAs(t, root, "SELECT, INSERT, UPDATE (n) ON ruled")
	ours.SetMaxOpenConns(1)
	throughView, _ := openScriptedOn(t, dsn, generatorRule(t, counted(), "viewed.id"))
	unread := testserver.Has(t, testserver.MySQL, "upserts of columns that the user may not read")
	for _, d := range []door{doors[0], doors[3]} { // direct and prepared
		for _, rows := range []string{"(1)", "(2), (3)"} {
			query := "INSERT INTO %s (u) VALUES " + rows + " ON DUPLICATE KEY UPDATE n = n + 1"
			if _, err := d.exec(t.Context(), ours, fmt.Sprintf(query, "ruled")); err != nil && unread {
				t.Errorf("%s, %s: %v", d.name, query, err)
			}
		}
	}
	if unread && number(t, root, "SELECT SUM(n) FROM ruled") != 3 {
		t.Errorf("the rows were not updated once")
	}
	for _, d := range []door{doors[0], doors[3]} {
		for _, rows := range []string{"(1)", "(2), (4)"} {
			query := "INSERT INTO viewed (u) VALUES " + rows + " ON DUPLICATE KEY UPDATE n = n + 1"
			check(t, errOf(d.exec(t.Context(), throughView, query)))
		}
	}
	// A statement that is also refused without the assignment is refused once.
	_, err := ours.Exec("INSERT INTO ruled (u) VALUES (1) ON DUPLICATE KEY UPDATE u = 9")
	isDenied(t, "an update of u", err, true)
}

// TestKeys_nest checks that an execution sets the Keys of all contexts around it.
func TestKeys_nest(t *testing.T) { onEach(t, testKeys_nest) }

func testKeys_nest(t *testing.T) {
	ours, plain := openFilled(t)
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
		// An explicit key that isn't in the table wasn't inserted. Of those that are, it is uncertain if the row of an expression may have been.
		{"INSERT IGNORE INTO ruled (u, id) VALUES (31, NULL), (32, 600 DIV 2), (33, 235), (33, 273)", "[10 <nil> 235 <nil>]", "id"},
		{"INSERT IGNORE INTO ruled (u, id) VALUES (41, NULL), (42, 602 DIV 2), (43, 236), (44, 274), (31, 275 DIV 1)", "[11 <nil> <nil> <nil> <nil>]", "id"},
		{"INSERT IGNORE INTO ruled (u, id) VALUES (51, 1 - 1), (52, 237), (31, NULL)", "[]", ""}, // an expression that is 0 is an error
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

// A trigger of the table reads the LAST_INSERT_ID() from before the INSERT. A stored function in
// the INSERT's second row reads the new key. docs/reference/sql-differences.md lists this difference.
func TestLastID_readWhileInserting(t *testing.T) { onEach(t, testLastID_readWhileInserting) }

func testLastID_readWhileInserting(t *testing.T) {
	ours, plain := openScripted(t, generatorRule(t, counted(), "watched.id", "called.id"))
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

// TestLastID_passedValues: an INSERT into another table that writes the key itself doesn't change
// LAST_INSERT_ID(), whatever its insert ID is.
func TestLastID_passedValues(t *testing.T) { onEach(t, testLastID_passedValues) }

func testLastID_passedValues(t *testing.T) {
	for _, of := range []struct {
		typ, query string
		args       []any
	}{
		{"BIGINT", "INSERT INTO other (id) VALUES (-7)", nil},
		{"BIGINT", "INSERT INTO other (id) VALUES (?)", []any{-7}},
		{"BIGINT", "INSERT INTO other (id) VALUES (UNIX_TIMESTAMP())", nil},
		{"BIGINT UNSIGNED", "INSERT INTO other (id) VALUES (UUID_SHORT())", nil},
		{"BIGINT", "INSERT INTO other (id) VALUES (CONNECTION_ID())", nil},
		{"TINYINT", "INSERT IGNORE INTO other (id) VALUES (300)", nil},
		{"TINYINT", "INSERT IGNORE INTO other (id) VALUES (?)", []any{-300}},
		{"MEDIUMINT UNSIGNED", "INSERT IGNORE INTO other (id) VALUES ('99999999')", nil},
		{"BIGINT", "INSERT INTO other (id, at) VALUES (5, NOW())", nil},
		{"BIGINT", "INSERT INTO other (at) VALUES (NOW())", nil}, // which generates 126, and 127, a limit
	} {
		var have [2]string
		for k := range have {
			ours, plain := openScripted(t, generatorRule(t, counted(), "ruled.id"))
			mustExec(t, plain, "CREATE TABLE other (at DATETIME, id "+of.typ+" AUTO_INCREMENT PRIMARY KEY) AUTO_INCREMENT = 126")
			db, auto := ours, ""
			if k == 1 {
				db, auto = plain, " AUTO_INCREMENT"
			}
			db.SetMaxOpenConns(1)
			mustExec(t, plain, "CREATE TABLE ruled (id BIGINT"+auto+" PRIMARY KEY, a INT UNIQUE)")
			mustExec(t, plain, "ALTER TABLE ruled AUTO_INCREMENT = 1001")
			mustExec(t, db, "INSERT INTO ruled (a) VALUES (9)")
			mustExec(t, db, of.query, of.args...)
			mustExec(t, db, "INSERT INTO ruled (a) SELECT 100 FROM ruled")
			mustExec(t, db, "DELETE FROM other")
			mustExec(t, db, of.query, of.args...)
			mustExec(t, db, "INSERT INTO ruled (a) VALUES (9) ON DUPLICATE KEY UPDATE a = 9")
			have[k] = column(t, db, "SELECT LAST_INSERT_ID()")
		}
		equal(t, have[0], have[1], of.typ, of.query, of.args)
	}
}
