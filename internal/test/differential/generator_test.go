package differential

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// generator generates random statements.
type generator struct {
	Inserts
	world *world
	tags  int  // of rows, see rowTag
	dirty bool // a statement had an explicit key that isn't an ordinary one
	// begins is the first key of the next temporary table.
	begins int
	// others: other sessions alter tables, so there are no long transactions.
	others bool
}

func newGenerator(r *rand.Rand, w *world) *generator {
	g := &generator{Inserts: Inserts{Rand: r, noID: w.shape.noID, isView: w.kind == view, Returning: w.features.mariaDB, Aliases: w.features.mySQL}, world: w}
	g.objects = g
	return g
}

func (g *generator) statements() (c differentialCase) {
	c = differentialCase{name: "generated"}
	g.modes, g.tags, g.dirty, g.begins = g.world.mode, 0, false, 1_500_000
	g.others = !g.world.tx && !strings.Contains(g.world.params, "autocommit=0") && g.one(30)
	for range 4 + g.IntN(5) {
		st := g.statement()
		if g.one(5) && st.by == own {
			st.read = g.reader()
		}
		c.steps = append(c.steps, st)
		if len(st.args) > 0 && st.parts == nil && g.one(6) {
			c.steps = append(c.steps, g.again(&c.steps[len(c.steps)-1])...)
		}
		if g.dirty || strings.Contains(st.text, "KILL") { // AUTO_INCREMENT may be at its end
			break
		}
	}
	return c
}

// again returns more executions of a statement, with arguments of other types. The program may have
// prepared it, and may change the session in between.
func (g *generator) again(st *step) (more []step) {
	st.kept = g.one(2)
	for range 1 + g.IntN(3) {
		if g.one(3) {
			more = append(more, g.change())
		}
		more = append(more, g.otherTypes(*st))
	}
	return more
}

// otherTypes returns the same statement with arguments of other types.
func (g *generator) otherTypes(st step) step {
	st.args, st.read, st.marks = slices.Clone(st.args), "", st.marks+" again"
	for i, arg := range st.args {
		switch v := arg.(type) {
		case int:
			st.args[i] = []any{strconv.Itoa(v), v + 1, int64(v), uint64(v), []byte(strconv.Itoa(v)), float64(v), v == 1, nil, v}[g.IntN(9)]
		case string:
			if n, err := strconv.Atoi(v); err == nil && strconv.Itoa(n) == v {
				st.args[i] = n
			} else if g.one(3) {
				st.args[i] = []any{7, nil, []byte("x"), 1.5, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}[g.IntN(5)]
			}
		}
	}
	return st
}

// change returns a statement that changes the session.
func (g *generator) change() step {
	switch g.IntN(6) {
	case 0, 1:
		return q("USE " + g.pick("{second}", "{second}", "{db}"))
	case 2:
		return q("SET NAMES " + g.pick("utf8mb4", "latin1", "gbk"))
	case 3:
		return g.temporary()
	case 4:
		return g.variable()
	}
	g.modes = randomMode(g.Rand, g.world.features, g.noID)
	return q("SET " + g.pick("", "SESSION ", "@@session.") + "sql_mode = " + g.modes)
}

// temporary creates or drops a table that hides t.
func (g *generator) temporary() step {
	g.begins += 1000
	options := ") AUTO_INCREMENT = " + strconv.Itoa(g.begins)
	st := q(g.pick("CREATE TEMPORARY TABLE t (id {key}, a INT, u INT UNIQUE, s VARCHAR(60)"+options, "CREATE TEMPORARY TABLE t (s VARCHAR(60), u INT UNIQUE, id {key}, a INT"+options,
		"DROP TEMPORARY TABLE t", "DROP TEMPORARY TABLE IF EXISTS t", "SELECT * FROM t ORDER BY u, a, s"))
	if g.isView { // the servers execute a statement that was prepared for the view as if nothing hid it
		return q("SELECT COUNT(*) FROM t")
	}
	return st
}

// variable sets a variable of the session.
func (g *generator) variable() step {
	v := sessionVariables[g.IntN(len(sessionVariables))]
	if v.has != nil && !v.has(g.world.features) {
		return q("SET @v = 5")
	}
	st := q("SET " + g.pick("", "SESSION ", "@@") + v.name + " = " + g.pick(append(v.values, "DEFAULT")...))
	st.marks = " variable"
	return st
}

