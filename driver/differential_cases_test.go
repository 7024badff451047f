package driver

// Adding a case is one line: a name and its statements. The tables are t (id,
// a, u UNIQUE, s), child (id, t_id, a) and `we“ird` (`k“ey`, `select`), all
// ruled; free (id, a), which is not and has AUTO_INCREMENT itself; and src (id,
// a, s) with four rows. LAST_INSERT_ID() is 77 at first.
var cases = []differentialCase{
	// the key column's forms
	{"absent", []step{q("INSERT INTO t (a) VALUES (?)", 1)}},
	{"absent literal", []step{q("INSERT INTO t (a) VALUES (1)")}},
	{"absent rows", []step{q("INSERT INTO t (a) VALUES (?), (?), (?)", 1, 2, 3)}},
	{"absent mixed", []step{q("INSERT INTO t (a) VALUES (?), (1), (?), (2)", 5, 6)}},
	{"NULL", []step{q("INSERT INTO t (id, a) VALUES (NULL, 1)")}},
	{"DEFAULT", []step{q("INSERT INTO t (id, a) VALUES (DEFAULT, 1)")}},
	{"zero", []step{q("INSERT INTO t (id, a) VALUES (0, 1)")}},
	{"zero string", []step{q("INSERT INTO t (id, a) VALUES ('0', 1)")}},
	{"zeros", []step{q("INSERT INTO t (id, a) VALUES (00, 1), (0.0, 2), (0x0, 3), (-0, 4), ('00', 5), (FALSE, 6)")}},
	{"bound nil", []step{q("INSERT INTO t (id, a) VALUES (?, 1)", nil)}},
	{"bound zero", []step{q("INSERT INTO t (id, a) VALUES (?, 1)", 0)}},
	{"bound uint zero", []step{q("INSERT INTO t (id, a) VALUES (?, 1)", uint64(0))}},
	{"bound zero string", []step{q("INSERT INTO t (id, a) VALUES (?, 1)", "0")}},
	{"bound empty string", []step{q("INSERT INTO t (id, a) VALUES (?, 1)", "")}},
	{"bound key", []step{q("INSERT INTO t (id, a) VALUES (?, 1)", 100)}},
	{"bound string key", []step{q("INSERT INTO t (id, a) VALUES (?, 1)", "100")}},
	{"explicit", []step{q("INSERT INTO t (id, a) VALUES (100, 1)")}},
	{"explicit rows", []step{q("INSERT INTO t (id, a) VALUES (400, 1), (401, 2)")}},
	{"mixed explicit", []step{q("INSERT INTO t (id, a) VALUES (200, 1), (NULL, 2), (300, 3), (0, 4), (DEFAULT, 5)")}},
	{"mixed bound", []step{q("INSERT INTO t (id, a) VALUES (?, 1), (?, 2), (?, 3), (DEFAULT, 4)", 200, nil, 0)}},
	{"expression", []step{q("INSERT INTO t (a) VALUES (1+1), (ABS(-3))")}},
	{"brackets", []step{q("INSERT INTO t (id, a) VALUES ((NULL), (1))")}},
	{"string key literal", []step{q("INSERT INTO t (id, a) VALUES ('123', 1)")}},

	// forms
	{"no column list", []step{q("INSERT INTO t VALUES (NULL, 1, 2, 'x')")}},
	{"no column list rows", []step{q("INSERT INTO t VALUES (NULL, 1, 2, 'x'), (5, 1, 3, ?), (?, 1, 4, 'z')", "y", nil)}},
	{"empty column list", []step{q("INSERT INTO t () VALUES (0, 1, 2, 'x')")}},
	{"nothing", []step{q("INSERT INTO t () VALUES ()")}},
	{"nothing at all", []step{q("INSERT INTO t VALUES ()")}},
	{"nothing twice", []step{q("INSERT INTO t VALUES (), ( )")}},
	{"VALUE", []step{q("INSERT INTO t (a) VALUE (1)")}},
	{"SET", []step{q("INSERT INTO t SET a = ?, s = 'b'", 1)}},
	{"SET key", []step{q("INSERT INTO t SET a = 1, id = NULL, s = 'b'")}},
	{"SET key bound", []step{q("INSERT INTO t SET id = ?, a = ?", 0, 1)}},
	{"SET given", []step{q("INSERT INTO t SET t.id := 7, t.a = 1")}},
	{"REPLACE", []step{q("INSERT INTO t (id, a, u) VALUES (5, 1, 1)"), q("REPLACE INTO t (a, u) VALUES (2, 1)")}},
	{"REPLACE SET", []step{q("REPLACE t SET a = 2")}},
	{"REPLACE rows", []step{q("REPLACE INTO t (a, u) VALUES (1, 1), (2, 2)"), q("REPLACE INTO t (a, u) VALUES (1, 1), (2, 3)")}},
	{"priorities", []step{q("INSERT LOW_PRIORITY INTO t (a) VALUES (1)"), q("INSERT HIGH_PRIORITY IGNORE t (a) VALUES (1)")}},
	{"qualified columns", []step{q("INSERT INTO t (t.a, t.s) VALUES (1, 'x')")}},
	{"odd names", []step{q("INSERT INTO `we``ird` (`select`) VALUES (?)", 1), q("INSERT INTO `we``ird` (`k``ey`, `select`) VALUES (DEFAULT, ?)", 1)}},
	{"case", []step{q("insert into T (A) values (1)"), q("InSeRt InTo t (ID, a) VaLuEs (nUlL, 1)")}},

	// text
	{"comments", []step{q("/* first */ INSERT /* a */ INTO -- b\n t # c\n (a /* ) */) /* , */ VALUES /* ( */ (1 /* ) */) -- end")}},
	{"leading comment", []step{q("-- one\n# two\n/* three */INSERT INTO t (a) VALUES (1)")}},
	{"hint", []step{q("INSERT /*+ SET_VAR(sort_buffer_size=1) */ INTO t (a) VALUES (1)")}},
	{"quotes", []step{q(`INSERT INTO t (s, a) VALUES ('it''s, (a) ?', 1), ("it's \" ?)", 2), ('\'', 3), ('\\', ?)`, 4)}},
	{"prefixes", []step{q(`INSERT INTO t (s) VALUES (N'x'), (_utf8mb4'y'), (X'41'), (0x42), (b'01000011'), ('a' 'b')`)}},
	{"semicolon", []step{q("INSERT INTO t (a) VALUES (1);")}},
	{"spaces", []step{q(" \n\tINSERT\nINTO\tt\n(\na\n)\nVALUES\n(\n1\n)\n")}},
	{"unicode", []step{q("INSERT INTO t (s) VALUES ('日本語 ) ,'), (?)", "ключ")}},
	{"placeholder in text", []step{q("INSERT INTO t (s, a) VALUES ('?', ?) /* ? */ -- ?", 1)}},
	{"subquery", []step{q("INSERT INTO t (a, s) VALUES ((SELECT MAX(a) FROM src), CONCAT('a', ',', ')'))")}},
	{"case expression", []step{q("INSERT INTO t (a) VALUES (CASE WHEN ? > 1 THEN 2 ELSE 3 END)", 5)}},

	// duplicates
	{"IGNORE all", []step{q("INSERT INTO t (id, u) VALUES (5, 1)"), q("INSERT IGNORE INTO t (u) VALUES (1)")}},
	{"IGNORE none", []step{q("INSERT IGNORE INTO t (u) VALUES (1), (2)")}},
	{"IGNORE some", []step{q("INSERT INTO t (id, u) VALUES (5, 1)"), q("INSERT IGNORE INTO t (u) VALUES (1), (2)")}},
	{"IGNORE last", []step{q("INSERT INTO t (id, u) VALUES (5, 1)"), q("INSERT IGNORE INTO t (u, a) VALUES (2, ?), (1, ?)", 1, 2)}},
	{"IGNORE bound", []step{q("INSERT INTO t (id, u) VALUES (5, 1)"), q("INSERT IGNORE INTO t (id, u) VALUES (?, 1), (?, 2), (?, 3)", nil, 0, nil)}},
	{"IGNORE last, keys given before", []step{q("INSERT IGNORE INTO t (id, u) VALUES (38, 5), (?, NULL), (DEFAULT, 5)", 28), q("INSERT INTO t (a) VALUES (1)")}},
	{"duplicate new", []step{q("INSERT INTO t (u, a) VALUES (1, 1) ON DUPLICATE KEY UPDATE a = VALUES(a)")}},
	{"duplicate changed", []step{q("INSERT INTO t (id, u, a) VALUES (5, 1, 1)"), q("INSERT INTO t (u, a) VALUES (1, 2) ON DUPLICATE KEY UPDATE a = VALUES(a)")}},
	{"duplicate unchanged", []step{q("INSERT INTO t (id, u, a) VALUES (5, 1, 1)"), q("INSERT INTO t (u, a) VALUES (1, 1) ON DUPLICATE KEY UPDATE a = VALUES(a)")}},
	{"duplicate bound", []step{q("INSERT INTO t (id, u, a) VALUES (5, 1, 1)"), q("INSERT INTO t (u, a) VALUES (?, ?) ON DUPLICATE KEY UPDATE a = ?, s = ?", 1, 2, 3, "x")}},
	{"duplicate own id", []step{q("INSERT INTO t (id, u, a) VALUES (5, 1, 1)"), q("INSERT INTO t (u, a) VALUES (1, 2) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), a = 3")}},
	{"duplicate own id new", []step{q("INSERT INTO t (u, a) VALUES (1, 2) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id), a = 3")}},
	{"duplicate one of each", []step{q("INSERT INTO t (id, u, a) VALUES (5, 1, 1)"), q("INSERT INTO t (u, a) VALUES (1, 2), (2, 2) ON DUPLICATE KEY UPDATE a = VALUES(a)")}},
	{"duplicate two", []step{q("INSERT INTO t (id, u, a) VALUES (5, 1, 1), (6, 2, 1)"), q("INSERT INTO t (u, a) VALUES (1, 2), (2, 2) ON DUPLICATE KEY UPDATE a = VALUES(a)")}},
	{"duplicate twice", []step{q("INSERT INTO t (id, u, a) VALUES (5, 1, 1)"), q("INSERT INTO t (u, a) VALUES (1, 2) ON DUPLICATE KEY UPDATE a = 2"),
		q("INSERT INTO t (u, a) VALUES (1, 2) ON DUPLICATE KEY UPDATE a = 3"), q("INSERT INTO t (a) VALUES (1)"), q("INSERT INTO t (u, a) VALUES (1, 2) ON DUPLICATE KEY UPDATE a = 4")}},
	{"duplicate explicit", []step{q("INSERT INTO t (id, u, a) VALUES (5, 1, 1)"), q("INSERT INTO t (id, a) VALUES (5, 2) ON DUPLICATE KEY UPDATE a = 9")}},
	{"duplicate SET", []step{q("INSERT INTO t SET u = 1, a = 1 ON DUPLICATE KEY UPDATE a = 2"), q("INSERT INTO t SET u = 1, a = 1 ON DUPLICATE KEY UPDATE a = 2")}},
	{"duplicate key error", []step{q("INSERT INTO t (id, u) VALUES (5, 1)"), q("INSERT INTO t (id, a) VALUES (5, 1)")}},

	// what follows
	{"LAST_INSERT_ID in a child", []step{q("INSERT INTO t (a) VALUES (1)"), q("INSERT INTO child (t_id) VALUES (LAST_INSERT_ID())")}},
	{"LAST_INSERT_ID in children", []step{q("INSERT INTO t (a) VALUES (1)"), q("INSERT INTO child (t_id) VALUES (LAST_INSERT_ID()), (LAST_INSERT_ID())")}},
	{"LAST_INSERT_ID after bound", []step{q("INSERT INTO t (id, a) VALUES (?, 1)", nil), q("INSERT INTO child (t_id, a) VALUES (LAST_INSERT_ID(), ?)", 1)}},
	{"LAST_INSERT_ID after IGNORE", []step{q("INSERT IGNORE INTO t (a) VALUES (1)"), q("UPDATE t SET a = 5 WHERE id = LAST_INSERT_ID()"), q("SELECT a FROM t WHERE id = @@identity")}},
	{"LAST_INSERT_ID after free", []step{q("INSERT IGNORE INTO t (a) VALUES (1)"), q("INSERT INTO free (a) VALUES (1)"), q("SELECT LAST_INSERT_ID()")}},
	{"LAST_INSERT_ID after free explicit", []step{q("INSERT IGNORE INTO t (a) VALUES (1)"), q("INSERT INTO free (id, a) VALUES (9, 1)"), q("SELECT LAST_INSERT_ID()")}},
	{"LAST_INSERT_ID argument", []step{q("INSERT INTO t (a) VALUES (LAST_INSERT_ID(9))"), q("INSERT INTO t (id, a) VALUES (3, LAST_INSERT_ID(8))")}},
	{"unruled", []step{q("INSERT INTO free (a) VALUES (1), (2)"), q("INSERT INTO free SET a = ?", 3)}},

	// queries
	{"SELECT", []step{q("INSERT INTO t (a) SELECT a FROM src ORDER BY a")}},
	{"SELECT bound", []step{q("INSERT INTO t (a, s) SELECT a, ? FROM src WHERE a > ? ORDER BY a DESC LIMIT 2", "q", 10)}},
	{"SELECT none", []step{q("INSERT INTO t (a) SELECT a FROM src WHERE a > 1000")}},
	{"SELECT key", []step{q("INSERT INTO t (id, a) SELECT id, a FROM src ORDER BY a")}},
	{"SELECT given", []step{q("INSERT INTO t (id, a) SELECT id, a FROM src WHERE id > 0 ORDER BY a")}},
	{"SELECT same table", []step{q("INSERT INTO t (a) VALUES (1), (2)"), q("INSERT INTO t (a) SELECT a + 10 FROM t ORDER BY a")}},
	{"SELECT no list", []step{q("INSERT INTO t SELECT NULL, a, a, s FROM src ORDER BY a")}},
	{"SELECT brackets", []step{q("INSERT INTO t (a) (SELECT a FROM src ORDER BY a LIMIT 3)")}},
	{"SELECT union", []step{q("INSERT INTO t (a) SELECT 1 UNION ALL SELECT 2")}},
	{"WITH", []step{q("INSERT INTO t (a, s) WITH c AS (SELECT a, s FROM src) SELECT a, s FROM c ORDER BY a")}},
	{"SELECT IGNORE", []step{q("INSERT INTO t (id, u) VALUES (5, 20)"), q("INSERT IGNORE INTO t (u) SELECT a FROM src ORDER BY a")}},
	{"SELECT duplicate", []step{q("INSERT INTO t (id, u) VALUES (5, 20)"), q("INSERT INTO t (u, a) SELECT a, 1 FROM src ORDER BY a ON DUPLICATE KEY UPDATE a = ?", 7)}},
	{"SELECT duplicate all", []step{q("INSERT INTO t (id, u) VALUES (5, 20)"), q("INSERT INTO t (u, a) SELECT 20, 1 ON DUPLICATE KEY UPDATE a = VALUES(a) + 1")}},
	{"REPLACE SELECT", []step{q("INSERT INTO t (id, u) VALUES (5, 20)"), q("REPLACE INTO t (u) SELECT a FROM src ORDER BY a")}},
	{"SELECT LAST_INSERT_ID", []step{q("INSERT INTO t (a) VALUES (1)"), q("INSERT INTO child (t_id) SELECT LAST_INSERT_ID() FROM src")}},
	{"SELECT fails", []step{q("INSERT INTO t (a) SELECT nope FROM src"), q("INSERT INTO t (u) SELECT 1 UNION ALL SELECT 1")}},

	// row aliases
	{"row alias", []step{q("INSERT INTO t (u, a) VALUES (1, 2) AS new ON DUPLICATE KEY UPDATE a = new.a + 1"), q("INSERT INTO t (u, a) VALUES (?, 2), (2, ?) AS new ON DUPLICATE KEY UPDATE a = new.a + 1", 1, 5)}},
	{"row alias with columns", []step{q("INSERT INTO t (u, a) VALUES (1, 2) AS new(x, y) ON DUPLICATE KEY UPDATE a = y"), q("INSERT INTO t SET u = 1, a = 3 AS new ON DUPLICATE KEY UPDATE a = new.a")}},
	{"VALUES ROW", []step{q("INSERT INTO t (u, a) VALUES ROW(1, 2), ROW(?, 3)", 2), q("INSERT INTO t VALUES ROW(NULL, 1, 9, 'x')")}},

	// RETURNING
	{"RETURNING", []step{q("INSERT INTO t (a) VALUES (1) RETURNING id, a")}},
	{"RETURNING rows", []step{q("INSERT INTO t (a) VALUES (?), (?) RETURNING id", 1, 2)}},
	{"RETURNING *", []step{q("REPLACE INTO t (a) VALUES (1) RETURNING *")}},
	{"RETURNING SELECT", []step{q("INSERT INTO t (a) SELECT a FROM src ORDER BY a RETURNING id, a")}},

	// errors
	{"wrong count", []step{q("INSERT INTO t (a) VALUES (1, 2)"), q("INSERT INTO t (a, s) VALUES (1)"), q("INSERT INTO t VALUES (1)")}},
	{"wrong row", []step{q("INSERT INTO t (a) VALUES (1), (1, 2)")}},
	{"unknown column", []step{q("INSERT INTO t (nope) VALUES (1)"), q("INSERT INTO t SET nope = 1")}},
	{"unknown table", []step{q("INSERT INTO missing (a) VALUES (1)")}},
	{"too long", []step{q("INSERT INTO t (s) VALUES (REPEAT('x', 100))")}},
	{"bad argument count", []step{q("INSERT INTO t (a) VALUES (?)", 1, 2), q("INSERT INTO t (a, s) VALUES (?, ?)", 1)}},
	{"syntax in a value", []step{q("INSERT INTO t (a) VALUES (1 +)")}},
	{"key twice", []step{q("INSERT INTO t (id, id, a) VALUES (NULL, NULL, 1)")}},
}

