package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/test/fakedb"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// These tests use keys that are no int64, row by row, on a server.

func textKey(i int) any { return fmt.Sprintf("key-%d", i) }

// execKeys executes a statement and describes LastInsertId and WithKeys.
func execKeys(t *testing.T, db *sql.DB, query string, args ...any) string {
	t.Helper()
	keys := Keys{values: []any{"from before"}}
	res, err := db.ExecContext(WithKeys(t.Context(), &keys), query, args...)
	if err != nil {
		return fmt.Sprintf("%v %v", err, keys.Values())
	}
	id, err := res.LastInsertId()
	n, _ := res.RowsAffected()
	return fmt.Sprintf("id %d %v, %d rows, %q", id, err, n, keys.Values())
}

func TestKeys_textRowByRow(t *testing.T) { onEach(t, testKeys_textRowByRow) }

func testKeys_textRowByRow(t *testing.T) {
	for _, params := range bothWays {
		t.Run(params, func(t *testing.T) {
			made := 0
			counting := texts(func(i int) any { made = i + 1; return textKey(i) })
			ours, plain := openScripted(t, generatorRule(t, counting, "ruled.id"), params)
			mustExec(t, plain, "CREATE TABLE ruled (id VARCHAR(40) NOT NULL PRIMARY KEY, a INT, u INT UNIQUE)")
			mustExec(t, plain, "CREATE TABLE src (id VARCHAR(40), a INT)")
			mustExec(t, plain, "INSERT INTO src VALUES ('given', 1), (NULL, 2), ('', 3), ('0', 4)")
			for _, c := range []struct {
				query string
				args  []any
				want  string // %d stands for the number of the first key
				keys  int
			}{
				{"INSERT INTO ruled (a) VALUES (1), (2)", nil, `id 0 <nil>, 2 rows, ["key-0" "key-1"]`, 2},
				{"INSERT INTO ruled (a) VALUES (?)", []any{1}, `id 0 <nil>, 1 rows, ["key-2"]`, 1},
				{"INSERT INTO ruled (id, a) VALUES ('', 1), (NULL, 2), (DEFAULT, 3), ('mine', 4), ('0', 5)", nil, `id 0 <nil>, 5 rows, ["key-3" "key-4" "key-5" "mine" "0"]`, 3},
				{"INSERT INTO ruled (id, a) VALUES (?, 1), (?, 2), (?, 3), (?, 4)", []any{"", nil, "yours", []byte("its")}, `id 0 <nil>, 4 rows, ["key-6" "key-7" "yours" "its"]`, 2},
				{"INSERT INTO ruled (id, a) VALUES ('xy', 1), (NULL, 2)", nil, `id 0 <nil>, 2 rows, ["xy" "key-8"]`, 1},
				{"INSERT INTO ruled (id, a) VALUES (?, 1)", []any{sql.NullString{}}, `id 0 <nil>, 1 rows, ["key-9"]`, 1},
				{"INSERT INTO ruled SET id = '', a = 1", nil, `id 0 <nil>, 1 rows, ["key-10"]`, 1},
				{"INSERT IGNORE INTO ruled (u) VALUES (1), (1), (2)", nil, `id 0 <nil>, 2 rows, ["key-11" <nil> "key-13"]`, 3},
				{"INSERT INTO ruled (u, a) VALUES (1, 2) ON DUPLICATE KEY UPDATE a = 5", nil, `id 0 <nil>, 2 rows, [<nil>]`, 1},
				{"INSERT INTO ruled (u, a) VALUES (1, 2), (3, 3) ON DUPLICATE KEY UPDATE a = 6", nil, `id 0 <nil>, 3 rows, [<nil> "key-16"]`, 2},
				{"REPLACE INTO ruled (u) VALUES (1), (4)", nil, `id 0 <nil>, 3 rows, ["key-17" "key-18"]`, 2},
				{"INSERT INTO ruled (id, a) SELECT CONCAT(id, 'x'), a FROM src WHERE id = 'given'", nil, `id 0 <nil>, 1 rows, []`, 0},
				{"DELETE FROM ruled WHERE id = '0'", nil, `id 0 <nil>, 1 rows, []`, 0},
				{"INSERT INTO ruled (id, a) SELECT id, a FROM src ORDER BY a", nil, `Error 1048 (23000): Column 'id' cannot be null []`, 0},
				{"INSERT INTO ruled (a) SELECT a FROM src ORDER BY a", nil, `id 0 <nil>, 4 rows, ["key-19" "key-20" "key-21" "key-22"]`, 20},
			} {
				before := made
				have := execKeys(t, ours, c.query, c.args...)
				if have != c.want || made-before != c.keys {
					t.Errorf("%s %v\nhave: %s, %d keys\nwant: %s, %d keys", c.query, c.args, have, made-before, c.want, c.keys)
				}
			}
			equal(t, number(t, ours, "SELECT COUNT(*) FROM ruled WHERE id = ''"), 0, "empty keys")
			ours.SetMaxOpenConns(1)
			mustExec(t, ours, "DO LAST_INSERT_ID(9)")
			for _, query := range []string{"INSERT INTO ruled (a) VALUES (1)", "INSERT INTO ruled (a) SELECT 1", "INSERT INTO ruled (a) SELECT 1 RETURNING id", "INSERT IGNORE INTO ruled (a) VALUES (1) RETURNING id"} {
				if strings.Contains(query, "RETURNING") && !hasReturning(t) {
					continue
				}
				check(t, drain(ours.Query(query)))
				equal(t, number(t, ours, "SELECT LAST_INSERT_ID()"), 9, query, "LAST_INSERT_ID()")
			}
		})
	}
}