// elsewhere returns a statement of another session, which alters tables or ends the connection.
func (g *generator) elsewhere() step {
	base := "{db}." + g.world.base()
	st := q(g.pick(
		"ALTER TABLE "+base+" ADD more INT DEFAULT 4", "ALTER TABLE "+base+" ADD more INT DEFAULT 4 FIRST", "ALTER TABLE "+base+" DROP u", "ALTER TABLE "+base+" MODIFY a BIGINT NOT NULL DEFAULT 2",
		"ALTER TABLE "+base+" MODIFY s VARCHAR(3) AFTER id", "ALTER TABLE "+base+" MODIFY id {type} AFTER s", "ALTER TABLE "+base+" DROP INDEX u", "ALTER TABLE "+base+" ADD c INT AS (a + 1)",
		"CREATE TRIGGER {db}.later BEFORE INSERT ON "+base+" FOR EACH ROW SET NEW.s = 'later'", "CREATE TRIGGER {db}.later AFTER INSERT ON "+base+" FOR EACH ROW INSERT INTO {db}.log (what, k) VALUES ('later', NEW.id)",
		"CREATE TRIGGER {db}.later BEFORE INSERT ON "+base+" FOR EACH ROW INSERT INTO {db}.log (what, k) VALUES ('later', LAST_INSERT_ID())",
		"CREATE TRIGGER {db}.later BEFORE UPDATE ON "+base+" FOR EACH ROW SET NEW.s = 'updated'", "CREATE TRIGGER {db}.later BEFORE INSERT ON "+base+" FOR EACH ROW SET @last = LAST_INSERT_ID(33)",
		"DROP TRIGGER IF EXISTS {db}.later", "DROP TRIGGER IF EXISTS {db}.tr_t_before_insert", "ALTER TABLE "+base+" COMMENT 'x'", "CREATE TABLE {db}.made (a INT)", "DROP TABLE IF EXISTS {db}.made",
		"ALTER TABLE {second}.t MODIFY u INT FIRST", "DROP TRIGGER {second}.tr"))
	if g.noID && (readsID.MatchString(st.text) || strings.Contains(st.text, "MODIFY id")) || g.isView && strings.Contains(st.text, "DROP u") {
		st.text = "DROP TRIGGER {second}.tr"
	}
	if st.by = other; g.one(4) {
		st.by = unseen
	}
	return st
}

func (g *generator) statement() step {
	if st, ok := g.around(); ok {
		return st
	}
	switch {
	case g.one(4):
		return g.typedInsert()
	case g.one(8):
		return g.withObjects()
	case g.one(12) && !g.others:
		return g.inTransaction()
	case g.others && g.one(3):
		return g.elsewhere()
	case g.one(12):
		return g.change()
	case g.one(8):
		return g.insertSelect()
	case g.one(5) && strings.Contains(g.world.params, "multiStatements"):
		return g.several()
	}
	return g.insert()
}

// around returns a statement between a table's INSERTs.
func (g *generator) around() (step, bool) {
	switch g.IntN(26) {
	case 24:
		return q(g.pick("INSERT INTO {second}.t (u, s) VALUES (1, 'x'), (2, 'y')", "INSERT INTO {db}.t (u) VALUES (5)", "INSERT INTO {second}.t (u, a) VALUES (1, 3) ON DUPLICATE KEY UPDATE a = NULL",
			"INSERT INTO {second}.t (u) SELECT a FROM {db}.src ORDER BY a", "INSERT IGNORE INTO {second}.t VALUES (NULL, 3, 'x', 4), (NULL, 3, 'y', 5)", "SELECT COUNT(*), MAX(a) FROM {second}.t")), true
	case 25:
		if !g.one(4) {
			return g.variable(), true
		}
		return step{text: "KILL {id}", by: unseen}, true
	case 0:
		return q("SELECT COUNT(*) FROM t" + g.ifID(" WHERE id = LAST_INSERT_ID()")), true
	case 1, 2:
		return q("INSERT INTO child (t_id, a) VALUES (" + g.ifID("LAST_INSERT_ID() + ") + "0, " + strconv.Itoa(g.IntN(9)) + ")"), true
	case 3:
		return q("INSERT INTO free (a) VALUES (1)"), true
	case 4:
		return q("UPDATE t SET a = a + 1 WHERE u = " + g.unique() + g.ifID(" OR id = LAST_INSERT_ID()")), true
	case 5:
		return q("DELETE FROM t WHERE u = " + g.unique()), true
	case 6, 7:
		return g.change(), true
	case 8: // it fails, and the next statement may read LAST_INSERT_ID()
		return q(g.pick(
			"INSERT INTO t (a, u) VALUES (1, 7), (2, 7)",
			"INSERT INTO t (nope) VALUES (1)",
			"INSERT INTO t (a) SELECT nope FROM src",
			"INSERT INTO t (a, u) SELECT 1, 8 UNION ALL SELECT 2, 8",
			"INSERT INTO t (a) VALUES (1), ((SELECT a FROM src))",
			"INSERT INTO t (s) VALUES ('x'), (REPEAT('x', 70))")), true
	}
	return step{}, false
}