// casesWithParams run with further DSN parameters.
var casesWithParams = map[string][]differentialCase{
	"multiStatements=true&interpolateParams=true": {
		{"two", []step{q("INSERT INTO t (a) VALUES (?); INSERT INTO t (a) VALUES (?), (?)", 1, 2, 3)}},
		{"in a transaction", []step{q("BEGIN; INSERT INTO t (a) VALUES (1); SAVEPOINT s; INSERT INTO t (a) VALUES (2); ROLLBACK TO s; COMMIT")}},
		{"parent and child", []step{q("INSERT INTO t (a) VALUES (1); INSERT INTO child (t_id) VALUES (LAST_INSERT_ID())")}},
		{"unruled last", []step{q("INSERT INTO t (a) VALUES (1); INSERT INTO free (a) VALUES (1)")}},
		{"sql_mode within", []step{q("SET sql_mode = 'ANSI_QUOTES'; SELECT 1"), q(`INSERT INTO "t" ("a") VALUES (1)`)}},
	},
	"clientFoundRows=true": {
		{"duplicate unchanged", []step{q("INSERT INTO t (id, u, a) VALUES (5, 1, 1)"), q("INSERT INTO t (u, a) VALUES (1, 1) ON DUPLICATE KEY UPDATE a = VALUES(a)")}},
		{"duplicate changed", []step{q("INSERT INTO t (id, u, a) VALUES (5, 1, 1)"), q("INSERT INTO t (u, a) VALUES (1, 2) ON DUPLICATE KEY UPDATE a = VALUES(a)")}},
		{"duplicate new", []step{q("INSERT INTO t (u, a) VALUES (1, 1) ON DUPLICATE KEY UPDATE a = VALUES(a)")}},
		{"duplicate rows", []step{q("INSERT INTO t (id, u, a) VALUES (5, 1, 1)"), q("INSERT INTO t (u, a) VALUES (1, 1), (2, 1), (1, 2) ON DUPLICATE KEY UPDATE a = VALUES(a)")}},
		{"IGNORE some", []step{q("INSERT INTO t (id, u) VALUES (5, 1)"), q("INSERT IGNORE INTO t (u) VALUES (1), (2)")}},
	},
	"sql_mode=%27ANSI_QUOTES,NO_BACKSLASH_ESCAPES%27": {},
}

