package driver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/testserver"
)

// readingCase is one text, sent after others on the same connection. Of the rows
// in table ruled some columns are held: in the column's place stands "key" where
// the row must have a generated one. Without want the text must be refused, and
// nothing sent.
type readingCase struct {
	name   string
	on     testserver.Kind // the only kind of server that has what the case is about
	setup  []string
	query  string
	args   []any
	want   []string
	params string
}

var readingCases = []readingCase{
	{name: "SET STATEMENT twice", on: testserver.KindMariaDB, query: "SET STATEMENT max_statement_time = 1 FOR SET STATEMENT lock_wait_timeout = 5 FOR INSERT INTO ruled (a) VALUES (1)", want: []string{"key 1 <nil>"}},
	{name: "FOR in brackets", on: testserver.KindMariaDB, query: "SET STATEMENT max_statement_time = (SELECT 1 FOR UPDATE) FOR INSERT INTO ruled (a) VALUES (1)", want: []string{"key 1 <nil>"}},
	{name: "IGNORE as a value", on: testserver.KindMariaDB, query: "INSERT INTO ruled (id, a) VALUES (IGNORE, IGNORE), (DEFAULT, 2)", want: []string{"key <nil> <nil>", "key 2 <nil>"}},
	{name: "RETURNING as an alias", on: testserver.KindMySQL, query: "INSERT INTO ruled (a) SELECT returning.a AS returning FROM (SELECT 3 AS a) returning", want: []string{"key 3 <nil>"}},
	{name: "RETURNING in a value", on: testserver.KindMySQL, setup: []string{"ALTER TABLE ruled ADD returning INT DEFAULT 0"}, query: "INSERT INTO ruled SET a = NOT returning, s = 'x'", want: []string{"key 1 x"}},
	{name: "VALUES ROW with UNION", on: testserver.KindMySQL, query: "INSERT INTO ruled (a) VALUES ROW(1) UNION SELECT 2 ORDER BY 1 LIMIT 1", want: []string{"key 1 <nil>"}},
	{name: "VALUES ROW in brackets", on: testserver.KindMySQL, query: "INSERT INTO ruled (a) (VALUES ROW(3), ROW(4))", want: []string{"key 3 <nil>", "key 4 <nil>"}},
	{name: "a key before a word", query: "INSERT INTO ruled SET a='1'ON DUPLICATE KEY UPDATE a=LAST_INSERT_ID()", want: []string{"key 1 <nil>"}},
	{name: "an argument before a word", query: "INSERT INTO ruled SET a=?, id=(NULL)ON DUPLICATE KEY UPDATE a=2", args: []any{1}, want: []string{"key 1 <nil>"}},
	{name: "a decimal that ends in a dot", query: "INSERT INTO ruled (a, id) VALUES (1, 7/1.)", want: []string{"key 1 <nil>"}},
	{name: "VALUES and UNION", on: testserver.KindMariaDB, query: "INSERT INTO ruled (a) VALUES (?) UNION SELECT 2", args: []any{1}, want: []string{"key 1 <nil>", "key 2 <nil>"}},

	{name: "gbk", params: "charset=gbk", query: "INSERT INTO ruled (s, a) VALUES ('\xbf\x5c', 1)"},
	{name: "gbk, ASCII", params: "charset=gbk", query: "INSERT INTO ruled (s, a) VALUES ('x', 1)", want: []string{"key 1 x"}},
	{name: "gbk, an argument", params: "charset=gbk", query: "INSERT INTO ruled (s, a) VALUES (?, 1)", args: []any{"\xbf\x5c"}, want: []string{"key 1 縗"}},
	{name: "gbk, a row in a string", params: "charset=gbk", query: "INSERT INTO ruled (id, a, s) VALUES (NULL, 1, '\xbf\x5c, 5), (NULL, 2')"},
	{name: "gbk by SET NAMES", setup: []string{"SET NAMES gbk"}, query: "INSERT INTO ruled (s) VALUES ('\xbf\x5c')"},
	{name: "gbk by SET CHARACTER SET", setup: []string{"SET CHARACTER SET gbk"}, query: "INSERT INTO ruled (s) VALUES ('\xbf\x5c')"},
	{name: "gbk by SET character_set_client", setup: []string{"INSERT INTO ruled (s) VALUES ('ü')", "DELETE FROM ruled", "SET character_set_client = 'gbk'"}, query: "INSERT INTO ruled (s) VALUES ('\xbf\x5c')"},
	{name: "gbk and back", params: "charset=gbk", setup: []string{"INSERT INTO ruled (s) VALUES ('x')", "DELETE FROM ruled", "SET NAMES utf8mb4"}, query: "INSERT INTO ruled (s) VALUES ('ü\\'')", want: []string{"key <nil> ü'"}},
	{name: "gbk by EXECUTE", setup: []string{"INSERT INTO ruled (s) VALUES ('ü')", "DELETE FROM ruled", "SET @q = CONCAT('SET NAM', 'ES gbk')", "PREPARE p FROM @q", "DO 1; EXECUTE p"}, query: "INSERT INTO ruled (s) VALUES ('\xbf\x5c')"},
	{name: "big5", params: "charset=big5", query: "INSERT INTO ruled (s) VALUES ('\xa6\xa8\xa5\x5c')"},
	{name: "sjis, columns", params: "charset=sjis", query: "INSERT INTO ruled (a, \x83\x60, s) VALUES (3, a + 1, 'x')"},
	{name: "binary", setup: []string{"SET NAMES binary"}, query: "INSERT INTO ruled (s) VALUES ('ü')"},

	{name: "latin1, a blank", params: "charset=latin1", query: "\xa0INSERT\xa0INTO\xa0ruled\xa0(a)\xa0VALUES (1\xa0)"},
	{name: "latin1, a blank before the dot", params: "charset=latin1", query: "INSERT INTO app\xa0.ruled (a) VALUES (1)"},
	{name: "latin1, a blank after 0", params: "charset=latin1", query: "INSERT INTO ruled (id, a) VALUES (0\xa0, 1)"},
	{name: "latin1, a letter", params: "charset=latin1", query: "INSERT INTO ruled (s) VALUES ('\xe9')", want: []string{"key <nil> é"}},
	{name: "no UTF-8 after the name", query: "INSERT INTO ruled\xc2(a) VALUES (1)"},
	{name: "no UTF-8 in the name", query: "INSERT INTO `ruled\xc2` (a) VALUES (1)"},
	{name: "a NUL at the end", query: "INSERT INTO ruled (a) VALUES (1)\x00", want: []string{"key 1 <nil>"}},

	{name: "MSSQL", on: testserver.KindMariaDB, setup: []string{"SET sql_mode = 'MSSQL'"}, query: "INSERT INTO [ruled] ([a]) VALUES (1)", want: []string{"key 1 <nil>"}},
	{name: "EMPTY_STRING_IS_NULL", on: testserver.KindMariaDB, setup: []string{"SET sql_mode = 'EMPTY_STRING_IS_NULL'"}, query: "INSERT INTO ruled (id, a) VALUES ('', 1), (?, 2)", args: []any{""}, want: []string{"key 1 <nil>", "key 2 <nil>"}},
	{name: "comments of versions, the table", query: "INSERT INTO /*!50000 ruled */ /*!99999 .x */ (a) VALUES (1)"},
	{name: "a comment of a version to come", query: "/*!99999 INSERT INTO ruled (a) VALUES (1) */"},
	{name: "a comment that hides the table", query: "INSERT INTO /*!99999 other */ /*!50000 ruled */ (a) VALUES (1)"},
	{name: "comments of versions, the rows", query: "/*!50000 INSERT INTO ruled (a) VALUES (1) */ /*!99999 , (2) */"},
	{name: "comments of versions, the values", query: "INSERT INTO ruled (a, s) VALUES (1 /*!99999 , 7, 8 */ /*!50000 , 2 */)"},
	{name: "sql_mode in a hint", on: testserver.KindMySQL, query: "INSERT /*+ SET_VAR(sql_mode='NO_AUTO_VALUE_ON_ZERO') */ INTO ruled (id, a) VALUES (0, 1)"},
	{name: "sql_mode in SET STATEMENT", on: testserver.KindMariaDB, query: "SET STATEMENT sql_mode='NO_AUTO_VALUE_ON_ZERO' FOR INSERT INTO ruled (id, a) VALUES (0, 1)"},
	{name: "no key in the file", query: "LOAD DATA LOCAL INFILE 'x' INTO TABLE ruled (a)"},
	{name: "zeros", query: "INSERT INTO ruled (id) VALUES (_latin1'0'), ('0' COLLATE utf8mb4_bin), (_binary'0'), (0.5e0)", want: []string{"key <nil> <nil>", "key <nil> <nil>", "key <nil> <nil>", "key <nil> <nil>"}},
}