// worldValue returns a value with the objects of a world, or "".
func (g *generator) worldValue(column string, st *step, bind func(any) string) string {
	switch column {
	case "a":
		if g.one(6) {
			return g.pick("f1(2)", "fi(4)", "(SELECT a FROM vs WHERE a = 10)", "(SELECT COUNT(*) FROM vl)", "13", "fm()", "fs(6)", "fk(1)", "(SELECT MAX(a) FROM src)", "LAST_INSERT_ID(9)", "@n", "(@n := 4)")
		}
		if g.one(20) {
			return g.pick("'x'", "99999999999", "1/0", "'5x' + 0", "-1.5", "TRUE", "X'41'", "b'1'", "'2'", "1e1")
		}
	case "s":
		switch {
		case g.one(3):
			g.tags++
			return "'r" + strconv.Itoa(g.tags) + "'"
		case g.one(12):
			return g.ifID(g.pick("fl()", "LAST_INSERT_ID()", "(SELECT l FROM vl)", "(SELECT l FROM vf)"))
		case g.one(30):
			return g.pick("REPEAT('x', 61)", "fi(1)", "1.50", "DATE '2026-01-02'", "NOW() IS NULL")
		}
	case "u":
		if g.one(30) {
			return g.pick("fi(5)", "'3'", "f1(1)", "-1")
		}
	default:
		if !g.noID && g.keys == anyKeys && g.one(5) {
			g.dirty = true
			st.marks += " dirty key"
			return g.dirtyKey(bind)
		}
	}
	return ""
}

// dirtyKey returns an explicit key that isn't an ordinary one.
func (g *generator) dirtyKey(bind func(any) string) string {
	switch g.IntN(4) {
	case 0:
		return bind([]any{-3, "-4", "5x", "abc", "", " 12", "1e2", 1.5, -0.7, 0.4, []byte("15"), []byte("x"), true, uint64(42), "0x10", "12 ", "+7",
			"-0", "00", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), int64(-1), "0.0", " ", "\t8", float32(9), "9.5"}[g.IntN(26)])
	case 1:
		return g.pick("1 + 1", "0 * 5", "CAST('21' AS SIGNED)", "CAST(NULL AS UNSIGNED)", "LAST_INSERT_ID()", "-(-8)", "- 5", "10 DIV 3", "7 MOD 4", "NULL + 1",
			"CAST('abc' AS SIGNED)", "CAST(-1 AS UNSIGNED)", "1 - 2", "f1(3)", "(SELECT 5)", "@nope", "ABS(-3)", "COALESCE(NULL, 6)", "FLOOR(2.5)", "2 / 3", "1 = 1")
	case 2:
		return g.pick("'5x'", "'abc'", "''", "' 12'", "'1e2'", "1.5", "-0.7", "'-3'", "-4", "0.4", "2.5e0", "1e1", "X'41'", "0x41", "b'1'", "TRUE", "'0x10'", "'12 '", "-0", "'-0'",
			"'0.4'", "'-0.7'", "DATE '2026-01-02'", "N'17'", "_utf8mb4'18'", "'1' '9'", "+ 7", "\"16\"", "FALSE", "0.0", "00021")
	}
	return g.pick("-1", "-9223372036854775808", "-9223372036854775809", "-99999999999999999999999", "-2147483649", "-128", "-0.5", "-1e30", "'-99999999999999999999'")
}

