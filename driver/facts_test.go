package driver

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	testserver "github.com/shardkey/shardkey/internal/test/server"
)

// keyReport is what a program learns of the keys of an INSERT.
type keyReport struct {
	last   int64 // LastInsertId
	keys   string
	lastID string // LAST_INSERT_ID()
}

func (r keyReport) String() string {
	return fmt.Sprintf("LastInsertId %d, keys %s, LAST_INSERT_ID() %s", r.last, r.keys, r.lastID)
}

// reportKeys executes an INSERT and returns what is reported.
func reportKeys(t *testing.T, c *sql.Conn, query string, args ...any) keyReport {
	t.Helper()
	var keys Keys
	res := must(c.ExecContext(WithKeys(t.Context(), &keys), query, args...))(t, query)
	r := keyReport{last: must(res.LastInsertId())(t), keys: fmt.Sprint(keys.Values())}
	noError(t, c.QueryRowContext(t.Context(), "SELECT LAST_INSERT_ID()").Scan(&r.lastID))
	return r
}

// twoDatabases opens a new database with a rule, and returns its name, that of a second one, a
// connection, and the plain driver.
func twoDatabases(t *testing.T, columns ...string) (first, second string, c *sql.Conn, db, plain *sql.DB) {
	t.Helper()
	if columns == nil {
		columns = []string{"t.id"}
	}
	db, plain = openScripted(t, generatorRule(t, counted(), columns...), "multiStatements=true")
	first = column(t, plain, "SELECT DATABASE()")
	second = must(mysql.ParseDSN(testserver.Database(t)))(t).DBName
	return first, second, pinned(t, db), db, plain
}

const setsKey = "CREATE TRIGGER %s.tr BEFORE INSERT ON %[1]s.t FOR EACH ROW SET NEW.id = 500 + NEW.a"

// The facts about a table are those of the database that the session uses.
func TestFacts_database(t *testing.T) { onEach(t, testFacts_database) }

func testFacts_database(t *testing.T) {
	for _, use := range []string{"USE %s", "/* x */ USE %s;", "DO 1; USE %s", "/*!50000 USE %s */", "prepared USE %s"} {
		first, second, c, _, plain := twoDatabases(t)
		for _, database := range []string{first, second} {
			mustExec(t, plain, "CREATE TABLE "+database+".t (id BIGINT PRIMARY KEY, a INT)")
		}
		mustExec(t, plain, fmt.Sprintf(setsKey, second))
		enter := func(database string) {
			query, prepared := strings.CutPrefix(fmt.Sprintf(use, database), "prepared ")
			if !prepared {
				mustExec(t, c, query)
				return
			}
			st, err := c.PrepareContext(t.Context(), query)
			if err != nil {
				mustExec(t, c, query) // the server doesn't prepare it
				return
			}
			defer st.Close()
			must(st.Exec())(t)
		}
		for round := range 2 {
			enter(first)
			have := reportKeys(t, c, "INSERT INTO t (a) VALUES (?)", 2*round)
			key := fmt.Sprint(have.last)
			equal(t, have, keyReport{have.last, "[" + key + "]", key}, use, first)
			equal(t, number(t, plain, "SELECT COUNT(*) FROM "+first+".t WHERE id = "+key), int64(1), "rows with the key")
			enter(second)
			have = reportKeys(t, c, "INSERT INTO t (a) VALUES (?)", 2*round+1)
			equal(t, have.String(), keyReport{0, "[<nil>]", have.lastID}.String(), use, second)
		}
	}
}

// The types too: what a column of one database stores, that of the other may not.
func TestFacts_typesOfDatabase(t *testing.T) { onEach(t, testFacts_typesOfDatabase) }

