package driver

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/testserver"
)

// expressionCase is an INSERT whose keys are expressions, beside a table with
// AUTO_INCREMENT. Its keys are what WithKeys reports: "key" for a generated one.
type expressionCase struct {
	query    string
	args     []any
	keys     string // of table a, in row order
	reported string // by WithKeys, nil where it is not known
}

var expressionCases = []expressionCase{
	{"INSERT INTO T (id, a) VALUES (0 + 0, 1)", nil, "key", "key"},
	{"INSERT INTO T (id, a) VALUES (CAST(@nothing AS SIGNED), 1), (5 + 5, 2), (NULL, 3)", nil, "key 10 key", "key <nil> key"},
	{"INSERT INTO T (a, id) VALUES (?, CAST(NULLIF(?, 0) AS SIGNED)), (?, CAST(NULLIF(?, 0) AS SIGNED)), (?, ?)", []any{1, 0, 2, 77, 3, nil}, "key 77 key", "key <nil> key"},
	{"INSERT INTO T SET id = 7 - 7, a = ?", []any{1}, "key", "key"},
	{"INSERT INTO T SET a = 6, id = CAST(a + 1 AS SIGNED)", nil, "7", "<nil>"},
	{"INSERT INTO T (id, a) VALUES (CAST((SELECT NULL) AS SIGNED), 1), (CAST((SELECT 3) AS UNSIGNED) + 0, 2)", nil, "key 3", "key <nil>"},
	{"INSERT INTO T (id, a) VALUES (CAST((@n := @n + 1) AS SIGNED), 1), (CAST((@n := @n + 1) AS SIGNED), 2)", nil, "1 2", "<nil> <nil>"},
	{"INSERT INTO T (id, a) VALUES (CAST(counted() AS SIGNED), 1), (CAST(counted() AS SIGNED), 2)", nil, "1 2", "<nil> <nil>"},
	{"INSERT INTO T (id, a) VALUES (0.4 + 0, 1), (0.6 + 0, 2), (-0.4 + 0, 3), (-5 + 0, 4)", nil, "key 1 key -5", "key <nil> key <nil>"},
	{"INSERT INTO T (id, a) VALUES (CAST(CONCAT('90071992547409', '93') AS SIGNED), 1), (CAST(CONCAT('0', '') AS SIGNED), 2)", nil, "9007199254740993 key", "<nil> key"},
	{"INSERT INTO T (id, a) VALUES (CAST(1e15 + 2 AS SIGNED), 1), (CAST(0e0 + 0 AS SIGNED), 2), (CAST('9223372036854775807' AS UNSIGNED), 3)", nil, "1000000000000002 key 9223372036854775807", "<nil> key <nil>"},
	{"INSERT INTO T (id, a) VALUES (CAST(CASE WHEN 1 THEN 0 END AS SIGNED), 1), (CONVERT(IF(1, 10, 0), SIGNED), 2)", nil, "key 10", "key <nil>"},
	{"INSERT INTO T (id, a) VALUES (CAST(-'0' AS SIGNED), 1), (CAST(NOT 1 AS SIGNED), 2), (-(5), 3)", nil, "key key -5", "key key <nil>"},
	{"INSERT IGNORE INTO T (id, a) VALUES (0 + 0, 1), (5, 2), (5 + 0, 3)", nil, "key 5", "key 5 <nil>"},
	{"REPLACE INTO T (id, a) VALUES (0 + 0, 1), (5 + 0, 2), (5, 3)", nil, "key 5", "key <nil> 5"},
	{"INSERT INTO T (id, a) VALUES (CAST(DEFAULT(a) AS SIGNED), 1)", nil, "key", "key"},
}

// TestExpression_givesTheKey: where an expression for the key comes to NULL or
// 0, the row has a generated one, as with AUTO_INCREMENT, and the expression is
// evaluated once.
func TestExpression_givesTheKey(t *testing.T) {
	if testserver.Each(t, TestExpression_givesTheKey) {
		return
	}
	for _, params := range bothWays {
		ours, plain, _ := openFilled(t, params)
		mustExec(t, plain, "CREATE TABLE auto (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT DEFAULT 0)")
		mustExec(t, plain, "ALTER TABLE ruled MODIFY a INT DEFAULT 0")
		mustExec(t, plain, "CREATE FUNCTION counted() RETURNS INT NO SQL BEGIN SET @n = @n + 1; RETURN @n; END")
		for _, c := range expressionCases {
			c.run(t, ours.Conn, "ruled")
			c.run(t, plain.Conn, "auto")
		}
	}
}

