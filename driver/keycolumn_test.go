package driver

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/testserver"
)

// A key that the column would cut is an error, also where the server says
// nothing.
func TestKeyColumn_tooNarrow(t *testing.T) {
	if testserver.Each(t, TestKeyColumn_tooNarrow) {
		return
	}
	for _, c := range []struct {
		column string
		key    any
		ddl    string
	}{
		{"INT", int64(5000000000), "MODIFY `id` BIGINT NOT NULL"},
		{"TINYINT UNSIGNED", 256, "MODIFY `id` BIGINT NOT NULL"},
		{"BIGINT", uint64(math.MaxUint64), "MODIFY `id` BIGINT UNSIGNED NOT NULL"},
		{"DOUBLE", int64(1<<60 + 1), "MODIFY `id` BIGINT NOT NULL"},
		{"CHAR(20)", "550e8400-e29b-41d4-a716-446655440000", "MODIFY `id` VARCHAR(36) NOT NULL"},
		{"BIGINT", "550e8400-e29b-41d4-a716-446655440000", "MODIFY `id` VARCHAR(36) NOT NULL"},
		{"VARBINARY(8)", make([]byte, 16), "MODIFY `id` VARBINARY(16) NOT NULL"},
	} {
		ours, plain := openScripted(t, scriptRule(t, listed(c.key, c.key, c.key, c.key, c.key, c.key), "ruled.id"))
		ours.SetMaxOpenConns(1)
		mustExec(t, plain, "CREATE TABLE ruled (id "+c.column+" NOT NULL PRIMARY KEY, a INT)")
		mustExec(t, ours, "SET sql_mode = ''")
		for _, query := range []string{
			"INSERT IGNORE INTO ruled (a) VALUES (1)",
			"REPLACE INTO ruled (a) VALUES (?)",
			"INSERT INTO ruled (id, a) VALUES (NULL, 1)",
			"INSERT INTO ruled (a) VALUES (1) ON DUPLICATE KEY UPDATE a = 2",
			"INSERT IGNORE INTO ruled (a) SELECT 1",
		} {
			var args []any
			if strings.Contains(query, "?") {
				args = []any{1}
			}
			_, err := ours.Exec(query, args...)
			var narrow *StatementError
			if !errors.As(err, &narrow) || narrow.Reason != reasonNarrowColumn || narrow.Table != "ruled" || !errors.Is(err, ErrUnsupportedStatement) || !strings.EqualFold(narrow.Column, "id") ||
				!strings.Contains(err.Error(), "ALTER TABLE `ruled` "+c.ddl) {
				t.Errorf("%s, %s: %v", c.column, query, err)
			}
		}
		equal(t, number(t, plain, "SELECT COUNT(*) FROM ruled"), 0, c.column, "rows")
	}
}

// A column that has been widened since is found out.
func TestKeyColumn_widened(t *testing.T) {
	if testserver.Each(t, TestKeyColumn_widened) {
		return
	}
	ours, plain := openScripted(t, scriptRule(t, listed(1, int64(5000000000), int64(5000000001)), "ruled.id"))
	mustExec(t, plain, "CREATE TABLE ruled (id INT PRIMARY KEY, a INT)")
	mustExec(t, ours, "INSERT INTO ruled (a) VALUES (1)")
	mustExec(t, plain, "ALTER TABLE ruled MODIFY id BIGINT")
	mustExec(t, ours, "INSERT INTO ruled (a) VALUES (1)")
	mustExec(t, ours, "ALTER TABLE ruled ADD b INT")
	mustExec(t, ours, "INSERT INTO ruled (a) VALUES (1)")
	equal(t, number(t, plain, "SELECT COUNT(*) FROM ruled"), 3, "rows")
}

// A given key of which the server stores what is left is not reported.
func TestKeyColumn_givenKeyOutOfRange(t *testing.T) {
	if testserver.Each(t, TestKeyColumn_givenKeyOutOfRange) {
		return
	}
	for _, params := range bothWays {
		ours, _ := one(t, params)
		mustExec(t, ours, "SET sql_mode = ''")
		for _, query := range []string{
			"INSERT INTO ruled (id, a) VALUES (9223372036854775809, 1)",
			"INSERT IGNORE INTO ruled (id, a) VALUES (?, 2)",
		} {
			mustExec(t, ours, "DELETE FROM ruled")
			var args []any
			if strings.Contains(query, "?") {
				args = []any{"9223372036854775809"}
			}
			var keys Keys
			res := must(ours.ExecContext(WithKeys(t.Context(), &keys), query, args...))(t)
			if id, _ := res.LastInsertId(); id != 0 || fmt.Sprint(keys.Values()) != "[<nil>]" {
				t.Errorf("%s: %d, %v", query, id, keys.Values())
			}
		}
	}
}