func testFacts_typesOfDatabase(t *testing.T) {
	for _, typ := range []string{"BIGINT UNSIGNED", "INT", "VARCHAR(40)", "BIGINT, n INT NOT NULL AUTO_INCREMENT UNIQUE"} {
		db, plain := openScripted(t, generatorRule(t, numbered(func(i int) int64 { return 1<<40 + int64(i) }), "t.id"))
		first, second := column(t, plain, "SELECT DATABASE()"), must(mysql.ParseDSN(testserver.Database(t)))(t).DBName
		mustExec(t, plain, "CREATE TABLE "+first+".t (id BIGINT PRIMARY KEY, a INT)")
		mustExec(t, plain, "CREATE TABLE "+second+".t (id "+typ+", a INT, PRIMARY KEY (id))")
		c := pinned(t, db)
		mustExec(t, c, "SET sql_mode = ''")
		for _, query := range []string{"INSERT INTO t (a) VALUES (1)", "INSERT INTO t (id, a) VALUES (?, 1)", "INSERT IGNORE INTO t (id, a) VALUES (-7, 1), (NULL, 2)"} {
			args := []any{-7}[:strings.Count(query, "?")]
			mustExec(t, c, "USE "+first)
			_, _ = c.ExecContext(t.Context(), query, args...)
			mustExec(t, c, "USE "+second)
			behind, behindErr := c.ExecContext(t.Context(), query, args...)
			fresh := pinned(t, mustOpenFresh(t, db)) // which never saw the other table
			mustExec(t, fresh, "SET sql_mode = ''")
			mustExec(t, fresh, "USE "+second)
			mustExec(t, plain, "DELETE FROM "+second+".t")
			alone, aloneErr := fresh.ExecContext(t.Context(), query, args...)
			if (behindErr == nil) != (aloneErr == nil) {
				t.Errorf("%s: %s\nhave: %v\nwant: %v", typ, query, behindErr, aloneErr)
			} else if behindErr == nil {
				have, want := must(behind.LastInsertId())(t), must(alone.LastInsertId())(t)
				equal(t, have < 1<<40, want < 1<<40, typ, query)
			}
			equal(t, number(t, plain, "SELECT COUNT(*) FROM "+second+".t WHERE id = '0'"), int64(0), typ, query, "rows with the key 0")
			mustExec(t, plain, "DELETE FROM "+first+".t")
			mustExec(t, plain, "DELETE FROM "+second+".t")
		}
	}
}

// mustOpenFresh opens the database of another connector with the same rule.
func mustOpenFresh(t *testing.T, db *sql.DB) *sql.DB {
	t.Helper()
	c := ConnectorOf(db)
	fresh := sql.OpenDB(mustConnector(t, c.base, c.Rule()))
	t.Cleanup(func() { check(t, fresh.Close()) })
	return fresh
}

// Facts of another process's DDL are known when the old ones are too old.
func TestFacts_alteredByOthers(t *testing.T) { onEach(t, testFacts_alteredByOthers) }