// updateList writes the assignments of ON DUPLICATE KEY UPDATE.
func (g *generator) updateList(b *strings.Builder, from form) {
	texts := []string{"t.a = fi(6)", "t.a = f1(1)", "t.a = VALUES(a) + f1(1)", "t.s = 'dup'", "t.a = t.a", "t.u = t.u + 1", "t.a = fs(5)", "t.a = fm()", "t.a = 13", "t.s = REPEAT('x', 61)", "t.a = 1/0", "t.a = VALUES(u)",
		"t.a = NULL", "t.a = NULL", "t.s = NULL, t.a = NULL"}
	if !g.noID {
		texts = append(texts, "t.s = fl()", "t.s = LAST_INSERT_ID()", "id = LAST_INSERT_ID(t.id)", "t.id = LAST_INSERT_ID(t.id), t.a = 4", "t.id = t.id", "t.id = 600", "t.s = t.id", "t.s = VALUES(id)", "t.s = (SELECT l FROM vl)")
	}
	b.WriteString(g.pick(texts...))
	if g.one(4) {
		b.WriteString(", " + g.pick(texts...))
	}
}

// reader returns a query that reads LAST_INSERT_ID() or what else a statement leaves.
func (g *generator) reader() string {
	return g.pick("SELECT @@identity", "SELECT LAST_INSERT_ID() + 0", "SHOW VARIABLES LIKE 'last_insert_id'", "SELECT fl()", "SELECT * FROM vl", "SELECT * FROM vf", "SELECT ROW_COUNT()",
		"SELECT COUNT(*) FROM t WHERE id = LAST_INSERT_ID()", "SHOW COUNT(*) WARNINGS", "SELECT @@warning_count", "SHOW VARIABLES WHERE Variable_name = 'identity'", "SELECT COUNT(*) FROM t WHERE id = fl()",
		"SELECT @@sql_mode", "SELECT (SELECT LAST_INSERT_ID())", "SELECT l FROM vl, (SELECT 1) x")
}

// withObjects returns a statement that isn't an INSERT into a sharded table, with functions and views.
func (g *generator) withObjects() step {
	all := []string{"SELECT f1(1), fi(2), fm()", "SELECT a FROM vs ORDER BY a", "UPDATE t SET a = fi(7) WHERE u < 3", "CALL pf()", "INSERT INTO free (a) VALUES (fi(1)), (2)", "INSERT INTO free (a) SELECT a FROM vs",
		"UPDATE t SET a = 13 WHERE u = 1", "UPDATE free SET a = a + 1", "DELETE FROM t WHERE a > fm()", "INSERT INTO child (t_id, a) SELECT a, fi(1) FROM src ORDER BY a", "INSERT INTO free (a) SELECT COUNT(*) FROM t",
		"INSERT INTO log (what) VALUES ('direct')", "REPLACE INTO free (id, a) VALUES (5, 1)", "INSERT IGNORE INTO free (id, a) VALUES (5, 2)", "SELECT a, u, s FROM vt ORDER BY u, a, s", "SET @v = 3", "DO f1(1)"}
	if !g.noID {
		all = append(all, "SELECT fl()", "SELECT * FROM vl", "SELECT * FROM vf", "UPDATE t SET s = 'seen' WHERE id = fl()", "DELETE FROM t WHERE id = fl()", "UPDATE t SET s = 'view' WHERE id = (SELECT l FROM vl)", "CALL pl()",
			"INSERT INTO free (a) VALUES (LAST_INSERT_ID())", "INSERT INTO free (a) VALUES (fl())", "INSERT INTO child (t_id) VALUES (fl())", "INSERT INTO child (t_id) SELECT l FROM vl", "INSERT INTO child (t_id) SELECT fl()",
			"SET @v = fl()", "SELECT fs(44)", "UPDATE t SET a = LAST_INSERT_ID(3) WHERE u = 2", "DO LAST_INSERT_ID(55)", "INSERT INTO log (what, k) SELECT 'sel', LAST_INSERT_ID()", "UPDATE child SET t_id = LAST_INSERT_ID()",
			"INSERT INTO t (id, u) SELECT id, u + 10 FROM vt WHERE id < 1000 ORDER BY id", "INSERT INTO t (u, s) SELECT fi(3), fl()", "INSERT INTO t (a) SELECT f1(a) FROM vs WHERE a > f1(15) ORDER BY a", "INSERT INTO t (s) SELECT LAST_INSERT_ID() FROM vs",
			"INSERT INTO t (a, u) SELECT a, a FROM vs ORDER BY a ON DUPLICATE KEY UPDATE t.a = fi(2)", "INSERT INTO t (u, a) SELECT 3, 1 ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(t.id)",
			"INSERT IGNORE INTO t (u) SELECT a / 10 FROM src ORDER BY a", "REPLACE INTO t (u, a) SELECT a / 10, fi(a) FROM src ORDER BY a", "INSERT INTO t (u, a) SELECT u + 1, a FROM t ORDER BY id", "INSERT INTO t (s) TABLE vl", "INSERT INTO t (s) SELECT s FROM src UNION SELECT 'x' ORDER BY 1",
			"INSERT INTO t (u) SELECT a FROM src ORDER BY a FOR UPDATE", "INSERT INTO t (u) SELECT a FROM src ORDER BY a LIMIT 2", "INSERT INTO t (a) SELECT 1 WHERE FALSE", "INSERT INTO t SELECT NULL, a, NULL, s FROM src ORDER BY a",
			"UPDATE t SET id = id WHERE u = 1", "INSERT INTO t (u, a) SELECT a, 1 FROM src ORDER BY a ON DUPLICATE KEY UPDATE a = a + 1", "INSERT INTO t (a, s) SELECT a, s FROM src WHERE id IS NULL")
	}
	text := g.pick(all...)
	if g.isView && strings.Contains(text, "SELECT") {
		text, _, _ = strings.Cut(text, " ON DUPLICATE")
	}
	return q(text)
}