// The type is asked for once.
func TestKeyColumn_isAskedForOnce(t *testing.T) {
	if testserver.Each(t, TestKeyColumn_isAskedForOnce) {
		return
	}
	ours, _ := one(t)
	asked := func() int64 { return number(t, ours, "SHOW STATUS LIKE 'Com_show_fields'") }
	mustExec(t, ours, "INSERT INTO ruled (a) VALUES (1)")
	before := asked()
	for i := range 20 {
		mustExec(t, ours, fmt.Sprintf("INSERT INTO ruled (a) VALUES (%d)", i))
		mustExec(t, ours, "INSERT INTO ruled (a) VALUES (?)", i)
		mustExec(t, ours, "INSERT INTO ruled (a) SELECT ?", i)
	}
	if n := asked() - before; n != 0 || before != 1 {
		t.Errorf("%d and %d questions", before, n)
	}
}

// A trigger may give the row another key: WithKeys then says that it is not
// known, and no key is reported that is in no row.
func TestKeyColumn_trigger(t *testing.T) {
	if testserver.Each(t, TestKeyColumn_trigger) {
		return
	}
	ours, plain := openScripted(t, scriptRule(t, listed(int64(70), int64(71), int64(72), int64(73), int64(74), int64(75)), "ruled.id"))
	ours.SetMaxOpenConns(1)
	mustExec(t, plain, "CREATE TABLE ruled (id BIGINT PRIMARY KEY, a INT)")
	mustExec(t, plain, "CREATE TRIGGER other_keys BEFORE INSERT ON ruled FOR EACH ROW SET NEW.id = IF(NEW.a = 2, 500, NEW.id)")
	var keys Keys
	for _, c := range []struct {
		query string
		keys  string
	}{
		{"INSERT INTO ruled (a) VALUES (1)", "[70]"},
		{"INSERT INTO ruled (a) VALUES (2)", "[<nil>]"},
		{"INSERT INTO ruled (a) SELECT 6 UNION ALL SELECT 2", "[72 <nil>]"},
		{"INSERT INTO ruled (a) VALUES (3), (4)", "[74 75]"},
	} {
		mustExec(t, plain, "DELETE FROM ruled WHERE id = 500")
		res := must(ours.ExecContext(WithKeys(t.Context(), &keys), c.query))(t)
		equal(t, fmt.Sprint(keys.Values()), c.keys, c.query)
		if id, _ := res.LastInsertId(); id == 71 {
			t.Errorf("%s: LastInsertId is %d, which is in no row", c.query, id)
		}
	}
	if ints, ok := keys.Int64s(); !ok || fmt.Sprint(ints) != "[74 75]" {
		t.Errorf("have: %v, %v\nwant: [74 75], true", ints, ok)
	}
}

// The server's insert ids are those of another column with AUTO_INCREMENT.
func TestKeyColumn_besideAutoIncrement(t *testing.T) {
	if testserver.Each(t, TestKeyColumn_besideAutoIncrement) {
		return
	}
	ours, plain := openScripted(t, scriptRule(t, listed(int64(70), int64(71), int64(72), int64(73), int64(74), int64(75)), "ruled.id"))
	ours.SetMaxOpenConns(1)
	mustExec(t, plain, "CREATE TABLE ruled (n INT AUTO_INCREMENT PRIMARY KEY, id BIGINT UNIQUE, u INT UNIQUE, a INT) AUTO_INCREMENT = 5")
	var keys Keys
	for _, c := range []struct {
		query  string
		keys   string
		id     int64
		lastID int64
	}{
		{"INSERT INTO ruled (u) VALUES (1)", "[70]", 5, 5},
		{"INSERT INTO ruled (u, a) VALUES (2, 1) ON DUPLICATE KEY UPDATE a = 2", "[71]", 6, 6},
		{"INSERT INTO ruled (u, a) VALUES (2, 1) ON DUPLICATE KEY UPDATE a = 2", "[71]", 0, 6},
		{"INSERT IGNORE INTO ruled (u) VALUES (1)", "[<nil>]", 0, 6},
	} {
		res := must(ours.ExecContext(WithKeys(t.Context(), &keys), c.query))(t)
		id, _ := res.LastInsertId()
		last := number(t, ours, "SELECT LAST_INSERT_ID()")
		if have := fmt.Sprint(keys.Values()); have != c.keys || id != c.id || last != c.lastID {
			t.Errorf("%s\nhave: keys %s, LastInsertId %d, LAST_INSERT_ID() %d\nwant: keys %s, %d, %d", c.query, have, id, last, c.keys, c.id, c.lastID)
		}
	}
}