func (c *expressionCase) run(t *testing.T, open func(context.Context) (*sql.Conn, error), table string) {
	t.Helper()
	ctx := t.Context()
	conn := must(open(ctx))(t)
	defer conn.Close()
	// The keys of the cases are below those that are generated.
	for _, query := range []string{"TRUNCATE TABLE " + table, "ALTER TABLE " + table + " AUTO_INCREMENT = 1000", "SET @n = 0, @nothing = NULL"} {
		must(conn.ExecContext(ctx, query))(t)
	}
	var reported Keys
	query := strings.Replace(c.query, "INTO T ", "INTO "+table+" ", 1)
	res, err := conn.ExecContext(WithKeys(ctx, &reported), query, c.args...)
	if err != nil {
		t.Errorf("%s: %v", query, err)
		return
	}
	rows := must(conn.QueryContext(ctx, "SELECT id FROM "+table+" ORDER BY a"))(t)
	defer rows.Close()
	given := strings.Fields(c.keys)
	var keys []string
	first := int64(0)
	for rows.Next() {
		var id int64
		noError(t, rows.Scan(&id))
		key := fmt.Sprint(id)
		if id != 0 && !slices.Contains(given, key) {
			if key = "key"; first == 0 {
				first = id
			}
		}
		keys = append(keys, key)
	}
	equal(t, strings.Join(keys, " "), c.keys, query)
	if id, _ := res.LastInsertId(); first != 0 && id != first {
		t.Errorf("%s\nLastInsertId\nhave: %d\nwant: %d", query, id, first)
	}
	if table != "ruled" {
		return
	}
	var values []string
	for i, v := range reported.Values() {
		value := fmt.Sprint(v)
		if want := strings.Fields(c.reported); i < len(want) && want[i] == "key" && v != nil && value != "0" {
			value = "key"
		}
		values = append(values, value)
	}
	equal(t, strings.Join(values, " "), c.reported, query, "WithKeys")
}

// TestExpressionKey_zero: under NO_AUTO_VALUE_ON_ZERO only NULL asks for a key.
func TestExpressionKey_zero(t *testing.T) {
	if testserver.Each(t, TestExpressionKey_zero) {
		return
	}
	for _, params := range bothWays {
		ours, plain, _ := openFilled(t, params)
		conn := must(ours.Conn(t.Context()))(t)
		for _, query := range []string{"SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'", "INSERT INTO ruled (id, a) VALUES (1 - 1, 1), (CAST(NULLIF(1, 1) AS SIGNED), 2)"} {
			mustExec(t, conn, query)
		}
		mustExec(t, conn, "INSERT INTO ruled (id, a) VALUES (CAST(NULLIF(?, 1) AS SIGNED), ?)", 1, 3)
		conn.Close()
		equal(t, number(t, plain, "SELECT COUNT(*) FROM ruled WHERE id = 0 AND a = 1 OR id > 0 AND a IN (2, 3)"), 3, params)
	}
}

// TestExpressionKey_text: a text key is generated where an expression comes to
// NULL or ”, and blanks are not ”.
func TestExpressionKey_text(t *testing.T) {
	if testserver.Each(t, TestExpressionKey_text) {
		return
	}
	for _, params := range bothWays {
		made := 0
		ours, plain := openScripted(t, scriptRule(t, kindsOf(&made, textKey), "ruled.id"), params)
		mustExec(t, plain, "CREATE TABLE ruled (id VARCHAR(40) PRIMARY KEY, a INT)")
		var reported Keys
		ctx := WithKeys(t.Context(), &reported)
		must(ours.ExecContext(ctx, "INSERT INTO ruled (id, a) VALUES (CONCAT('ä', ?), 1), (CONCAT(''), 2), (NULLIF(?, 'x'), 3), (CONCAT(' '), 4)", "b", "x"))(t)
		equal(t, fmt.Sprint(reported.Values()), "[<nil> key-2 key-3 <nil>]", params)
		equal(t, number(t, plain, "SELECT COUNT(*) FROM ruled WHERE a = 1 AND id = 'äb' OR a IN (2, 3) AND id LIKE 'key-%' OR a = 4 AND id = ' '"), 4, params)
	}
}