func testFacts_alteredByOthers(t *testing.T) {
	first, _, c, _, plain := twoDatabases(t)
	mustExec(t, plain, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	prepared := must(c.PrepareContext(t.Context(), "INSERT INTO t (a) VALUES (?)"))(t)
	defer prepared.Close()
	reportKeys(t, c, "INSERT INTO t (a) VALUES (?)", 1)
	mustExec(t, plain, fmt.Sprintf(setsKey, first))
	mustExec(t, c, endsFacts)
	have := reportKeys(t, c, "INSERT INTO t (a) VALUES (?)", 2)
	equal(t, have.last, int64(0), "LastInsertId")
	equal(t, must(must(prepared.Exec(3))(t).LastInsertId())(t), int64(0), "LastInsertId of the prepared statement")
	mustExec(t, plain, "DROP TRIGGER tr")
	mustExec(t, plain, "ALTER TABLE t ADD n INT NOT NULL AUTO_INCREMENT UNIQUE")
	mustExec(t, c, endsFacts)
	have = reportKeys(t, c, "INSERT INTO t (a) VALUES (?)", 4)
	equal(t, fmt.Sprint(have.last), have.lastID, "LastInsertId and LAST_INSERT_ID()")
	mustExec(t, plain, "ALTER TABLE t DROP n, MODIFY id BIGINT UNSIGNED")
	mustExec(t, c, endsFacts)
	mustExec(t, c, "SET sql_mode = ''")
	_, err := c.ExecContext(t.Context(), "INSERT INTO t (id, a) VALUES (?, 5)", -7)
	t.Log(err)
	equal(t, number(t, plain, "SELECT COUNT(*) FROM t WHERE id = 0"), int64(0), "rows with the key 0")
}

// An INSERT into a missing table leaves no facts.
func TestFacts_missingTable(t *testing.T) { onEach(t, testFacts_missingTable) }

func testFacts_missingTable(t *testing.T) {
	first, _, c, _, plain := twoDatabases(t)
	for _, query := range []string{"INSERT INTO t (a) VALUES (1)", "INSERT INTO t (id, a) VALUES (5, 1)", "INSERT INTO t VALUES (NULL, 1)"} {
		_, err := c.ExecContext(t.Context(), query)
		failsWith(t, err, "1146")
	}
	mustExec(t, plain, "CREATE TABLE t (id INT PRIMARY KEY, a INT)")
	mustExec(t, plain, fmt.Sprintf(setsKey, first))
	have := reportKeys(t, c, "INSERT INTO t (a) VALUES (1)")
	equal(t, have.last, int64(0), "LastInsertId")
	equal(t, have.keys, "[<nil>]")
}

// A session with temporary tables hears of other sessions' DDL.
func TestFacts_temporaryTables(t *testing.T) { onEach(t, testFacts_temporaryTables) }

func testFacts_temporaryTables(t *testing.T) {
	first, _, c, db, plain := twoDatabases(t)
	mustExec(t, plain, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT UNIQUE)")
	hiding := must(db.Conn(t.Context()))(t)
	defer hiding.Close()
	mustExec(t, hiding, "CREATE TEMPORARY TABLE other (a INT)")
	reportKeys(t, c, "INSERT INTO t (a) VALUES (1)")
	reportKeys(t, hiding, "INSERT INTO t (a) VALUES (2)")
	mustExec(t, c, fmt.Sprintf(setsKey, first))
	equal(t, reportKeys(t, hiding, "INSERT INTO t (a) VALUES (3)").last, int64(0), "LastInsertId")
	mustExec(t, c, "DROP TRIGGER tr")

	const twice = "INSERT IGNORE INTO t (a) VALUES (?), (?)"
	mustExec(t, hiding, "CREATE TEMPORARY TABLE t (id BIGINT PRIMARY KEY, n INT NOT NULL AUTO_INCREMENT UNIQUE, a INT UNIQUE)")
	reportKeys(t, c, twice, 10, 11)
	have := reportKeys(t, hiding, twice, 10, 11)
	equal(t, fmt.Sprint(have.last), have.lastID, "LastInsertId and LAST_INSERT_ID()")
}

// DDL doesn't change what an execution that is under way concludes.
func TestFacts_alteredMeanwhile(t *testing.T) { onEach(t, testFacts_alteredMeanwhile) }

func testFacts_alteredMeanwhile(t *testing.T) {
	_, _, c, db, plain := twoDatabases(t)
	mustExec(t, plain, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	mustExec(t, plain, "CREATE TABLE u (a INT)")
	mustExec(t, plain, "CREATE TRIGGER tr BEFORE INSERT ON t FOR EACH ROW BEGIN DO GET_LOCK(CONCAT(DATABASE(), '.x'), 60); SET NEW.id = 500 + NEW.a; END")
	reportKeys(t, c, "INSERT INTO t (a) VALUES (1)")
	mustExec(t, c, "DO RELEASE_ALL_LOCKS()")
	holding := must(plain.Conn(t.Context()))(t)
	mustExec(t, holding, "DO GET_LOCK(CONCAT(DATABASE(), '.x'), 60)")
	other := must(db.Conn(t.Context()))(t)
	defer other.Close()
	done := make(chan keyReport)
	go func() { done <- reportKeys(t, c, "INSERT INTO t (a) VALUES (2)") }()
	for number(t, plain, "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE LIKE 'User lock%' AND DB = DATABASE()") == 0 {
	}
	for _, ddl := range []string{"CREATE TABLE zz (a INT)", "CREATE TEMPORARY TABLE zzz (a INT)", "ALTER TABLE u ADD b INT"} {
		mustExec(t, other, ddl)
	}
	noError(t, holding.Close())
	mustExec(t, plain, "DO 1")
	mustExec(t, plain, "DO RELEASE_ALL_LOCKS()")
	have := <-done
	equal(t, have.last, int64(0), "LastInsertId")
	equal(t, have.keys, "[<nil>]")
}

// A view hides what its table does with keys, so the rows are looked up.
func TestFacts_view(t *testing.T) { onEach(t, testFacts_view) }

func testFacts_view(t *testing.T) {
	for _, c := range []struct{ ddl, trigger string }{
		{"CREATE TABLE base (id BIGINT PRIMARY KEY, a INT UNIQUE)", ""},
		{"CREATE TABLE base (id BIGINT PRIMARY KEY, a INT UNIQUE)", "CREATE TRIGGER tr BEFORE INSERT ON base FOR EACH ROW SET NEW.id = 500 + NEW.a"},
		{"CREATE TABLE base (id BIGINT PRIMARY KEY, a INT UNIQUE, n INT NOT NULL AUTO_INCREMENT UNIQUE)", ""},
	} {
		_, _, ours, _, plain := twoDatabases(t)
		mustExec(t, plain, c.ddl)
		mustExec(t, plain, "CREATE VIEW t AS SELECT id, a FROM base")
		if c.trigger != "" {
			mustExec(t, plain, c.trigger)
		}
		for i, query := range []string{"INSERT INTO t (a) VALUES (?)", "INSERT INTO t (a) VALUES (?), (?)", "INSERT INTO t (id, a) VALUES (?, ?)",
			"INSERT IGNORE INTO t (a) VALUES (?), (?)", "INSERT INTO t (a) VALUES (?) ON DUPLICATE KEY UPDATE a = a + 100"} {
			args := []any{2*i + 1, 2*i + 2}[:strings.Count(query, "?")]
			if strings.Contains(query, "id,") {
				args[0] = nil
			}
			have := reportKeys(t, ours, query, args...)
			switch {
			case c.trigger != "":
				equal(t, have.last, int64(0), query)
				equal(t, strings.Trim(have.keys, "[<nil>] "), "", query)
			default:
				equal(t, fmt.Sprint(have.last), have.lastID, query)
				keys := strings.Fields(strings.Trim(have.keys, "[]"))
				equal(t, number(t, plain, "SELECT COUNT(*) FROM base WHERE id IN ("+strings.Join(keys, ",")+")"), int64(len(keys)), query, have)
			}
		}
	}
}

// The check query sees the rows of now.
func TestFacts_asOf(t *testing.T) {
	onEach(t, func(t *testing.T) {
		if !testserver.Has(t, testserver.MariaDB, "system versioning") {
			return
		}
		_, _, c, _, plain := twoDatabases(t)
		mustExec(t, plain, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT UNIQUE, b INT) WITH SYSTEM VERSIONING")
		mustExec(t, plain, "INSERT INTO t (id, a) VALUES (5, 50)")
		mustExec(t, c, "SET system_versioning_asof = '2020-01-01 00:00:00'")
		have := reportKeys(t, c, "INSERT IGNORE INTO t (a) VALUES (50), (51)")
		key := fmt.Sprint(have.last)
		equal(t, have, keyReport{have.last, "[<nil> " + key + "]", key})
		equal(t, column(t, plain, "SELECT id FROM t WHERE a = 51"), key)
	})
}

// A generated invisible primary key that the session hides has AUTO_INCREMENT.
func TestFacts_invisibleKey(t *testing.T) { onEach(t, testFacts_invisibleKey) }

func testFacts_invisibleKey(t *testing.T) {
	if !testserver.Has(t, testserver.MySQL, "invisible primary keys") {
		return
	}
	_, _, c, _, plain := twoDatabases(t)
	own := must(plain.Conn(t.Context()))(t)
	defer own.Close()
	mustExec(t, own, "SET sql_generate_invisible_primary_key = ON")
	mustExec(t, own, "CREATE TABLE t (id BIGINT NOT NULL, a INT, UNIQUE (a), KEY (id))")
	for _, shown := range []string{"OFF", "ON"} {
		mustExec(t, c, endsFacts)
		mustExec(t, c, "SET show_gipk_in_create_table_and_information_schema = "+shown)
		for i, query := range []string{"INSERT INTO t (a) VALUES (?)", "INSERT INTO t (a) VALUES (?), (?)"} {
			n := len(shown)*100 + 10*i
			have := reportKeys(t, c, query, []any{n, n + 1}[:i+1]...)
			equal(t, fmt.Sprint(have.last), have.lastID, shown, query)
			equal(t, have.lastID, column(t, plain, fmt.Sprintf("SELECT my_row_id FROM t WHERE a = %d", n)), shown, query)
		}
	}
}

// An upsert of several rows reports no value of another AUTO_INCREMENT column as a row's key, even if it
// is the key of a row.
func TestFacts_upsertBesideAutoIncrement(t *testing.T) {
	onEach(t, testFacts_upsertBesideAutoIncrement)
}

func testFacts_upsertBesideAutoIncrement(t *testing.T) {
	for _, values := range [][]int{{50, 60}, {50, 61}, {61, 50}, {61, 62, 50}, {61, 50, 60}} {
		for _, ignore := range []string{"", "IGNORE "} {
			_, _, c, _, plain := twoDatabases(t)
			mustExec(t, plain, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT UNIQUE, b INT, n BIGINT NOT NULL AUTO_INCREMENT UNIQUE)")
			mustExec(t, plain, "INSERT INTO t (id, a, b, n) VALUES (5, 50, 1, 7), (8, 60, 1, 6), (9, 90, 1, 70)")
			for id := 71; id < 76; id++ { // the next values of n are keys
				mustExec(t, plain, fmt.Sprintf("INSERT INTO t (id, a, b, n) VALUES (%d, %[1]d00, 1, %d)", id, id-50))
			}
			query := fmt.Sprintf("INSERT %sINTO t (a) VALUES (%d)", ignore, values[0])
			for _, a := range values[1:] {
				query += fmt.Sprintf(", (%d)", a)
			}
			var keys Keys
			must(c.ExecContext(WithKeys(t.Context(), &keys), query+" ON DUPLICATE KEY UPDATE b = b + 1"))(t)
			for i, key := range keys.Values() {
				if key != nil {
					equal(t, fmt.Sprint(key), column(t, plain, fmt.Sprintf("SELECT id FROM t WHERE a = %d", values[i])), query, keys.Values())
				}
			}
		}
	}
}

// Without a key that the column can hold, no row is inserted in a lax sql_mode either.
func TestFacts_keyOfAnotherType(t *testing.T) { onEach(t, testFacts_keyOfAnotherType) }

func testFacts_keyOfAnotherType(t *testing.T) {
	types := []string{"ENUM('x','y')", "SET('x','y')", "YEAR", "DATE", "DATETIME", "TIMESTAMP", "TIME", "BIT(8)"}
	if testserver.KindOf(t) == testserver.KindMariaDB {
		types = append(types, "INET6", "UUID")
		if testserver.Name(t) != "mariadb-10.6" {
			types = append(types, "INET4")
		}
	}
	for _, typ := range types {
		for _, made := range []any{int64(1 << 50), "not a key of this type"} {
			db, plain := openScripted(t, generatorRule(t, listed(made), "t.id"))
			mustExec(t, plain, "CREATE TABLE t (id "+typ+" NOT NULL PRIMARY KEY, a INT)")
			c := pinned(t, db)
			mustExec(t, c, "SET sql_mode = ''")
			_, err := c.ExecContext(t.Context(), "INSERT INTO t (a) VALUES (1)")
			if refused := (*StatementError)(nil); !errors.As(err, &refused) || refused.Reason != ReasonNarrowColumn {
				t.Errorf("%s, %T\nhave: %v", typ, made, err)
			}
			equal(t, number(t, plain, "SELECT COUNT(*) FROM t"), int64(0), typ)
		}
	}
}

// MariaDB doesn't count the rows of a system-versioned table that a REPLACE replaces.
func TestFacts_replacesVersionedRows(t *testing.T) { onEach(t, testFacts_replacesVersionedRows) }

func testFacts_replacesVersionedRows(t *testing.T) {
	if !testserver.Has(t, testserver.MariaDB, "system versioning") {
		return
	}
	_, _, c, _, plain := twoDatabases(t)
	mustExec(t, plain, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT UNIQUE) WITH SYSTEM VERSIONING")
	for _, query := range []string{"VALUES (1), (1), (2)", "SELECT 1 UNION ALL SELECT 1 UNION ALL SELECT 2"} {
		have := reportKeys(t, c, "REPLACE INTO t (a) "+query)
		equal(t, have.keys, "[<nil> "+column(t, plain, "SELECT GROUP_CONCAT(id ORDER BY a SEPARATOR ' ') FROM t")+"]", query)
	}
}

// A statement that was prepared for a view isn't executed after a temporary table has hidden the view:
// the servers would insert into the view's table.
func TestFacts_temporaryTableHidesView(t *testing.T) { onEach(t, testFacts_temporaryTableHidesView) }

func testFacts_temporaryTableHidesView(t *testing.T) {
	_, _, c, _, plain := twoDatabases(t)
	mustExec(t, plain, "CREATE TABLE base (id BIGINT PRIMARY KEY, a INT)")
	mustExec(t, plain, "CREATE VIEW t AS SELECT * FROM base")
	for _, create := range []string{"", "CREATE TEMPORARY TABLE t (id BIGINT PRIMARY KEY, a INT)", "DROP TEMPORARY TABLE t"} {
		if create != "" {
			mustExec(t, c, create)
		}
		for range 3 {
			mustExec(t, c, "INSERT INTO t (a) VALUES (?)", 1)
		}
	}
	equal(t, number(t, plain, "SELECT COUNT(*) FROM base"), int64(6))
}
