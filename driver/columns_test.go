package driver

import (
	"errors"
	"fmt"
	"strings"

	"database/sql"
	"testing"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/internal/testserver"
)

// connectorOf is the connector of an open database.
func connectorOf(t *testing.T, db *sql.DB) (c *Connector) {
	t.Helper()
	conn := must(db.Conn(t.Context()))(t)
	defer conn.Close()
	noError(t, conn.Raw(func(raw any) error { c = raw.(interface{ Connector() *Connector }).Connector(); return nil }))
	return c
}

// later lets the columns that a connector has read be older than they may be.
func later(t *testing.T, db *sql.DB) {
	t.Helper()
	connectorOf(t, db).known.ExpireColumns()
}

const (
	keyFirst = "(id BIGINT PRIMARY KEY, a INT)"
	keyLast  = "(a INT, id BIGINT PRIMARY KEY)"
)

// Columns that a connection itself alters are known at once.
func TestColumns_alteredByOwnConnection(t *testing.T) {
	if testserver.Each(t, TestColumns_alteredByOwnConnection) {
		return
	}
	ours, plain := one(t, "multiStatements=true")
	mustExec(t, plain, "CREATE PROCEDURE alter_it() ALTER TABLE ruled MODIFY a INT AFTER id")
	mustExec(t, ours, "INSERT INTO ruled VALUES (NULL, 1)")
	inserted := 1
	last := true
	for _, alter := range []string{
		"ALTER TABLE ruled MODIFY a INT FIRST",
		"CALL alter_it()",
		"DO 1; ALTER TABLE ruled MODIFY a INT FIRST",
		"CREATE TABLE other LIKE ruled; ALTER TABLE other MODIFY a INT AFTER id; RENAME TABLE ruled TO old, other TO ruled",
		"/* x */ drop table ruled; create table ruled " + keyLast,
		"PREPARE p FROM 'ALTER TABLE ruled MODIFY a INT AFTER id'",
		"EXECUTE p",
	} {
		mustExec(t, ours, alter)
		if alter[:7] == "PREPARE" {
			continue
		}
		inserted++
		if last {
			mustExec(t, ours, "INSERT INTO ruled VALUES (-5, NULL)")
		} else {
			mustExec(t, ours, "INSERT INTO ruled VALUES (NULL, -5)")
		}
		last = !last
		if n := number(t, plain, "SELECT COUNT(*) FROM ruled WHERE id > 0 AND a = -5"); n == 0 {
			t.Errorf("after %s: %s", alter, column(t, plain, "SELECT CONCAT(id, ':', a) FROM ruled"))
		}
		mustExec(t, plain, "DELETE FROM ruled")
	}
}

// Columns that another connection alters are noticed in time; until then the key is
// still in its column.
func TestColumns_alteredByOthers(t *testing.T) {
	if testserver.Each(t, TestColumns_alteredByOthers) {
		return
	}
	for _, params := range bothWays {
		ours, plain := one(t, params)
		prepared := must(ours.Prepare("INSERT INTO ruled VALUES (?, ?)"))(t)
		defer prepared.Close()
		mustExec(t, ours, "INSERT INTO ruled VALUES (NULL, -5)")
		mustExec(t, ours, "INSERT INTO ruled VALUES (?, ?)", nil, -5)
		mustExec(t, plain, "ALTER TABLE ruled MODIFY a INT FIRST")
		check := func(res sql.Result, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
			id, err := res.LastInsertId()
			if n := number(t, plain, fmt.Sprintf("SELECT COUNT(*) FROM ruled WHERE id = %d AND a = -5", id)); n != 1 || err != nil {
				t.Errorf("%s: %d is reported: %v, %s", params, id, err, column(t, plain, "SELECT CONCAT(id, ':', a) FROM ruled"))
			}
		}
		check(ours.Exec("INSERT INTO ruled VALUES (NULL, -5)"))
		check(ours.Exec("INSERT INTO ruled VALUES (?, ?)", nil, -5))
		check(prepared.Exec(nil, -5))
		check(ours.Exec("INSERT INTO ruled VALUES (77, -5)"))
		later(t, ours)
		check(prepared.Exec(-5, nil))
		check(ours.Exec("INSERT INTO ruled VALUES (-5, NULL)"))
		check(ours.Exec("INSERT INTO ruled VALUES (?, ?)", -5, nil))
		check(ours.Exec("INSERT INTO ruled SELECT -5, NULL"))
	}
}