// inTransaction returns a statement about transactions and locks.
func (g *generator) inTransaction() step {
	all := []string{"SAVEPOINT sp", "ROLLBACK TO SAVEPOINT sp", "RELEASE SAVEPOINT sp"}
	if !g.world.tx {
		all = append(all, "BEGIN", "START TRANSACTION", "START TRANSACTION READ ONLY", "COMMIT", "ROLLBACK", "COMMIT", "ROLLBACK", "SET autocommit = 0", "SET autocommit = 1", "COMMIT AND CHAIN",
			"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "SET TRANSACTION READ ONLY")
	}
	return q(g.pick(all...))
}

// several returns a string of several statements.
func (g *generator) several() step {
	var st step
	for i := range 2 + g.IntN(3) {
		part := g.insert()
		if g.one(3) {
			part = q(g.pick("USE {second}", "USE {db}", "CREATE TEMPORARY TABLE IF NOT EXISTS made (a INT)", "SET sql_select_limit = DEFAULT", "BEGIN", "COMMIT", "SAVEPOINT sp", "ROLLBACK", "SET @v = 1", "SET sql_mode = 'ANSI_QUOTES'", "SET sql_mode = 'NO_BACKSLASH_ESCAPES'", "SET NAMES latin1", "SELECT 1",
				"INSERT INTO free (a) VALUES (1)", "SELECT "+cmp.Or(g.ifID("LAST_INSERT_ID()"), "2"), "INSERT INTO child (t_id) VALUES ("+g.ifID("LAST_INSERT_ID() + ")+"0)", "DO 1", "UPDATE t SET a = 1 WHERE u = 1",
				"INSERT INTO \"t\" (a) VALUES (1)", "INSERT INTO t (s) VALUES ('\\'); INSERT INTO t (a) VALUES (1); -- '", "CALL pf()", "INSERT INTO child (t_id) VALUES ("+g.ifID("fl() + ")+"0)"))
		}
		if i > 0 {
			separator := g.pick("; ", ";\n", " ; ")
			if strings.Contains(st.text, "-- '") { // it may be a comment
				separator = ";\n"
			}
			st.text += separator
		}
		part.text = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(part.text, " -- end"), " # end ?"), ";")
		st.text, st.args = st.text+part.text, append(st.args, part.args...)
		st.marks, st.parts = st.marks+part.marks, append(st.parts, part)
	}
	return st
}

