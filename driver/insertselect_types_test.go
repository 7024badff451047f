package driver

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/testserver"
)

// columnTypesOf lists columns of every type, each with expressions of values. The servers convert
// what doesn't fit.
var columnTypesOf = []struct{ column, values string }{
	{"n1 TINYINT", "-128|127|0"}, {"n2 TINYINT UNSIGNED", "255|0|7"}, {"n3 SMALLINT", "-32768|32767|1"}, {"n4 MEDIUMINT UNSIGNED", "16777215|0|9"},
	{"n5 INT", "-2147483648|2147483647|0"}, {"n6 BIGINT", "-9223372036854775808|9223372036854775807|-1"}, {"n7 BIGINT UNSIGNED", "18446744073709551615|9223372036854775808|0"},
	{"z INT(7) UNSIGNED ZEROFILL", "42|0|4294967295"}, {"bo BOOLEAN", "TRUE|FALSE|2"},
	{"de DECIMAL(65,30)", "12345678901234567890123456789012345.123456789012345678901234567891|-0.000000000000000000000000000001|0"},
	{"d0 DECIMAL(20)", "-99999999999999999999|5|0"}, {"f FLOAT", "0.1|-3.4028234e38|16777217"}, {"d DOUBLE", "0.1|-1.7976931348623157e308|5e-324"},
	{"b1 BIT(1)", "1|0|1"}, {"b9 BIT(9)", "b'101010101'|0|511"}, {"b64 BIT(64)", "18446744073709551615|0|1"},
	{"da DATE", "'2024-02-29'|'0000-00-00'|'2024-00-00'"}, {"ti TIME", "'-838:59:59'|'00:00:00'|'23:59:59'"}, {"t6 TIME(6)", "'-101:02:03.000001'|'838:59:58.999999'|'00:00:00.5'"},
	{"dt DATETIME", "'9999-12-31 23:59:59'|'0000-00-00 00:00:00'|'2024-03-31 02:30:00'"}, {"d3 DATETIME(3)", "'1000-01-01 00:00:00.001'|'2024-10-00 00:00:00'|'2024-10-27 02:30:00.999'"},
	{"d6 DATETIME(6)", "'2024-02-29 23:59:59.000001'|'2024-03-31 02:30:00'|'0001-01-01 00:00:00'"},
	{"ts TIMESTAMP(6) NULL", "'2024-06-30 23:59:59.123456'|'1970-01-02 00:00:00'|'2037-12-31 23:59:59'"}, {"t1 TIMESTAMP NULL", "'2024-06-30 12:00:00'|0|'2001-09-09 01:46:40'"},
	{"y YEAR", "1901|0|2155"}, {"c CHAR(9)", "'a b  '|''|'it''s'"}, {"v VARCHAR(30)", `'日本😀 '|''|'\\n\0"'`},
	{"bi BINARY(4)", "X'00FF27'|''|X'5C000000'"}, {"vb VARBINARY(9)", "X'0027FF5C'|''|'12'"},
	{"tt TINYTEXT", "'é'|''|'x'"}, {"tx TEXT", "REPEAT('日', 9000)|''|'x'"}, {"mt MEDIUMTEXT", "REPEAT('é', 33000)|''|'1'"}, {"lt LONGTEXT", "REPEAT('t', 66000)|''|'0'"},
	{"tb TINYBLOB", "X'FF00'|''|'x'"}, {"bl BLOB", "REPEAT(X'80', 60000)|''|X'00'"}, {"mb MEDIUMBLOB", "REPEAT(X'00FF', 33000)|''|X'C3'"}, {"lb LONGBLOB", "REPEAT(X'DEADBEEF', 17000)|''|X'5C27'"},
	{"e ENUM('x','é','1','','2')", "'é'|''|3"}, {"el ENUM('ö','1') CHARACTER SET latin1", "'ö'|2|'1'"}, {"s SET('a','é','c')", "'a,é'|''|7"},
	{"j JSON", `'{"a": [1, "é", null, 1.5]}'|'"x"'|'[]'`}, {"g GEOMETRY", "ST_GeomFromText('LINESTRING(0 0,1 1)')|ST_GeomFromText('POINT(1 2)', 4326)|Point(1, 2)"},
	{"l1 VARCHAR(30) CHARACTER SET latin1", "'ÄÖ€'|''|CONVERT(X'8190FF' USING latin1)"}, {"l2 VARCHAR(30) CHARACTER SET latin2", "'ŁĄ'|''|'x'"}, {"as1 VARCHAR(30) CHARACTER SET ascii", "'a\\\\b'|''|'~'"},
	{"u3 VARCHAR(30) CHARACTER SET utf8mb3", "'日本'|''|'€'"}, {"u2 VARCHAR(30) CHARACTER SET ucs2", "'日本é'|''|'x'"}, {"u16 TEXT CHARACTER SET utf16", "'日本😀'|''|'x'"}, {"u32 TEXT CHARACTER SET utf32", "'日本😀'|''|'x'"},
	{"gb VARCHAR(30) CHARACTER SET gbk", "'中文'|''|'x\\\\'"}, {"sj VARCHAR(30) CHARACTER SET sjis", "'表示'|''|'x'"}, {"cp VARCHAR(30) CHARACTER SET cp932", "'ソ表'|''|'x'"}, {"bg VARCHAR(30) CHARACTER SET big5", "'中功'|''|'x'"},
	{"kr VARCHAR(30) CHARACTER SET euckr", "'한국'|''|'x'"}, {"ko VARCHAR(30) CHARACTER SET koi8r", "'ключ'|''|'x'"}, {"he CHAR(30) CHARACTER SET hebrew", "'שלום'|''|'x'"}, {"gr TEXT CHARACTER SET greek", "'κλειδί'|''|'x'"},
}

