package rewrite

import (
	"errors"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/sqltoken"
)

// Strings of several statements get keys, are passed through, or are refused before any query. t is
// sharded, x and y aren't.
func TestStrings_whichGetKeys(t *testing.T) {
	const keys, passes, refused = "keys", "passes", "refused"
	for _, c := range []struct{ query, want string }{
		// One statement, however it ends.
		{"INSERT INTO t VALUES (NULL, 1)", keys},
		{"INSERT INTO t VALUES (NULL, 1);", keys},
		{"INSERT INTO t VALUES (NULL, 1); ;; -- ; x", keys},
		{"INSERT INTO t VALUES (NULL, 1); /* ; x */ # y", keys},
		{"INSERT INTO t SET a = ';';\n", keys},
		{"INSERT INTO t (a) SELECT ';';", keys},
		{"/* ; */ INSERT INTO t () VALUES ();", keys},
		// Several of the accepted ones.
		{"INSERT INTO t (a) VALUES (1); INSERT INTO t (a) VALUES (2)", keys},
		{"INSERT t (a) VALUE (1); REPLACE t PARTITION (p0, p1) (id, a) VALUES ROW(1, 2), ROW(NULL, 3)", keys},
		{"INSERT INTO x (a) VALUES (1); INSERT IGNORE INTO app.t (a) VALUES (2); REPLACE LOW_PRIORITY y (a) VALUES (3)", keys},
		{"BEGIN; INSERT INTO t (a) VALUES (1); COMMIT", keys},
		{"BEGIN WORK; INSERT INTO t (a) VALUES (1); COMMIT WORK AND CHAIN", keys},
		{"START TRANSACTION READ WRITE; SAVEPOINT a; INSERT INTO t (a) VALUES (1); ROLLBACK TO a; ROLLBACK;", keys},
		{"INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = 2; INSERT INTO t (a) VALUES (1)", keys},
		{"INSERT INTO t (a) VALUES (1);; INSERT INTO t (a) VALUES (1)", keys}, // the server refuses the second
		{"INSERT INTO t (a) VALUES (1) RETURNING id; INSERT INTO t (a) VALUES (2)", keys},
		// Other statements next to the INSERT.
		{"UPDATE x SET a = 1; INSERT INTO t (a) VALUES (1)", refused},
		{"INSERT INTO t (a) VALUES (1); UPDATE x SET a = 1", refused},
		{"INSERT INTO t (a) VALUES (1); SELECT 1", refused},
		{"SET sql_mode = 'ANSI_QUOTES'; INSERT INTO t (a) VALUES (1)", refused},
		{"SET NAMES gbk; INSERT INTO t (a) VALUES (1)", refused},
		{"USE other; INSERT INTO t (a) VALUES (1)", refused},
		{"ALTER TABLE t ADD z INT; INSERT INTO t (a) VALUES (1)", refused},
		{"CREATE TABLE t (id BIGINT); INSERT INTO t (a) VALUES (1)", refused},
		{"RELEASE SAVEPOINT a; INSERT INTO t (a) VALUES (1)", refused},
		{"START SLAVE; INSERT INTO t (a) VALUES (1)", refused},
		{"LOCK TABLES t WRITE; INSERT INTO t (a) VALUES (1); UNLOCK TABLES", refused},
		{"CALL p(); INSERT INTO t (a) VALUES (1)", refused},
		{"PREPARE s FROM 'SELECT 1'; INSERT INTO t (a) VALUES (1)", refused},
		{"LOAD DATA INFILE 'f' INTO TABLE x; INSERT INTO t (a) VALUES (1)", refused},
		{"SET STATEMENT max_statement_time = 1 FOR SELECT 1; INSERT INTO t (a) VALUES (1)", refused},
		{"SET STATEMENT sql_mode = '' FOR INSERT INTO t (a) VALUES (1); COMMIT", refused},
		{"INSERT INTO t (a) VALUES (1); what is this", refused},
		{"INSERT INTO t (a) VALUES (1); /* no end", refused},
		{"INSERT INTO t (a) VALUES (1); 'no end", refused},
		// Statements after which strings and names may end elsewhere.
		{`SET sql_mode = 'ANSI_QUOTES'; INSERT INTO "t" (a) VALUES (1)`, refused},
		{`SET a = 1, sql_mode = 'ANSI'; REPLACE "t" (a) VALUES (1); SELECT 1`, refused},
		{`SELECT 1; SET @@session.sql_mode = 'ANSI'; INSERT INTO app."t" (a) VALUES (1)`, refused},
		{"SET SESSION `sql_mode` = 'ANSI'; INSERT INTO \"t\" (a) VALUES (1)", refused},
		{`SET @@global.sql_mode = 'ANSI'; INSERT INTO "t" (a) VALUES (1)`, refused},
		{`SET sql_modé = 'ANSI'; INSERT INTO "t" (a) VALUES (1)`, refused},
		{`SET sql_mode = 'MSSQL'; INSERT INTO [t] (a) VALUES (1)`, refused},
		{`SET sql_mode = 'NO_BACKSLASH_ESCAPES'; SELECT '\'; INSERT INTO t (a) VALUES (1); -- '`, refused},
		{`SET sql_mode = 'NO_BACKSLASH_ESCAPES'; INSERT INTO x (s) VALUES ('\'); INSERT INTO t (a) VALUES (1); -- '`, refused},
		{"SET NAMES gbk; INSERT INTO x (s) VALUES ('\xbf\x5c'); INSERT INTO t (a) VALUES (1); -- ')", refused},
		{"SET NAMES gbk; SELECT '\xbf\x5c'; INSERT INTO t (a) VALUES (1); -- '", refused},
		{"SET CHARACTER SET gbk; SELECT 'é'; REPLACE x SET s = 't'", refused},
		{"SET character_set_client = gbk; SELECT '\xbf\x5c'; INSERT INTO `t` (a) VALUES (1); -- '", refused},
		{`CALL p(); INSERT INTO "t" (a) VALUES (1)`, refused},
		{`EXECUTE s; INSERT INTO "t" (a) VALUES (1)`, refused},
		{`what is this; INSERT INTO "t" (a) VALUES (1)`, refused},
		{`BEGIN NOT ATOMIC SET sql_mode = 'ANSI'; END; INSERT INTO "t" (a) VALUES (1)`, refused},
		{`/*!40101 SET sql_mode = 'ANSI' */; INSERT INTO "t" (a) VALUES (1)`, refused},
		{`SET sql_mode = 'ANSI'; LOAD DATA INFILE 'f' INTO TABLE "t" (a)`, refused},
		// They read the same in each sql_mode and character set, or name no sharded table.
		{"SET sql_mode = 'ANSI'; INSERT INTO x (s) VALUES ('t')", passes},
		{"SET NAMES gbk; INSERT INTO x (s) VALUES ('t')", passes},
		{"SET NAMES 'utf8mb4'; INSERT INTO x (s) VALUES ('é t')", passes},
		{`SET sql_mode = 'ANSI'; INSERT INTO "x" (a) VALUES (1)`, passes},
		{`SET @a = 'sql'; INSERT INTO x (s) VALUES ("it's t")`, passes},
		{`INSERT INTO x (s) VALUES ("t"); SET sql_mode = 'ANSI'; SELECT "t"`, passes},
		{`CALL p("t"); SELECT 'INSERT'`, passes},
		// Definitions of stored programs, which insert later, in one statement.
		{"CREATE FUNCTION f() RETURNS INT BEGIN INSERT INTO t (id,a) VALUES (5,5); INSERT INTO t (id,a) VALUES (6,6); RETURN 1; END", passes},
		{"CREATE FUNCTION f() RETURNS BIGINT UNSIGNED BEGIN DECLARE x INT; SET x = 1; INSERT INTO t (a) VALUES (5); RETURN x; END", passes},
		{"CREATE FUNCTION f() RETURNS VARCHAR(20) CHARSET utf8 COLLATE utf8_bin BEGIN INSERT INTO t (a) VALUES (5); RETURN ''; END; SELECT 1", passes},
		{"CREATE FUNCTION f(x INT) RETURNS DATE IF x > 1 THEN INSERT INTO t (a) VALUES (5); RETURN NULL; ELSE RETURN NOW(); END IF", passes},
		{"CREATE FUNCTION f() RETURNS INT RETURN IF(1, 2, 3); SELECT 'INSERT'", passes},
		{"CREATE PROCEDURE p() BEGIN DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN INSERT INTO t (a) VALUES (9); END; INSERT INTO t (a) VALUES (5); END", passes},
		{"CREATE PROCEDURE p() BEGIN DECLARE EXIT HANDLER FOR 1062, NOT FOUND IF 1 THEN INSERT INTO t (a) VALUES (9); END IF; INSERT INTO t (a) VALUES (5); END", passes},
		{"CREATE PROCEDURE p() BEGIN DECLARE EXIT HANDLER FOR wrong BEGIN END; x: BEGIN INSERT INTO t (a) VALUES (5); END x; END", passes},
		{"CREATE PROCEDURE p() SQL SECURITY INVOKER x: LOOP INSERT INTO t (a) VALUES (1); LEAVE x; END LOOP; SELECT 1", passes},
		{"CREATE PROCEDURE p() BEGIN XA BEGIN 'a'; SELECT begin, x.begin FROM x; INSERT INTO t (a) VALUES (1); END", passes},
		{"CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO BEGIN INSERT INTO t (a) VALUES (1); INSERT INTO t (a) VALUES (1); END", passes},
		{"CREATE TRIGGER b BEFORE INSERT ON x FOR EACH ROW FOLLOWS c BEGIN INSERT INTO t (a) VALUES (1); END", passes},
		{"CREATE FUNCTION f() RETURNS INT BEGIN INSERT INTO t (a) VALUES (5); RETURN 1; END; INSERT INTO t (a) VALUES (1)", refused},
		{"CREATE FUNCTION f() RETURNS INT RETURN 1; INSERT INTO t (a) VALUES (1)", refused},
		// INSERTs in other forms.
		{"INSERT INTO t VALUES (NULL, 1); INSERT INTO t (a) VALUES (1)", refused},
		{"INSERT INTO t (a) VALUES (1); INSERT INTO t VALUES (NULL, 1)", refused},
		{"INSERT INTO t () VALUES (); COMMIT", refused},
		{"INSERT INTO t SET a = 1; COMMIT", refused},
		{"COMMIT; INSERT INTO t (a) SELECT 1", refused},
		{"; INSERT INTO t (a) SELECT 1", refused},
		{"INSERT INTO x VALUES (1); INSERT INTO t (a) VALUES (1)", refused},
		{"INSERT INTO x (a) SELECT 1; INSERT INTO t (a) VALUES (1)", refused},
		{"INSERT INTO x SET a = 1; INSERT INTO t (a) VALUES (1)", refused},
		{"INSERT (a) VALUES (1); INSERT INTO t (a) VALUES (1)", refused}, // without a table
		// LAST_INSERT_ID() in a later statement.
		{"INSERT INTO t (a) VALUES (1); INSERT INTO x (a) VALUES (LAST_INSERT_ID())", keys},
		{"INSERT INTO t (a) VALUES (1); INSERT INTO t (a) VALUES (@@last_insert_id)", keys},
		{"INSERT INTO t (id, a) VALUES (5, 1); INSERT INTO t (a) VALUES (LAST_INSERT_ID())", keys},
		{"INSERT INTO x (a) VALUES (LAST_INSERT_ID()); INSERT IGNORE INTO t (a) VALUES (1)", keys},
		{"INSERT IGNORE INTO t (a) VALUES (LAST_INSERT_ID()); COMMIT", keys},
		{"INSERT IGNORE INTO t (a) VALUES (1); INSERT INTO x (a) VALUES (1), (LAST_INSERT_ID())", refused},
		{"INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE a = 1; COMMIT; INSERT INTO t (a) VALUES (LAST_INSERT_ID())", refused},
		{"INSERT INTO t (id, a) VALUES (?, 1); INSERT INTO x (a) VALUES (LAST_INSERT_ID())", refused},
		{"INSERT INTO t (id, a) VALUES (@a, 1); INSERT INTO x (a) VALUES (LAST_INSERT_ID())", refused},
		{"INSERT INTO t (a) VALUES (LAST_INSERT_ID()); INSERT INTO x (a) VALUES (@@identity)", refused},
		{"INSERT INTO t (a) VALUES (1); INSERT INTO t (a) VALUES (1); INSERT INTO t (a) VALUES (LAST_INSERT_ID())", keys},
		{"INSERT INTO x (a) VALUES (1); INSERT INTO x (a) VALUES (2); INSERT INTO t (a) VALUES (LAST_INSERT_ID())", keys},
		{"INSERT INTO x (a) VALUES (1); INSERT INTO t (a) VALUES (1); SAVEPOINT a; SAVEPOINT b", keys},
		// With other tables, whose own keys only the server knows.
		{"INSERT INTO x (a) VALUES (1); INSERT INTO t (a) VALUES (1); INSERT INTO x (a) VALUES (2); COMMIT", keys},
		{"INSERT INTO t (a) VALUES (1); INSERT INTO x (a) VALUES (LAST_INSERT_ID()); INSERT INTO t (a) VALUES (1)", keys},
		{"INSERT INTO x (a) VALUES (1); INSERT INTO t (a) VALUES (1); INSERT INTO t (a) VALUES (LAST_INSERT_ID())", refused},
		{"INSERT INTO x (a) VALUES (1); INSERT INTO t (a) VALUES (1); INSERT INTO x (a) VALUES (2); INSERT INTO t (a) VALUES (1)", refused},
		// Rows that are removed before the table is queried.
		{"INSERT IGNORE INTO t (a) VALUES (1), (2); ROLLBACK", refused},
		{"INSERT IGNORE INTO t (a) VALUES (1); ROLLBACK", keys},
		{"INSERT INTO t (a) VALUES (1), (2) ON DUPLICATE KEY UPDATE a = 1; REPLACE INTO t (a) VALUES (1)", refused},
		{"INSERT INTO t (id, a) VALUES (1 + 1, 2); REPLACE INTO x (a) VALUES (1)", refused},
		// Programs and compound statements.
		{"CREATE PROCEDURE p() BEGIN INSERT INTO t (a) VALUES (1); IF 1 THEN SELECT 2 FOR UPDATE; END IF; END", passes},
		{"CREATE PROCEDURE p() BEGIN SELECT (1) FOR UPDATE; SELECT 'a' FOR SHARE; INSERT INTO t (a) VALUES (1); END;", passes},
		{"CREATE TRIGGER r BEFORE INSERT ON x FOR EACH ROW INSERT INTO t (a) VALUES (1)", passes},
		{"CREATE PROCEDURE p() BEGIN SELECT 1; END; SELECT 1", passes},
		{"CREATE PROCEDURE p() BEGIN SELECT 1; END; INSERT INTO t (a) VALUES (1)", refused},
		{"CREATE PROCEDURE p() BEGIN SELECT (1) FOR UPDATE; END; INSERT INTO t (a) VALUES (1)", refused},
		{"CREATE PROCEDURE p() BEGIN SELECT 1 AS end; INSERT INTO t (a) VALUES (1); END", refused},
		{"CREATE PROCEDURE p() BEGIN SELECT 1; lbl: LOOP LEAVE lbl; END LOOP; INSERT INTO t (a) VALUES (1)", refused}, // no END
		{"CREATE TRIGGER r BEFORE INSERT ON x FOR EACH ROW SET NEW.a = 1; INSERT INTO t (a) VALUES (1)", refused},
		{"BEGIN NOT ATOMIC INSERT INTO t (a) VALUES (1); END", refused},
		{"BEGIN NOT ATOMIC SELECT 1; END; INSERT INTO t (a) VALUES (1)", refused},
		{"INSERT INTO t (a) VALUES (1); BEGIN NOT ATOMIC SELECT 1; END", refused},
		{"IF 1 THEN INSERT INTO t (a) VALUES (1); END IF", refused},
		// Executable comments.
		{"SELECT 1; /*!50000 INSERT INTO t (a) VALUES (1) */", refused},
		{"INSERT INTO t (a) VALUES (1) /*!50000 ; SET sql_mode = '' */", refused},
		{"INSERT INTO t (a) VALUES (1); /*M!100000 USE other */", refused},
		{"/*!50000 INSERT INTO t (a) VALUES (1); */ COMMIT", refused},
		// Nothing for a sharded table.
		{"INSERT INTO x VALUES (1); USE other; UPDATE t SET a = 1; SELECT LAST_INSERT_ID()", passes},
		{"SET sql_mode = ''; CREATE TABLE t (a INT); ALTER TABLE t ADD b INT", passes},
		{"SELECT 'INSERT INTO t (a) VALUES (1)'; SELECT 1", passes},
	} {
		plan, err := Parse(c.query, Options{
			Table: func(_, name string) *Table {
				if !strings.EqualFold(name, "t") {
					return nil
				}
				return &Table{Key: "id"}
			},
			AskColumns: func(*Insert) ([]string, error) {
				if c.want == refused {
					t.Errorf("%s\nhave: the table's columns are asked for\nwant: refused before that", c.query)
				}
				return []string{"id", "a"}, nil
			},
		})
		have := passes
		switch {
		case errors.Is(err, ErrUnsupportedStatement):
			have = refused
		case err != nil:
			t.Errorf("%s: %v", c.query, err)
		case len(plan.Inserts) > 0:
			have = keys
		}
		if have != c.want {
			t.Errorf("%s\nhave: %s (%v)\nwant: %s", c.query, have, err, c.want)
		}
		if class := sqltoken.Classify(c.query); c.want != passes && !class.MustParse() {
			t.Errorf("%s\nhave: class %d, which is not parsed", c.query, class)
		}
	}
}