// Columns are asked for once in ten seconds.
func TestColumns_areKept(t *testing.T) {
	if testserver.Each(t, TestColumns_areKept) {
		return
	}
	ours, plain := one(t)
	mustExec(t, ours, "INSERT INTO ruled VALUES (NULL, 1)")
	for i := range 2 { // what is asked once, for the statements that are kept
		mustExec(t, ours, "INSERT INTO ruled VALUES (?, ?)", nil, i)
	}
	for range 3 {
		before := number(t, ours, "SHOW STATUS LIKE 'Com_select'") + number(t, ours, "SHOW STATUS LIKE 'Com_show_fields'")
		for i := range 50 {
			mustExec(t, ours, fmt.Sprintf("INSERT INTO ruled VALUES (NULL, %d)", i))
			mustExec(t, ours, "INSERT INTO ruled VALUES (?, ?)", nil, i)
		}
		asked := number(t, ours, "SHOW STATUS LIKE 'Com_select'") + number(t, ours, "SHOW STATUS LIKE 'Com_show_fields'") - before
		if asked > 1 {
			t.Errorf("%d questions", asked)
		}
		later(t, ours)
	}
	equal(t, number(t, plain, "SELECT COUNT(*) FROM ruled"), 303, "rows")
}

// The columns of a table that was dropped are read again when it is back.
func TestColumns_tableMadeAgain(t *testing.T) {
	if testserver.Each(t, TestColumns_tableMadeAgain) {
		return
	}
	ours, plain := one(t)
	mustExec(t, ours, "INSERT INTO ruled VALUES (NULL, 1)")
	mustExec(t, plain, "DROP TABLE ruled")
	if _, err := ours.Exec("INSERT INTO ruled VALUES (NULL, 1)"); !base.IsServerError(err, 1146) {
		t.Errorf("have: %v", err)
	}
	mustExec(t, plain, "CREATE TABLE ruled "+keyLast)
	mustExec(t, ours, "INSERT INTO ruled VALUES (-5, NULL)")
	equal(t, number(t, plain, "SELECT COUNT(*) FROM ruled WHERE a = -5 AND id > 0"), 1, "rows")
}

// A temporary table has its own columns, for its own session.
func TestColumns_temporaryTable(t *testing.T) {
	if testserver.Each(t, TestColumns_temporaryTable) {
		return
	}
	ours, plain, _ := openFilled(t)
	mustExec(t, ours, "INSERT INTO ruled VALUES (NULL, 1)")
	hiding := must(ours.Conn(t.Context()))(t)
	defer hiding.Close()
	exec := func(query string) {
		t.Helper()
		mustExec(t, hiding, query)
	}
	exec("CREATE TEMPORARY TABLE ruled (a INT, b INT, id BIGINT)")
	for range 2 {
		exec("INSERT INTO ruled VALUES (-5, 2, NULL)")
		exec("INSERT INTO ruled SELECT -5, 2, NULL")
		mustExec(t, ours, "INSERT INTO ruled VALUES (NULL, 1)")
		mustExec(t, ours, "INSERT INTO ruled SELECT NULL, 1")
	}
	var n int
	if err := hiding.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM ruled WHERE id > 0 AND a = -5").Scan(&n); err != nil || n != 4 {
		t.Errorf("%d rows in the temporary table, %v", n, err)
	}
	equal(t, number(t, plain, "SELECT COUNT(*) FROM ruled WHERE id > 0 AND a = 1"), 5, "rows in the table")
}

// A user who may only insert needs no column list.
func TestColumns_withoutSelectPrivilege(t *testing.T) {
	if testserver.Each(t, TestColumns_withoutSelectPrivilege) {
		return
	}
	_, plain, _ := openFilled(t)
	mustExec(t, plain, "ALTER TABLE ruled ADD inv INT INVISIBLE, ADD g INT AS (a + 1) STORED")
	db, _ := openAs(t, plain, "INSERT ON ruled")
	mustExec(t, db, "INSERT INTO ruled VALUES (NULL, 1, DEFAULT)")
	equal(t, number(t, plain, "SELECT COUNT(*) FROM ruled WHERE id > 0 AND a = 1"), 1, "rows")
}