// equalColumn compares a column of the tables a and r: numbers and times as they are, all else by
// its bytes.
func equalColumn(name, typ string) string {
	switch {
	case strings.HasPrefix(typ, "JSON"):
		return fmt.Sprintf("CAST(a.%[1]s AS CHAR) <=> CAST(r.%[1]s AS CHAR)", name)
	case strings.HasPrefix(typ, "GEOMETRY"):
		return fmt.Sprintf("ST_AsText(a.%[1]s) <=> ST_AsText(r.%[1]s) AND ST_SRID(a.%[1]s) <=> ST_SRID(r.%[1]s)", name)
	case strings.Contains(typ, "CHAR"), strings.Contains(typ, "TEXT"), strings.Contains(typ, "BLOB"), strings.Contains(typ, "BIN"), strings.HasPrefix(typ, "ENUM"), strings.HasPrefix(typ, "SET"):
		return fmt.Sprintf("HEX(a.%[1]s) <=> HEX(r.%[1]s)", name)
	}
	return fmt.Sprintf("a.%[1]s <=> r.%[1]s AND CAST(a.%[1]s AS CHAR) <=> CAST(r.%[1]s AS CHAR)", name)
}

var rowsAndDates = regexp.MustCompile(` at row [0-9]+|'[0-9]{4}-[^']*'`)