// FuzzReading parses a statement with SET STATEMENT in front, which executes the same statement: it
// must not be passed through with an INSERT.
func FuzzReading(f *testing.F) {
	for _, c := range GoldenCases(f) {
		f.Add(c.Text, "a = (SELECT 1 FOR UPDATE), b = SUBSTRING('FOR' FROM 1 FOR 1)")
	}
	for _, noise := range []string{"", "a = 1 FOR SET STATEMENT b = (1)", "a = ((1)", "a = 'FOR'", "a = `FOR`", "FOR", "a = 1 FOR"} {
		f.Add("INSERT INTO t (a) VALUES (1)", noise)
	}
	f.Fuzz(func(t *testing.T, text, noise string) {
		if len(text)+len(noise) <= 4096 {
			fuzzSetStatement(t, text, noise)
		}
	})
}

// fuzzSetStatement puts SET STATEMENT before an insert.
func fuzzSetStatement(t *testing.T, text, noise string) {
	plain, err := Parse(text, goldenOptions(0))
	if err != nil || len(plain.Inserts) == 0 || !strings.EqualFold(text[:min(6, len(text))], "INSERT") {
		return
	}
	set := "SET STATEMENT " + noise + " FOR "
	lx := sqltoken.Lexer{Text: set}
	last := ""
	for t := lx.Next(); t.Kind != sqltoken.EOF; t = lx.Next() {
		if t.Kind == sqltoken.Bad || set[t.Start] == ';' {
			return // it swallows the insert, or ends before it
		}
		last = set[t.Start:t.End]
	}
	if lx.Unsure != "" || last != "FOR" {
		return
	}
	if p, err := Parse(set+text, goldenOptions(0)); err == nil && len(p.Inserts) == 0 {
		t.Fatalf("%q\npasses, with an insert", set+text)
	}
}