// Our queries are answered whatever the session limits.
func TestSession_asksUnderSelectLimit(t *testing.T) {
	if testserver.Each(t, TestSession_asksUnderSelectLimit) {
		return
	}
	for _, limit := range []string{"0", "1"} {
		ours, plain := one(t)
		mustExec(t, ours, "SET sql_mode = 'ANSI_QUOTES', sql_select_limit = "+limit)
		mustExec(t, ours, `INSERT INTO "ruled" (a) VALUES (1)`)
		mustExec(t, ours, "INSERT INTO ruled VALUES (NULL, 2)")
		mustExec(t, ours, "INSERT INTO ruled SELECT NULL, 3")
		mustExec(t, ours, "INSERT INTO ruled (a) SELECT a FROM ruled AS r WHERE a < 3")
		equal(t, number(t, plain, "SELECT COUNT(*) FROM ruled WHERE id > 0"), 5, "limit", limit, "rows")
		mustExec(t, plain, "INSERT INTO ruled VALUES (5000, 0)")
		var keys Keys
		res, err := ours.ExecContext(WithKeys(t.Context(), &keys), "INSERT IGNORE INTO ruled (id, a) VALUES (NULL, 1), (5000, 2), (NULL, 3), (NULL, 4)")
		if err != nil {
			t.Fatal(err)
		}
		if id, _ := res.LastInsertId(); id <= 0 || fmt.Sprint(keys.Values()) != fmt.Sprintf("[%d <nil> %d %d]", id, id+1, id+2) {
			t.Errorf("limit %s: %d, %v", limit, id, keys.Values())
		}
		mustExec(t, plain, "ALTER TABLE ruled ADD u INT UNIQUE")
		_, err = ours.ExecContext(WithKeys(t.Context(), &keys), "INSERT IGNORE INTO ruled (a, u) SELECT 1, 1 UNION ALL SELECT 1, 1 UNION ALL SELECT 1, 2")
		if values := keys.Values(); err != nil || len(values) != 3 || values[0] == nil || values[1] != nil || values[2] == nil {
			t.Errorf("limit %s: %v, %v", limit, keys.Values(), err)
		}
	}
}

// Answers that cannot be read are an error where they are needed.
func TestSession_answersInUTF16(t *testing.T) {
	if testserver.Each(t, TestSession_answersInUTF16) {
		return
	}
	ours, plain := one(t)
	mustExec(t, ours, "SET sql_mode = 'ANSI_QUOTES', character_set_results = utf16")
	mustExec(t, ours, "INSERT INTO ruled (a) VALUES (1)")
	for _, query := range []string{`INSERT INTO "ruled" (a) VALUES (1)`, "INSERT INTO ruled VALUES (NULL, 1)", "INSERT INTO ruled SELECT NULL, 1"} {
		if _, err := ours.Exec(query); !errors.Is(err, ErrUnsupportedStatement) || !strings.Contains(err.Error(), "character_set_results") {
			t.Errorf("%s: %v", query, err)
		}
	}
	equal(t, number(t, plain, "SELECT COUNT(*) FROM ruled"), 1, "rows")
}

// An INSERT that reads the previous statement's counts reads those.
func TestSession_countsReadByInsert(t *testing.T) {
	if testserver.Each(t, TestSession_countsReadByInsert) {
		return
	}
	ours, plain := one(t)
	mustExec(t, plain, "CREATE TABLE src (a INT)")
	mustExec(t, plain, "INSERT INTO src VALUES (1), (2), (3), (4)")
	update := func() {
		t.Helper()
		mustExec(t, ours, "UPDATE src SET a = a + 1")
	}
	const counted = "INSERT INTO ruled (a) VALUES (ROW_COUNT())"
	update()
	if _, err := ours.Exec(counted); !errors.Is(err, ErrUnsupportedStatement) || !strings.Contains(err.Error(), "ROW_COUNT()") {
		t.Errorf("a question was due: %v", err)
	}
	mustExec(t, ours, "INSERT INTO ruled (a) VALUES (-1), (-1)") // nothing is left to ask
	update()
	mustExec(t, ours, counted)
	equal(t, number(t, plain, "SELECT COUNT(*) FROM ruled WHERE a = 4"), 1, column(t, plain, "SELECT a FROM ruled"))
	update()
	for _, query := range []string{"INSERT INTO ruled (a) SELECT ROW_COUNT()", "INSERT INTO ruled (a) SELECT found_rows ( )"} {
		if _, err := ours.Exec(query); !errors.Is(err, ErrUnsupportedStatement) {
			t.Errorf("%s: %v", query, err)
		}
	}
	mustExec(t, plain, "CREATE TABLE row_count (id BIGINT PRIMARY KEY, row_count INT, s TEXT)")
	other, _ := openScripted(t, scriptRule(t, listed(1, 2, 3), "row_count.id"))
	mustExec(t, other, "CREATE TABLE row_count (id BIGINT PRIMARY KEY, row_count INT, s TEXT)")
	mustExec(t, other, "INSERT INTO row_count (row_count, s) VALUES (1, 'ROW_COUNT()') -- FOUND_ROWS()")
}