// typedInsert returns an INSERT … SELECT, or an INSERT of values, with values of any type.
func (g *generator) typedInsert() step {
	st := step{}
	bind := func(v any) string { st.args = append(st.args, v); return "?" }
	verb := g.pick("INSERT", "INSERT", "INSERT", "INSERT IGNORE", "REPLACE")
	columns := []string{"v", "w"}[g.IntN(2):][:1]
	if g.one(3) {
		columns = []string{"v", "w"}
	}
	table := "d"
	if g.one(3) {
		table, columns = "t", []string{g.pick("a", "s", "u")}
	}
	if !g.noID && g.one(10) && verb != "REPLACE" {
		columns = append(columns, "id")
		g.dirty = true
	}
	if g.one(5) {
		if slices.Contains(columns, "id") {
			st.marks += " dirty key"
		}
		values := make([]string, len(columns))
		for i := range values {
			values[i] = g.literal(bind)
		}
		st.text = fmt.Sprintf("%s INTO %s (%s) VALUES (%s)", verb, table, strings.Join(columns, ", "), strings.Join(values, ", "))
		return st
	}
	c := g.world.typed[g.IntN(len(g.world.typed))]
	st.marks = " typed " + c.name + " into " + table + "." + strings.Join(columns, ",") + " as " + g.world.columns[0] + "," + g.world.columns[1]
	if slices.Contains(columns, "id") {
		st.marks += " dirty key"
	}
	exprs, one := make([]string, len(columns)), false
	for i := range exprs {
		if exprs[i] = g.typedExpression(c); g.one(4) {
			exprs[i] = g.literal(bind)
		}
		one = one || strings.Contains(exprs[i], "MAX(") || strings.Contains(exprs[i], "MIN(") || strings.Contains(exprs[i], "GROUP_CONCAT(") || strings.Contains(exprs[i], "SUM(")
	}
	from := g.pick(" FROM ty", " FROM ty", " FROM ty", " FROM (SELECT * FROM ty) x")
	switch {
	case one:
		from += g.pick("", " WHERE n < 3", " GROUP BY n ORDER BY n")
	default:
		from += g.pick(" WHERE n = 2", " WHERE n = 3", " WHERE n = 4", " WHERE n = 5", " WHERE n < 4 ORDER BY n", " ORDER BY n", " WHERE n IN (1, 5) ORDER BY n", " WHERE "+c.name+" IS NULL ORDER BY n", " WHERE n = f1(1)")
	}
	if g.one(15) {
		from += " UNION ALL SELECT " + strings.Repeat("NULL, ", len(columns)-1) + g.pick("NULL", "1", "'x'")
		from = strings.Replace(from, " ORDER BY n", "", 1)
	}
	st.text = fmt.Sprintf("%s INTO %s (%s) SELECT %s%s", verb, table, strings.Join(columns, ", "), strings.Join(exprs, ", "), from)
	if verb == "INSERT" && table == "t" && !g.isView && g.one(4) {
		st.text += " ON DUPLICATE KEY UPDATE t.a = VALUES(a), t.s = VALUES(s)"
	}
	return st
}