// TestReading_asTheServer: what decides about a text is read as the server
// reads it, or the text is refused.
func TestReading_asTheServer(t *testing.T) {
	if testserver.Each(t, TestReading_asTheServer) {
		return
	}
	for _, c := range readingCases {
		t.Run(c.name, func(t *testing.T) {
			if c.on != "" {
				testserver.Needs(t, c.on, c.name)
			}
			c.run(t)
		})
	}
}

func (c *readingCase) run(t *testing.T) {
	ctx := t.Context()
	// The base sets no character set that it cannot name a collation of: SET
	// NAMES does it.
	params, setup := []string{"multiStatements=true"}, c.setup
	for param := range strings.SplitSeq(c.params, "&") {
		if charset, ok := strings.CutPrefix(param, "charset="); ok {
			params = append(params, "charset="+charset)
		} else if mode, ok := strings.CutPrefix(param, "sql_mode="); ok {
			setup = append([]string{"SET sql_mode = " + mode}, setup...)
		}
	}
	ours, plain, _ := openFilled(t, params...)
	mustExec(t, plain, "ALTER TABLE ruled ADD s VARCHAR(60) CHARACTER SET utf8mb4")
	conn, err := ours.Conn(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, query := range setup {
		if _, err := conn.ExecContext(ctx, query); err != nil {
			t.Fatalf("%q: %v", query, err)
		}
	}
	_, err = conn.ExecContext(ctx, c.query, c.args...)
	if c.want == nil && !errors.Is(err, ErrUnsupportedStatement) {
		t.Errorf("%q\nhave: %v\nwant: refused", c.query, err)
	}
	if c.want != nil && err != nil {
		t.Errorf("%q\n%v", c.query, err)
	}
	if have := readingRows(t, plain); !slices.EqualFunc(have, c.want, matches) {
		t.Errorf("%q\nhave: %q\nwant: %q", c.query, have, c.want)
	}
}

// matches compares rows; a star stands for whatever the server makes of a text.
func matches(have, want string) bool {
	prefix, any := strings.CutSuffix(want, "*")
	return have == want || any && strings.HasPrefix(have, prefix)
}

func readingRows(t *testing.T, db *sql.DB) (rows []string) {
	t.Helper()
	conn := must(db.Conn(context.Background()))(t)
	defer conn.Close()
	mustExec(t, conn, "SET NAMES utf8mb4")
	found := must(conn.QueryContext(context.Background(), "SELECT id, a, s FROM ruled ORDER BY id"))(t)
	defer found.Close()
	for found.Next() {
		var id int64
		var a, s any
		noError(t, found.Scan(&id, &a, &s))
		if b, ok := s.([]byte); ok {
			s = string(b)
		}
		key := fmt.Sprint(id)
		if id != 0 {
			key = "key"
		}
		if b, ok := a.([]byte); ok {
			a = string(b)
		}
		rows = append(rows, fmt.Sprint(key, " ", a, " ", s))
	}
	noError(t, found.Err())
	return rows
}