// What servers read differently is refused, if it is or may be in an INSERT into a sharded table. t
// is sharded by a, free isn't sharded.
func TestParse_whatServersReadDifferently(t *testing.T) {
	const refused, passes, keys = "refused", "passes", "keys"
	for _, c := range []struct{ query, want string }{
		// A number whose exponent has no digits.
		{"INSERT INTO t (id, s) VALUES (0, 4.5e-- 1), (0, 3\n), (0, 5)", refused},
		{"INSERT INTO t (id, s) VALUES (0, .5E-- 1), (3, 4\n)", refused},
		{"INSERT INTO t (id, s) VALUES (0, 5.e--\t1)\n)", refused},
		{"SELECT 4.5e-- 1; INSERT INTO t (id, s) VALUES (0, 7)\n", refused},
		{"INSERT INTO free (s) VALUES (4.5e-- 1); INSERT INTO t (s) VALUES (6)\n; SELECT 1", refused},
		{"INSERT INTO free (s) VALUES (4.5e-- 1)\n)", passes},
		{"INSERT INTO t (id, s) VALUES (4.5e(1), 1)", refused},
		{"INSERT INTO t (a, s) VALUES (4.5e(1), 1)", refused},
		{"SELECT 4.5e(1); INSERT INTO t (a) VALUES (1)", refused},
		{"INSERT INTO t (a, s) VALUES (4.5e5, 4.5e-3-- 1\n), (1.5, 0x5e-- 1\n)", keys},
		// A string in dollar signs.
		{"CREATE FUNCTION f() RETURNS INT LANGUAGE JAVASCRIPT AS $$ it's $$; INSERT INTO t (a) VALUES (1) -- '", refused},
		{"SELECT $x$ ' $x$; INSERT INTO t (a) VALUES (1) -- '", refused},
		{"CREATE FUNCTION f() RETURNS INT LANGUAGE JAVASCRIPT AS $$ return 't' $$", passes},
		{"INSERT INTO t (a, $b, c$d, `$e$`) VALUES (1, 2, 3, 4)", keys},
		// Names of columns and tables.
		{"INSERT INTO t (İd, a) VALUES (1, 2)", refused},
		{"INSERT INTO t (`ıd`, a) VALUES (1, 2)", refused},
		{"INSERT INTO t SET `İd` = 4, a = 1", refused},
		{"INSERT INTO t (a, ſ) VALUES (1, 2)", keys},
		{"INSERT INTO kt (uſer, a) VALUES (1, 2)", refused},
		{"INSERT INTO `ıkt` (a) VALUES (1)", refused},
		{"INSERT INTO kt (user, a) VALUES (1, 2) ON DUPLICATE KEY UPDATE uſer = 5", refused},
		{"INSERT INTO kt (user, größe) VALUES (1, 2) ON DUPLICATE KEY UPDATE größe = 5", keys},
		{"INSERT INTO kt (uſer) SELECT 1", refused},
		{"INSERT INTO kt (İd) SELECT 1", refused},
		{"INSERT INTO kt (user) SELECT 1", keys},
		{"LOAD DATA INFILE 'f' INTO TABLE t (`İd`, a)", refused},
		{"INSERT INTO t (`id\xc3`, a) VALUES (1, 2)", refused},
	} {
		tables := func(_, name string) *Table {
			switch strings.ToLower(name) {
			case "t":
				return &Table{Key: "id", Recorded: []string{"a"}}
			case "ikt":
				return &Table{Key: "id"}
			case "kt":
				return &Table{Key: "id", Recorded: []string{"user"}, Fixed: []string{"user"}}
			}
			return nil
		}
		p, err := Parse(c.query, Options{Table: tables})
		have := passes
		switch {
		case errors.Is(err, ErrUnsupportedStatement):
			have = refused
		case err != nil:
			have = err.Error()
		case len(p.Inserts) > 0:
			have = keys
		}
		if have != c.want {
			t.Errorf("%q\nhave: %s (%v)\nwant: %s", c.query, have, err, c.want)
		}
	}
}