func init() {
	modes := []differentialCase{
		{"ANSI_QUOTES", []step{q("SET SESSION sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES')"), q(`INSERT INTO "t" ("a", "s") VALUES (1, 'x"'), (?, '"')`, 2)}},
		{"NO_BACKSLASH_ESCAPES", []step{q("SET sql_mode = CONCAT(@@sql_mode, ',NO_BACKSLASH_ESCAPES')"), q(`INSERT INTO t (s, a) VALUES ('\', 1), (')\', ?)`, 2)}},
		{"NO_AUTO_VALUE_ON_ZERO", []step{q("SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'"), q("INSERT INTO t (id, a) VALUES (0, 1), (NULL, 2)"), q("REPLACE INTO t (id, a) VALUES (?, 1)", 0)}},
		{"mode off again", []step{q("SET sql_mode = 'ANSI_QUOTES'"), q(`INSERT INTO "t" (a) VALUES (1)`), q("SET sql_mode = ''"), q(`INSERT INTO t (s) VALUES ("x'")`)}},
	}
	cases = append(cases, modes...)
	delete(casesWithParams, "sql_mode=%27ANSI_QUOTES,NO_BACKSLASH_ESCAPES%27")
	casesWithParams["sql_mode=%27ANSI_QUOTES%2CNO_BACKSLASH_ESCAPES%27"] = []differentialCase{
		{"from the DSN", []step{q(`INSERT INTO "t" ("a", "s") VALUES (1, '\'), (?, '"')`, 2)}},
	}
}
