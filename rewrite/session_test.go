package rewrite

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestSetsLastInsertID_statements(t *testing.T) {
	for text, want := range map[string]bool{
		"":                                     false,
		"SELECT 1":                             false,
		"SELECT COUNT(*) FROM t WHERE (a = 1)": false,
		"SELECT LAST_INSERT_ID()":              false,
		"SELECT last_insert_id ( )":            false,
		"SELECT @@last_insert_id":              false,
		"SELECT LAST_INSERT_ID(5)":             true,
		"SELECT LAST_INSERT_ID(), last_Insert_id ( 5 )":   true,
		"UPDATE s SET id = LAST_INSERT_ID(id + 1)":        true,
		"DO LAST_INSERT_ID(?)":                            true,
		"DO LAST_INSERT_ID/**/(5)":                        true,
		"SELECT `LAST_INSERT_ID` FROM t":                  false,
		"SET identity = 5":                                true,
		"(SELECT LAST_INSERT_ID(5))":                      true,
		"(SELECT LAST_INSERT_ID())":                       false,
		"LAST_INSERT_ID(5)":                               true,
		"SELECT LAST_INSERT_ID \t(5)":                     true,
		"SELECT LAST_INSERT_ID(-5)":                       true,
		"SELECT f(LAST_INSERT_ID)":                        false,
		"SET @a = 5":                                      false,
		"CREATE TABLE t (id INT) SELECT 1":                true,
		"/* c */ create table t AS SELECT 1":              true,
		"CREATOR":                                         false,
		"LOCK TABLES t WRITE":                             false,
		"UPDATE t SET last_insert_id = f(1), a = (b + 1)": false,
	} {
		if have := SetsLastInsertID(text, Classify(text)); have != want {
			t.Errorf("%s\nhave: %v\nwant: %v", text, have, want)
		}
	}
}

// FOUND_ROWS() and ROW_COUNT() are calls without arguments.
func TestReadsCounts_statements(t *testing.T) {
	for text, want := range map[string]bool{
		"SELECT 1": false, "SELECT FOUND_ROWS()": true, "SELECT row_count ( )": true, "SELECT ROW_COUNT": false,
		"SELECT FOUND_ROWS(1)": false, "SELECT 'FOUND_ROWS()'": false, "SELECT `ROW_COUNT`()": false, "": false,
		"SELECT FOUND_ROWS, ROW_COUNT()": true, "SELECT ROW_COUNT(1), FOUND_ROWS()": true, "SELECT 'ROW_COUNT": false,
		"SELECT a FROM row_count": false, "SELECT \"FOUND_ROWS()\"": false,
	} {
		if have := ReadsCounts(text, 0); have != want {
			t.Errorf("%s\nhave: %v\nwant: %v", text, have, want)
		}
	}
}

// What is set for the next transaction stays in force until a statement that reads a table,
// or begins one.
func TestNextTransaction_statements(t *testing.T) {
	const level, only = "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "SET TRANSACTION READ ONLY"
	for _, tt := range []struct {
		before []string
		text   string
		want   string // joined by |
	}{
		{nil, "", ""},
		{nil, level, level},
		{nil, level + "; " + only, level + "|" + only},
		{[]string{level, only}, level, only + "|" + level},
		{[]string{level}, "SET SESSION TRANSACTION READ ONLY", ""},
		{[]string{level}, "SET LOCAL TRANSACTION READ ONLY", ""},
		{[]string{level}, "SET GLOBAL TRANSACTION READ ONLY", level},
		{nil, "SET GLOBAL TRANSACTION READ ONLY", ""},
		{nil, "SET @@transaction_isolation = 'SERIALIZABLE'", "SET @@transaction_isolation = 'SERIALIZABLE'"},
		{nil, "SET a = 1, @@`tx_read_only` = 1", "SET a = 1, @@`tx_read_only` = 1"},
		{nil, "SET @@transaction_read_only = 1", "SET @@transaction_read_only = 1"},
		{nil, "SET @@tx_isolation = 'x'", "SET @@tx_isolation = 'x'"},
		{nil, "SET @@session.transaction_isolation = 'x'", ""},
		{nil, "SET transaction_isolation = 'x'", ""},
		{nil, "SET @transaction_isolation = 'x'", ""},
		{nil, "SELECT @@transaction_isolation", ""},
		{nil, "SET a = 1, TRANSACTION = 2", ""},
		{[]string{level}, "SET a = 1", level},
		{[]string{level}, "SET SESSION a = 1", level},
		{[]string{level}, "SET STATEMENT a = 1 FOR SELECT 1", ""},
		{[]string{level}, "SET a = 1, STATEMENT = 1", level},
		{[]string{level}, "USE app", level},
		{[]string{level}, "SELECT 1", level},
		{[]string{level}, "SELECT 1 FROM DUAL", level},
		{[]string{level}, "SELECT 1 FROM t", ""},
		{[]string{level}, "(SELECT 1)", level},
		{[]string{level}, "(SELECT 1 FROM t)", ""},
		{[]string{level}, "DO 1", level},
		{[]string{level}, "VALUES ROW(1)", level},
		{[]string{level}, "SAVEPOINT a", level},
		{[]string{level}, "PREPARE s FROM 'SELECT 1'", ""},
		{[]string{level}, "DEALLOCATE PREPARE s", level},
		{[]string{level}, "UNLOCK TABLES", level},
		{[]string{level}, "SHOW WARNINGS", level},
		{[]string{level}, "SHOW VARIABLES LIKE 'a'", level},
		{[]string{level}, "SHOW TABLES", ""},
		{[]string{level}, "SHOW TABLES LIKE 'a' STATUS", ""},
		{[]string{level}, "BEGIN", ""},
		{[]string{level}, "UPDATE t SET a = 1", ""},
		{[]string{level}, "COMMIT; " + only, only},
		{[]string{level}, only + "; UPDATE t SET a = 1", ""},
		{[]string{level}, "; ;", level},
		{[]string{level}, "SELECT 'no end", level},
	} {
		before := slices.Clone(tt.before)
		if have := strings.Join(NextTransaction(tt.before, tt.text, 0, CharsetUTF8), "|"); have != tt.want || !slices.Equal(before, tt.before) {
			t.Errorf("%s after %q\nhave: %q\nwant: %q", tt.text, tt.before, have, tt.want)
		}
	}
	for text, want := range map[string]bool{
		"SET TRANSACTION READ ONLY": true, "SET @@tx_isolation = 1": true, "SET @@`tx_isolation` = 1": true, "SET a = 1": false,
		"SELECT 1; SET TRANSACTION READ ONLY": true, "SELECT 'TRANSACTION'": false, "START TRANSACTION": false, "CALL transaction()": false,
		"SELECT 1; SELECT 2": false,
	} {
		if have := MayChangeTransaction(text, Classify(text)); have != want {
			t.Errorf("%s\nhave: %v\nwant: %v", text, have, want)
		}
	}
}