// insertSelect returns an INSERT … SELECT with a query of any form.
func (g *generator) insertSelect() step {
	st := step{}
	items := map[string][]string{
		"a": {"a", "a", "a + 1", "?", "1", "NULL", "f1(a)", "(SELECT MAX(a) FROM {db}.src)", "ROW_NUMBER() OVER (ORDER BY a)", "COALESCE(a, 3)", "13", "fk(a)", "@n", "IF(a > 20, NULL, a)"},
		"u": {"a / 10", "a / 10", "a", "NULL", "ROW_NUMBER() OVER (ORDER BY a)", "a % 7", "?", "1", "LAG(a) OVER (ORDER BY a)", "SUM(a) OVER (ORDER BY a)"},
		"s": {"s", "s", "'x'", "?", "CONCAT(s, '!')", "NULL", "CAST(a AS CHAR)", "REPEAT('x', a)", "'a' 'b'", cmp.Or(g.ifID("LAST_INSERT_ID()"), "'y'")},
	}
	columns := []string{"a", "u", "s"}
	g.Shuffle(len(columns), func(i, j int) { columns[i], columns[j] = columns[j], columns[i] })
	columns = columns[:1+g.IntN(3)]
	if !g.noID && g.one(4) { // a text key of a query is explicit
		items["id"] = []string{"NULL", "0", "NULL"}
		if g.one(3) {
			items["id"] = []string{"a", "a + 1", "id", "COALESCE(id, 50)", "ROW_NUMBER() OVER (ORDER BY a)", "CAST(a AS CHAR)", "a + 0.5", "?"}
			g.dirty, st.marks = true, " dirty key"
		}
		columns = slices.Insert(columns, g.IntN(len(columns)+1), "id")
	}
	core := func() string {
		var list []string
		for _, c := range columns {
			item := g.pick(items[c]...)
			if item == "?" {
				st.args = append(st.args, g.IntN(6))
			}
			list = append(list, item)
		}
		return "SELECT " + g.pick("", "", "", "", "DISTINCT ", "ALL ", "SQL_SMALL_RESULT ", "STRAIGHT_JOIN ") + strings.Join(list, ", ") +
			g.pick(" FROM src", " FROM src", " FROM {db}.src x", " FROM (SELECT * FROM src) x", " FROM t", " FROM vs", " FROM src JOIN (SELECT 1 AS one) y ON TRUE", " FROM {second}.t", " FROM DUAL") +
			g.pick("", "", " WHERE a > 10", " WHERE a > 10", " WHERE f1(a) < 30", " WHERE FALSE", " WHERE EXISTS (SELECT 1 FROM {db}.src)")
	}
	end := g.pick("", " ORDER BY 1", " ORDER BY 1", " ORDER BY a", " ORDER BY 1 LIMIT 2", " LIMIT 1", " ORDER BY 1 LIMIT 2 OFFSET 1", " GROUP BY a, s, id", " GROUP BY a, s, id WITH ROLLUP", " GROUP BY a, s, id HAVING a > 10",
		" ORDER BY a DESC", " ORDER BY 1 FOR UPDATE", " ORDER BY 1 LOCK IN SHARE MODE", " WINDOW w AS (ORDER BY a)")
	query, all := "", strings.Join([]string{"1", "2", "3", "4"}[:len(columns)], ", ") // an order without ties
	end = strings.ReplaceAll(end, "ORDER BY 1", "ORDER BY "+all)
	switch g.IntN(9) {
	case 0:
		query = core() + g.pick(" UNION ALL ", " UNION ", " EXCEPT ", " INTERSECT ") + core() + g.pick("", " ORDER BY "+all, " ORDER BY "+all+" LIMIT 3")
	case 1:
		query = "(" + core() + end + ")" + g.pick("", "", " UNION ALL (SELECT "+strings.Repeat("NULL, ", len(columns)-1)+"NULL)", " ORDER BY "+all, " LIMIT 2")
	case 2:
		query = "WITH c AS (" + core() + end + ") SELECT * FROM c" + g.pick("", " ORDER BY "+all, " UNION ALL SELECT * FROM c")
	case 3:
		query = "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT " + strings.Repeat("n, ", len(columns)-1) + "n FROM r" + g.pick("", " ORDER BY 1 DESC")
	case 4:
		query = g.pick("TABLE {db}.one", "VALUES (1), (2)", "VALUES ROW(1), ROW(2)", "VALUES ROW(3)", "SELECT * FROM {db}.one", "SELECT * FROM src", "SELECT x.* FROM src x ORDER BY a")
	default:
		query = strings.Replace(core()+end, "SELECT ", "SELECT "+g.pick("", "", "", "HIGH_PRIORITY ", "SQL_CALC_FOUND_ROWS "), 1)
	}
	if strings.Contains(query, "*") && slices.Contains(columns, "id") {
		st.marks = " dirty key"
	}
	if strings.Contains(query, "FROM vs") || strings.Contains(query, "HIGH_PRIORITY") { // MySQL refuses two locks of a table
		query = strings.ReplaceAll(strings.ReplaceAll(query, " FOR UPDATE", ""), " LOCK IN SHARE MODE", "")
	}
	st.text = g.pick("INSERT", "INSERT", "INSERT", "INSERT IGNORE", "REPLACE") + " INTO " + g.pick("t", "t", "t", "{second}.t") + " (" + strings.Join(columns, ", ") + ") " + query
	if strings.HasPrefix(st.text, "INSERT") && !g.isView && !readsTarget.MatchString(query) && g.one(4) {
		st.text += " ON DUPLICATE KEY UPDATE " + g.pick("t.a = 5", "t.a = VALUES(u)", "t.a = NULL", "t.s = 'dup', t.a = t.a + 1")
	}
	if g.Returning && g.one(12) {
		st.text += " RETURNING id"
	}
	return st
}

// readsTarget matches a query in which columns of t are ambiguous in ON DUPLICATE KEY UPDATE.
var readsTarget = regexp.MustCompile(`FROM (\{second\}\.)?t\b`)