// A key may contain any characters, as a literal or bound.
func TestKeys_oddCharacters(t *testing.T) { onEach(t, testKeys_oddCharacters) }

func testKeys_oddCharacters(t *testing.T) {
	odd := []any{`it's`, `a"b`, `back\slash`, `tail\`, "new\nline", "nul\x00", "日本語", "ключ", "😀", `%_`, "`", `\'`, "?", ":a", "--", "/*", " lead", "$1"}
	for _, params := range []string{"", "interpolateParams=true", "sql_mode=%27NO_BACKSLASH_ESCAPES%27", "sql_mode=%27ANSI_QUOTES%27", "charset=utf8mb4", "charset=latin1&interpolateParams=false"} {
		for _, way := range []string{"INSERT INTO ruled (n) VALUES (%d)", "INSERT INTO ruled (n) VALUES (?)", "INSERT INTO ruled (n) SELECT %d", "INSERT INTO ruled (n, k) VALUES (%d, NULL)", "INSERT INTO ruled (n, k) VALUES (?, NULL)"} {
			if strings.Contains(params, "latin1") && strings.Contains(way, "?") {
				continue // a bound value is in the connection's character set, with and without shardkey
			}
			ours, plain := openScripted(t, generatorRule(t, listed(odd...), "ruled.k"), params)
			mustExec(t, plain, "CREATE TABLE ruled (k VARCHAR(40) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, n INT)")
			for i := range odd {
				if strings.Contains(way, "?") {
					mustExec(t, ours, way, i)
				} else {
					mustExec(t, ours, fmt.Sprintf(way, i))
				}
			}
			for i, key := range odd {
				have := column(t, plain, fmt.Sprintf("SELECT HEX(k) FROM ruled WHERE n = %d", i))
				equal(t, have, fmt.Sprintf("%X", key), params, way)
			}
		}
	}
}

// A key that the column would truncate is an error, even if the server reports none.
func TestKeyColumn_tooNarrow(t *testing.T) { onEach(t, testKeyColumn_tooNarrow) }

func testKeyColumn_tooNarrow(t *testing.T) {
	for _, c := range []struct {
		column string
		key    any
		ddl    string
	}{
		{"INT", int64(5000000000), "MODIFY `id` BIGINT NOT NULL"},
		{"TINYINT UNSIGNED", int64(256), "MODIFY `id` BIGINT NOT NULL"},
		{"DOUBLE", int64(1<<60 + 1), "MODIFY `id` BIGINT NOT NULL"},
		{"CHAR(20)", "550e8400-e29b-41d4-a716-446655440000", "MODIFY `id` VARCHAR(36) NOT NULL"},
		{"BIGINT", "550e8400-e29b-41d4-a716-446655440000", "MODIFY `id` VARCHAR(36) NOT NULL"},
		{"VARBINARY(8)", make([]byte, 16), "MODIFY `id` VARBINARY(16) NOT NULL"},
	} {
		keys := spi.KeyGenerator(listed(c.key, c.key, c.key, c.key, c.key, c.key))
		if first, ok := c.key.(int64); ok {
			keys = &shardCounter{next: first - 1} // without boxing them
		}
		ours, plain := openScripted(t, generatorRule(t, keys, "ruled.id"))
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
			if !errors.As(err, &narrow) || narrow.Reason != ReasonNarrowColumn || narrow.Table != "ruled" || !errors.Is(err, ErrUnsupportedStatement) || !strings.EqualFold(narrow.Column, "id") ||
				!strings.Contains(err.Error(), "ALTER TABLE `ruled` "+c.ddl) {
				t.Errorf("%s, %s: %v", c.column, query, err)
			}
		}
		equal(t, number(t, plain, "SELECT COUNT(*) FROM ruled"), 0, c.column, "rows")
	}
}

// A trigger may change the key of a row. WithKeys then has no key for the row, and no key is
// reported that is in no row.
func TestKeyColumn_trigger(t *testing.T) { onEach(t, testKeyColumn_trigger) }

func testKeyColumn_trigger(t *testing.T) {
	ours, plain := openScripted(t, generatorRule(t, numbered(func(i int) int64 { return int64(70 + i) }), "ruled.id"))
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
		{"INSERT INTO ruled (a) VALUES (3), (4)", "[90 91]"}, // more keys were made than rows counted
	} {
		t.Run(c.query, func(t *testing.T) {
			mustExec(t, plain, "DELETE FROM ruled WHERE id = 500")
			res := must(ours.ExecContext(WithKeys(t.Context(), &keys), c.query))(t)
			equal(t, fmt.Sprint(keys.Values()), c.keys)
			if id, _ := res.LastInsertId(); id == 71 {
				t.Errorf("LastInsertId is %d, which is in no row", id)
			}
		})
	}
	equal(t, fmt.Sprint(keys.Values()), "[90 91]")
}

var nextRule = ruleText(`
	t_order  t_order_${0..1} - - order_id:counter
	t_item   -               - - item_id:counter
	t_user   ds.app.t_user   - - id:uuid
	t_blob   -               - - id:binary
	t_broken -               - - id:broken
`, "", `
  keyGenerators:
    counter: {type: COUNTER}
    uuid: {type: UUID}
    binary: {type: UUID, props: {format: binary}}
    broken: {type: NEVER}
`)

func init() {
	spi.RegisterKeyGenerator("NEVER", func(spi.Props) (spi.KeyGenerator, error) { return failing, nil })
}

// openNext opens a database at an address where nothing listens.
func openNext(t *testing.T) *sql.DB {
	t.Helper()
	r, err := rule.Parse(t.Name(), []byte(nextRule))
	if err == nil {
		err = RegisterRule(t.Name(), r)
	}
	noError(t, err)
	t.Cleanup(func() { DeregisterRule(t.Name()) })
	return mustOpen(t, "shardkey", "u:p@tcp(127.0.0.1:1)/app?shardkeyRule="+t.Name())
}

func TestNextKeys_withoutAServer(t *testing.T) {
	db := openNext(t)
	for _, c := range []struct {
		table string
		want  []any
	}{
		{"t_order", []any{int64(1001), int64(1002)}},
		{"T_ORDER_1", []any{int64(1003), int64(1004)}}, // an actual table
		{"t_item", []any{int64(1005), int64(1006)}},    // the same generator
		{"anywhere.t_order_0", []any{int64(1007), int64(1008)}},
	} {
		have, err := NextKeys(t.Context(), db, c.table, 2)
		if err != nil || !reflect.DeepEqual(have, c.want) {
			t.Errorf("%s\nhave: %v, %v\nwant: %v", c.table, have, err, c.want)
		}
	}
	keys, err := NextKeys(t.Context(), db, "app.t_user", 2)
	if err != nil || len(keys) != 2 || len(keys[0].(string)) != 32 || keys[0] == keys[1] {
		t.Errorf("texts\nhave: %q, %v", keys, err)
	}
	if keys, err = NextKeys(t.Context(), db, "t_blob", 1); err != nil || len(keys[0].([]byte)) != 16 {
		t.Errorf("bytes\nhave: %q, %v", keys, err)
	}
	if keys, err = ConnectorOf(db).NextKeys(t.Context(), "t_order", 1); err != nil || keys[0] != int64(1009) {
		t.Errorf("of a connector\nhave: %v, %v", keys, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := NextKeys(ctx, db, "t_order", 1); err != context.Canceled {
		t.Errorf("have: %v\nwant: the context's error", err)
	}
	noError(t, db.Close())
	isError(t, errOf(NextKeys(t.Context(), db, "t_order", 1)), spi.ErrClosed, "closed")
}

func TestNextKeys_refuses(t *testing.T) {
	db := openNext(t)
	plain := must(sql.Open("mysql", "u:p@tcp(127.0.0.1:1)/app"))(t)
	defer plain.Close()
	foreign := sql.OpenDB(&fakedb.Server{})
	defer foreign.Close()
	for _, c := range []struct {
		name  string
		db    *sql.DB
		table string
		n     int
		want  string
	}{
		{"misspelt", db, "t_oder", 1, `table t_oder: the rule does not list the table; did you mean "t_order"?`},
		{"unknown", db, "elsewhere", 1, `table elsewhere: the rule does not list the table`},
		{"empty", db, "", 1, "no key"},
		{"another schema", db, "other.t_user", 1, `table other.t_user: the rule does not list the table`},
		{"forgotten", db, "t_order_7", 1, `similar to the actual tables of "t_order"`},
		{"none", db, "t_order", 0, "expected 1 to 1000000 keys, found 0"},
		{"fewer", db, "t_order", -1, "found -1"},
		{"very many", db, "t_order", math.MaxInt, "expected 1 to"},
		{"nil", nil, "t_order", 1, "the *sql.DB does not use this driver"},
		{"another driver", foreign, "t_order", 1, "the *sql.DB does not use this driver"},
	} {
		t.Run(c.name, func(t *testing.T) {
			keys, err := NextKeys(t.Context(), c.db, c.table, c.n)
			typed := (*StatementError)(nil)
			if keys != nil || !errors.As(err, &typed) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("have: %v, %v\nwant: %s", keys, err, c.want)
			}
		})
	}
	if _, err := NextKeys(t.Context(), db, "t_order_7", 1); !errors.As(err, new(*rule.UnlistedTableError)) {
		t.Errorf("have: %v\nwant: an UnlistedTableError", err)
	}
	if _, err := NextKeys(t.Context(), db, "t_broken", 1); !errors.Is(err, errScript) || !errors.As(err, new(*GeneratorError)) {
		t.Errorf("have: %v\nwant: a GeneratorError", err)
	}
	if _, err := NextKeys(t.Context(), plain, "t_order", 1); err == nil { // it would have to connect to find out
		t.Error("another driver without its server\nhave: no error")
	}
}

// ConnectorOf finds this driver below another one that shows it, without a message to the server, and
// returns nil for a driver that doesn't.
func TestConnectorOf_belowAWrapper(t *testing.T) {
	for name, wrap := range map[string]func(driver.Conn) driver.Conn{
		"Unwrap":  func(c driver.Conn) driver.Conn { return nilWrapper{c} },
		"hidden":  func(c driver.Conn) driver.Conn { return preparing{c} },
		"between": func(c driver.Conn) driver.Conn { return nilWrapper{preparing{c}} },
	} {
		t.Run(name, func(t *testing.T) {
			server := &fakedb.Server{}
			connector := mustConnector(t, server, mustParseRule(t, nextRule))
			defer connector.Close()
			db := sql.OpenDB(veil{connector, wrap})
			defer db.Close()
			var want *Connector
			if name == "Unwrap" {
				want = connector
			}
			conn := must(db.Conn(t.Context()))(t)
			sent := len(server.Calls)
			equal(t, ConnectorOf(db), nil, "of the sql.DB")
			equal(t, ConnectorOf(conn), want, "of the sql.Conn")
			noError(t, conn.Raw(func(c any) error { equal(t, ConnectorOf(c), want, "of the raw connection"); return nil }))
			failsWith(t, errOf(NextKeys(t.Context(), db, "t_order", 1)), "of its connector")
			equal(t, len(server.Calls), sent, "calls of the server")
			noError(t, conn.Close())
		})
	}
}

// veil is a connector whose driver shows nothing of the wrapped one, like otelsql's.
type veil struct {
	of   driver.Connector
	wrap func(driver.Conn) driver.Conn
}

func (v veil) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := v.of.Connect(ctx)
	return v.wrap(conn), err
}

func (v veil) Driver() driver.Driver { return mysql.MySQLDriver{} }

// preparing is a connection that wraps another one without a method Unwrap, as sqlhooks does.
type preparing struct{ driver.Conn }

// An explicit key that the column stores as another value isn't reported.
func TestKeys_explicitAsStored(t *testing.T) { onEach(t, testKeys_explicitAsStored) }

func testKeys_explicitAsStored(t *testing.T) {
	kinds := map[string]spi.KeyGenerator{
		"int":  numbered(func(i int) int64 { return firstGenerated + int64(i) }),
		"text": texts(func(i int) any { return fmt.Sprintf("k%015d", i) }),
	}
	values := []any{"5", "'5'", "5.5", "'5.5'", "' 5'", "'05'", "'a'", "'a '", "x'41'", "TRUE", int64(5), "?5 ", "?05", "9223372036854775809", "?9223372036854775809", []byte("a "), []byte("0123456789abcdef"), 5.5, true}
	for kind, keys := range kinds {
		ours, plain := openScripted(t, generatorRule(t, keys, "ruled.id"), "sql_mode=%27%27")
		for _, typ := range []string{"DECIMAL(30,5)", "DOUBLE", "VARCHAR(40)", "CHAR(40)", "VARBINARY(40)", "BINARY(16)", "BIGINT"} {
			if kind == "text" && !strings.Contains(typ, "CHAR") && !strings.Contains(typ, "BINARY") {
				continue
			}
			mustExec(t, ours, "DROP TABLE IF EXISTS ruled")
			mustExec(t, ours, "CREATE TABLE ruled (id "+typ+" PRIMARY KEY, u INT UNIQUE)")
			for _, v := range values {
				text, args := "?", []any{v}
				if s, ok := v.(string); ok && strings.HasPrefix(s, "?") {
					args = []any{s[1:]}
				} else if ok {
					text, args = s, nil
				}
				for _, tail := range []string{"", " ON DUPLICATE KEY UPDATE u = 1"} {
					mustExec(t, plain, "DELETE FROM ruled")
					var keys Keys
					res, err := ours.ExecContext(WithKeys(t.Context(), &keys), "INSERT INTO ruled (id, u) VALUES ("+text+", 1)"+tail, args...)
					noError(t, err)
					id, _ := res.LastInsertId()
					stored := column(t, plain, "SELECT CAST(id AS CHAR) FROM ruled")
					for _, have := range append(keys.Values(), id) {
						if b, ok := have.([]byte); ok {
							have = string(b)
						}
						if have != nil && have != int64(0) && fmt.Sprint(have) != strings.TrimSuffix(stored, ".00000") {
							t.Errorf("%s %s %v%s\nhave: %q\nwant: %q", kind, typ, v, tail, have, stored)
						}
					}
				}
			}
		}
	}
}