func TestGivenNumbers_statements(t *testing.T) {
	for text, want := range map[string]string{
		"INSERT INTO t (a, b) VALUES (?, 7)":                             "[7] true",
		"INSERT t VALUES (1, 'x'), (-2, \"30 apples\"), (0x1F, 1e3)":     "[1 30 31 1000] true",
		"REPLACE INTO t (value) VALUE (NULL, DEFAULT, FALSE, TRUE)":      "[1] true",
		"INSERT INTO t () VALUES ()":                                     "[] true",
		"INSERT INTO t VALUES ROW(1), ROW(2)":                            "[1 2] true",
		"INSERT INTO t VALUES (NOW(), CURRENT_TIMESTAMP, UUID(), ?) ; ":  "[] false",
		"INSERT INTO t VALUES (NOW(), CURRENT_TIMESTAMP, UUID(), ?)":     "[] true",
		"INSERT INTO t VALUES (LAST_INSERT_ID(), 5)":                     "[5] true",
		"INSERT INTO t VALUES (1 + 1)":                                   "[] false",
		"INSERT INTO t VALUES (ABS(1))":                                  "[] false",
		"INSERT INTO t VALUES (@a)":                                      "[] false",
		"INSERT INTO t VALUES ((SELECT 1))":                              "[] false",
		"INSERT INTO t VALUES (DEFAULT(a))":                              "[] false",
		"INSERT INTO t VALUES ('a' '5')":                                 "[] false",
		"INSERT INTO t VALUES (1) ON DUPLICATE KEY UPDATE a = 2":         "[] false",
		"INSERT INTO t VALUES (1) RETURNING id":                          "[] false",
		"INSERT INTO t SELECT 5":                                         "[] false",
		"INSERT INTO t SET a = 5":                                        "[] false",
		"INSERT INTO t VALUES (/*!50000 5 */)":                           "[5] false",
		"INSERT INTO t VALUES (1":                                        "[1] true",
		"INSERT INTO t VALUES ('":                                        "[] false",
		"INSERT INTO free":                                               "[] false",
		"INSERT INTO t SET a = b":                                        "[] false",
		"INSERT INTO t (`":                                               "[] false",
		"INSERT INTO t VALUES (010, -5, 3)":                              "[10 3] true",
		"INSERT INTO t VALUES (0xFFFFFFFFFFFFFFFFFF, 7)":                 "[7] true",
		"INSERT INTO t VALUES (0b101)":                                   "[5] true",
		"INSERT INTO t VALUES ('" + strings.Repeat("x", maxGiven) + "')": "[] false",
	} {
		numbers, plain := mustParse(t, strings.Replace(text, " t ", " free ", 1), Options{}).GivenNumbers()
		if numbers == nil || !plain && len(numbers) > 0 && !strings.Contains(text, "/*!") {
			numbers = []float64{}
		}
		if have := fmt.Sprintf("%v %v", numbers, plain); have != want {
			t.Errorf("%.80s\nhave: %s\nwant: %s", text, have, want)
		}
	}
}

func TestReport_plain(t *testing.T) {
	p := mustParse(t, "INSERT INTO t (a) VALUES (?)", Options{})
	p.Report()
	if have, want := p.BindText(), "INSERT INTO t (a, `id`) VALUES (?, LAST_INSERT_ID(?))"; have != want {
		t.Errorf("have: %s\nwant: %s", have, want)
	}
	if have, want := p.Plain().BindText(), "INSERT INTO t (a, `id`) VALUES (?, ?)"; have != want {
		t.Errorf("have: %s\nwant: %s", have, want)
	}
	unguarded := Options{Tables: func(string, string) *Table { return &Table{KeyColumn: "id", Kind: KindInteger, Unguarded: true} }}
	p = mustParse(t, "INSERT INTO t (a) VALUES (?) ON DUPLICATE KEY UPDATE a = 2", unguarded)
	p.Report()
	if have, want := p.BindText(), "INSERT INTO t (a, `id`) VALUES (?, ?) ON DUPLICATE KEY UPDATE a = 2"; have != want {
		t.Errorf("have: %s\nwant: %s", have, want)
	}
}