// Rows of every type arrive as the plain driver's INSERT … SELECT stores them in a table with
// AUTO_INCREMENT, and what it refuses is refused.
func TestInsertSelect_storesAsAutoIncrement(t *testing.T) {
	if testserver.Each(t, TestInsertSelect_storesAsAutoIncrement) {
		return
	}
	var declared, names []string
	for _, c := range columnTypesOf {
		declared = append(declared, c.column)
		names = append(names, c.column[:strings.IndexByte(c.column, ' ')])
	}
	columns := strings.Join(names, ", ")
	var differ strings.Builder
	for i, name := range names {
		fmt.Fprintf(&differ, ", IF(%s, NULL, '%s')", equalColumn(name, strings.TrimPrefix(declared[i], name+" ")), name)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i, params := range []string{
		"", "parseTime=true&interpolateParams=true&loc=Europe%2FBerlin", "interpolateParams=true&charset=latin1", "parseTime=true&charset=gbk",
	} {
		ours, plain := one(t, params, "sql_mode=%27%27")
		plain.SetMaxOpenConns(1)
		mustExec(t, plain, "SET NAMES utf8mb4")
		mustExec(t, plain, "DROP TABLE ruled")
		const table = " (id BIGINT NOT NULL %sPRIMARY KEY, k INT, %s) CHARACTER SET utf8mb4 ROW_FORMAT=DYNAMIC"
		mustExec(t, plain, "CREATE TABLE ruled"+fmt.Sprintf(table, "", strings.Join(declared, ", ")))
		mustExec(t, plain, "CREATE TABLE auto"+fmt.Sprintf(table, "AUTO_INCREMENT ", strings.Join(declared, ", ")))
		mustExec(t, plain, "CREATE TABLE src"+fmt.Sprintf(table, "AUTO_INCREMENT ", strings.Join(declared, ", ")))
		for k := range 8 {
			values := make([]string, len(columnTypesOf))
			for j, c := range columnTypesOf {
				if all := strings.Split(c.values, "|"); k < 3 {
					values[j] = all[k]
				} else if values[j] = all[random.IntN(3)]; random.IntN(4) == 0 {
					values[j] = "NULL"
				}
			}
			mustExec(t, plain, fmt.Sprintf("INSERT INTO src (k, %s) VALUES (%d, %s)", columns, k, strings.Join(values, ", ")))
		}
		run := func(db *sql.DB, query string, mode string) string {
			ctx := context.Background()
			conn := must(db.Conn(ctx))(t)
			defer conn.Close()
			variables := "SELECT CONCAT_WS(' ', @@character_set_client, @@character_set_connection, @@character_set_results, @@sql_select_limit, @@autocommit)"
			exec := func(query string) (sql.Result, error) { return conn.ExecContext(ctx, query) }
			must(exec("SET sql_mode = '" + mode + "'"))(t)
			var before, after string
			noError(t, conn.QueryRowContext(ctx, variables).Scan(&before))
			if i%2 == 1 {
				_, _ = exec("BEGIN")
			}
			res, err := exec(query)
			if i%2 == 1 {
				_, _ = exec("COMMIT")
			}
			if scanErr := conn.QueryRowContext(ctx, variables).Scan(&after); scanErr != nil || before != after {
				t.Errorf("%s: the session was %s and is %s, %v", params, before, after, scanErr)
			}
			if err != nil {
				// The rows that are counted, and what the server makes of a zero date, depend on the plan.
				return rowsAndDates.ReplaceAllString(strings.ReplaceAll(err.Error(), "ruled", "auto"), "")
			}
			n, _ := res.RowsAffected()
			return fmt.Sprint(n, " rows")
		}
		for mode, all := range map[string][]string{"": {"TRUE"}, "TRADITIONAL": {"k = 0", "k = 1", "k = 2"}, "STRICT_ALL_TABLES": {"k <> 2"}} {
			for _, which := range all {
				mustExec(t, plain, "DELETE FROM auto")
				mustExec(t, plain, "DELETE FROM ruled")
				query := "INSERT INTO %s (k, " + columns + ") SELECT k, " + columns + " FROM src WHERE " + which + " ORDER BY k"
				want, have := run(plain, fmt.Sprintf(query, "auto"), mode), run(ours, fmt.Sprintf(query, "ruled"), mode)
				if have != want {
					t.Errorf("%s, %q, %s\nhave: %s\nwant: %s", params, mode, which, have, want)
				}
				mustExec(t, plain, "SET sql_mode = ''")
				equal(t, number(t, plain, "SELECT COUNT(*) FROM auto"), number(t, plain, "SELECT COUNT(*) FROM auto a JOIN ruled r ON a.k = r.k"), params, mode, which, "rows")
				equal(t, column(t, plain, "SELECT CONCAT_WS(' ', 'row', a.k"+differ.String()+") AS differs FROM auto a JOIN ruled r ON a.k = r.k HAVING differs LIKE '% % %'"), "", params, mode, which, "what differs")
			}
		}
	}
}