// typedExpression returns an expression of a column of table ty.
func (g *generator) typedExpression(c typedColumn) string {
	if g.one(2) {
		return c.name
	}
	all := []string{"COALESCE(?, ?)", "IFNULL(?, NULL)", "MAX(?)", "MIN(?)", "(SELECT MIN(y.?) FROM ty y)", "CASE WHEN n > 1 THEN ? END", "IF(n > 1, ?, NULL)", "IF(n > 1, ?, 0)", "NULLIF(?, 5)", "GREATEST(?, ?)", "LEAST(?, 1)",
		"CAST(? AS SIGNED)", "CAST(? AS UNSIGNED)", "CAST(? AS CHAR)", "CAST(? AS BINARY)", "CAST(? AS DECIMAL(20,3))", "CAST(? AS DATE)", "CAST(? AS DATETIME)", "CAST(? AS TIME)", "CAST(? AS CHAR(2))",
		"? + 0", "CONCAT(?)", "CONCAT(?, '')", "-?", "? * 1.0", "HEX(?)", "LENGTH(?)", "? IS NULL", "? DIV 2", "ROUND(?)", "ABS(?)", "? | 0", "LEFT(?, 2)", "UPPER(?)", "TRIM(?)", "GROUP_CONCAT(? ORDER BY n)", "SUM(?)",
		"? = 0", "? / 0", "DATE_ADD(?, INTERVAL 1 DAY)", "DATE(?)", "CONVERT(? USING utf8mb4)", "CONVERT(? USING latin1)", "IFNULL(?, 1)", "IFNULL(?, 'x')", "NOT ?", "BINARY ?", "SUBSTRING(?, 1, 3)", "ELT(1, ?)", "fm() + n",
		"JSON_OBJECT('a', ?)", "JSON_ARRAY(?)", "LAG(?) OVER (ORDER BY n)", "FIRST_VALUE(?) OVER (ORDER BY n)"}
	if g.world.features.mySQL {
		all = append(all, "ANY_VALUE(?)", "CAST(? AS DOUBLE)", "CAST(? AS YEAR)")
	}
	return strings.ReplaceAll(g.pick(all...), "?", c.name)
}

// literal returns a literal, an argument, or an expression that may warn.
func (g *generator) literal(bind func(any) string) string {
	if g.one(4) {
		return bind([]any{1, "abc", "12", []byte("12"), []byte{0, 255}, 1.5, float32(0.1), true, nil, uint64(1 << 63), int64(-1), time.Date(2026, 1, 2, 3, 4, 5, 123456000, time.UTC), "2026-01-02", "", "é", "5x"}[g.IntN(16)])
	}
	return g.pick("0x41", "X'41'", "b'1'", "x''", "0x", "TRUE", "1e0", "1.10", "'abc'", "'5x'", "''", "NULL", "DATE '2026-01-01'", "TIMESTAMP '2026-01-01 01:02:03.456'", "TIME '01:02:03'", "N'x'", "_latin1 X'E9'", "1/0", "1/3",
		"CAST('abc' AS SIGNED)", "'5x' + 0", "STR_TO_DATE('x', '%Y')", "DATE_ADD('9999-12-31', INTERVAL 1 DAY)", "CAST('2026-13-01' AS DATE)", "SQRT(-1)", "LOG(0)", "18446744073709551615", "9223372036854775808", "-9223372036854775809",
		"POW(10, 400)", "'a' = 0", "INET_ATON('x')", "CONVERT('x' USING latin1)", "CHAR(65)", "CHAR(255)", "DATE('x')", "DATEDIFF('x', '2026-01-01')", "UNIX_TIMESTAMP('x')", "LAST_DAY('x')", "CAST(-1 AS UNSIGNED)", "CAST(1e30 AS SIGNED)",
		"CAST('2026-01-01' AS DATETIME)", "CONVERT('abcdef', CHAR(2))", "0b101", "_binary'x'", "'a' 'b'", "5 MOD 0", "0 = 'x'", "1 AND 'y'", "HEX(255)", "REPEAT('x', 70)", "1 IN ('a', 'b')", "DATE '2026-01-01' + 0", "TIME '01:02:03' + 0",
		"f1('x')", "EXTRACT(DAY FROM 'x')", "MAKEDATE(2026, 400)", "SEC_TO_TIME(99999999)", "1 + 'a'", "CAST('12:99' AS TIME)", "CAST(300 AS CHAR(1))", "BINARY 'q'", "1.5e-400", "- - 3", "FORMAT(1234.5, 1)", "YEAR('x')", "TIMEDIFF('x', '1')", "LPAD('x', 3, 'é')")
}
