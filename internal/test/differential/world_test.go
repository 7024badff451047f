package differential

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	testserver "github.com/shardkey/shardkey/internal/test/server"
)

// world is what the random statements of one run find: a key column, DSN parameters, a sql_mode,
// and triggers, functions and views.
type world struct {
	variant
	mode     string
	kind     tableKind
	triggers []object
	preset   string    // the default of the column a of t
	second   []object  // triggers of the second database
	columns  [2]string // the types of the columns v and w of table d
	typed    []typedColumn
	features serverFeatures
}

// tableKind is what table t is in a world.
type tableKind string

const (
	ordinary  tableKind = ""
	view      tableKind = "view" // of table b
	versioned tableKind = "system-versioned"
	myISAM    tableKind = "MyISAM"
)

// base returns the name of the table that stores the rows of t.
func (w *world) base() string {
	if w.kind == view {
		return "b"
	}
	return "t"
}

// object is a trigger, function, procedure or view, with the rest of its CREATE statement.
type object struct{ kind, name, ddl string }

func (o object) create() string { return "CREATE " + o.kind + " " + o.name + " " + o.ddl }

// serverFeatures are what the generator needs to know of a server.
type serverFeatures struct {
	mariaDB, mySQL bool
	skips          bool // triggers may skip rows
}

func featuresOf(t testing.TB) serverFeatures {
	t.Helper()
	return serverFeatures{
		mariaDB: testserver.Has(t, testserver.MariaDB, "RETURNING"), mySQL: testserver.Has(t, testserver.MySQL, "row aliases"),
		skips: testserver.Has(t, "MariaDB 11.8", "triggers that skip rows"),
	}
}

// typedColumn is a column of the table ty, which has a column of every type.
type typedColumn struct {
	name, ddl string
	has       func(serverFeatures) bool // nil: each server
	values    [4]string                 // of its rows but the first, which is NULL
}

func isMariaDB(f serverFeatures) bool { return f.mariaDB }
func isMySQL(f serverFeatures) bool   { return f.mySQL }

var typedColumns = []typedColumn{
	{"tiny", "TINYINT", nil, [4]string{"0", "7", "-128", "127"}},
	{"utiny", "TINYINT UNSIGNED", nil, [4]string{"0", "7", "255", "1"}},
	{"small", "SMALLINT", nil, [4]string{"0", "7", "-32768", "32767"}},
	{"medium", "MEDIUMINT UNSIGNED", nil, [4]string{"0", "7", "16777215", "48"}},
	{"num", "INT", nil, [4]string{"0", "42", "-2147483648", "2147483647"}},
	{"unum", "INT UNSIGNED", nil, [4]string{"0", "42", "4294967295", "2147483648"}},
	{"zf", "INT(6) ZEROFILL", nil, [4]string{"0", "42", "1234567", "7"}},
	{"big", "BIGINT", nil, [4]string{"0", "42", "-9223372036854775808", "9223372036854775807"}},
	{"ubig", "BIGINT UNSIGNED", nil, [4]string{"0", "42", "18446744073709551615", "9223372036854775808"}},
	{"deci", "DECIMAL(20,6)", nil, [4]string{"0", "1.5", "-12345678901234.567891", "99999999999999.999999"}},
	{"deci0", "DECIMAL(10,0) UNSIGNED", nil, [4]string{"0", "48", "9999999999", "7"}},
	{"flt", "FLOAT", nil, [4]string{"0", "1.5", "0.1", "-3.25e20"}},
	{"dbl", "DOUBLE", nil, [4]string{"0", "0.1", "-1e-300", "1.7976931348623157e308"}},
	{"bit1", "BIT(1)", nil, [4]string{"0", "1", "1", "0"}},
	{"bit16", "BIT(16)", nil, [4]string{"0", "261", "65535", "48"}},
	{"bit64", "BIT(64)", nil, [4]string{"0", "1", "18446744073709551615", "49"}},
	{"dat", "DATE", nil, [4]string{"'2026-01-02'", "'1000-01-01'", "'9999-12-31'", "'0000-00-00'"}},
	{"dt", "DATETIME", nil, [4]string{"'2026-01-02 03:04:05'", "'1000-01-01'", "'9999-12-31 23:59:59'", "'0000-00-00'"}},
	{"dt6", "DATETIME(6)", nil, [4]string{"'2026-01-02 03:04:05.123456'", "'1999-12-31 23:59:59.999999'", "'2026-01-02'", "'2026-00-01'"}},
	{"ts", "TIMESTAMP NULL", nil, [4]string{"'2026-01-02 03:04:05'", "'1971-01-01'", "'2037-12-31 23:59:59'", "'0000-00-00'"}},
	{"ts3", "TIMESTAMP(3) NULL", nil, [4]string{"'2026-01-02 03:04:05.123'", "'1971-01-01'", "'2037-12-31 23:59:59.999'", "'2000-01-01'"}},
	{"tim", "TIME", nil, [4]string{"'12:34:57'", "'-838:59:59'", "'838:59:59'", "'00:00:00'"}},
	{"tim6", "TIME(6)", nil, [4]string{"'12:34:56.789000'", "'-00:00:00.000001'", "'23:59:59.999999'", "'00:00:00'"}},
	{"yr", "YEAR", nil, [4]string{"2026", "1901", "2155", "0"}},
	{"en", "ENUM('a','b','7','x y')", nil, [4]string{"'a'", "'b'", "'7'", "''"}},
	{"st", "SET('x','y','z')", nil, [4]string{"'x'", "'x,z'", "''", "'y'"}},
	{"js", "JSON", nil, [4]string{"'1'", "'\"7\"'", "'{\"a\": [1, 2.50]}'", "'null'"}},
	{"ch", "CHAR(10)", nil, [4]string{"'7'", "'abc '", "''", "'5x'"}},
	{"vc", "VARCHAR(40)", nil, [4]string{"'12'", "'abc'", "'1e2'", "'ключ '"}},
	{"la", "VARCHAR(20) CHARACTER SET latin1", nil, [4]string{"'12'", "'é'", "''", "'-3'"}},
	{"gb", "VARCHAR(20) CHARACTER SET gbk", nil, [4]string{"'12'", "'中'", "''", "'x'"}},
	{"bi", "BINARY(4)", nil, [4]string{"'12'", "X'00FF'", "''", "'abcd'"}},
	{"vb", "VARBINARY(20)", nil, [4]string{"'12'", "X'00FF'", "''", "X'31'"}},
	{"bl", "BLOB", nil, [4]string{"'12'", "X'00FF'", "''", "'abcd'"}},
	{"tx", "TEXT", nil, [4]string{"'12'", "'2026-01-02'", "''", "'x'"}},
	{"pt", "POINT", nil, [4]string{"POINT(1, 2)", "POINT(0, 0)", "NULL", "POINT(-1, 0.1)"}},
	{"ui", "UUID", isMariaDB, [4]string{"'123e4567-e89b-12d3-a456-426655440000'", "'00000000-0000-0000-0000-000000000000'", "NULL", "'ffffffff-ffff-ffff-ffff-fffffffffffe'"}},
	{"i6", "INET6", isMariaDB, [4]string{"'::1'", "'2001:db8::ff'", "'::ffff:1.2.3.4'", "NULL"}},
	{"i4", "INET4", isMariaDB, [4]string{"'1.2.3.4'", "'0.0.0.0'", "'255.255.255.255'", "NULL"}},
}

func typedOf(f serverFeatures) (all []typedColumn) {
	for _, c := range typedColumns {
		if c.has == nil || c.has(f) {
			all = append(all, c)
		}
	}
	return all
}

// newWorld returns a random world. The number i selects the shape, so that each is used.
func newWorld(r *rand.Rand, f serverFeatures, i int) *world {
	w := &world{features: f}
	pool := slices.Concat(shapes, randomShapes)
	w.shape = pool[i%len(pool)]
	one := func(n int) bool { return r.IntN(n) == 0 }
	w.prepared, w.tx = one(2), one(4)
	w.params = randomParams(r)
	w.mode = randomMode(r, f, w.shape.noID)
	if w.typed = typedOf(f); one(3) {
		w.kind = []tableKind{view, versioned, myISAM}[r.IntN(3)]
	}
	if w.kind == versioned && !f.mariaDB {
		w.kind = view
	}
	// An upsert that sets a column from NULL to NULL counts one row if its default isn't NULL.
	w.preset = []string{"NULL", "5"}[r.IntN(2)]
	for j := range w.columns {
		w.columns[j] = w.typed[r.IntN(len(w.typed))].ddl
	}
	if !one(3) {
		w.addTriggers(r)
	}
	if one(2) {
		w.second = []object{{"TRIGGER", "{second}.tr", "BEFORE INSERT ON {second}.t FOR EACH ROW " + []string{"SET NEW.a = COALESCE(NEW.a, 6)", "INSERT INTO {db}.log (what, k) VALUES ('second', 1)",
			"IF NEW.a = 13 THEN SIGNAL SQLSTATE '45000'; END IF", "SET @last = LAST_INSERT_ID(32)"}[r.IntN(4)]}}
	}
	return w
}

// randomShapes are more shapes of keys for random statements.
var randomShapes = []shape{
	{name: "BIGINT UNSIGNED", plain: "BIGINT UNSIGNED", column: "BIGINT UNSIGNED NOT NULL PRIMARY KEY", keys: "wide"},
	{name: "BIGINT again", column: "BIGINT PRIMARY KEY", keys: "wide"},
	{name: "INT UNSIGNED", plain: "INT UNSIGNED", column: "INT UNSIGNED NOT NULL PRIMARY KEY", keys: "narrow"},
	{name: "BIGINT UNSIGNED AUTO_INCREMENT", plain: "BIGINT UNSIGNED", column: "BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY", keys: "wide"},
	{name: "AUTO_INCREMENT again", column: "BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY", keys: "wide"},
}

func randomParams(r *rand.Rand) string {
	var all []string
	for _, param := range []string{"clientFoundRows=true", "columnsWithAlias=true", "parseTime=true", "interpolateParams=true", "multiStatements=true"} {
		if r.IntN(4) == 0 {
			all = append(all, param)
		}
	}
	one := func(words ...string) string { return words[r.IntN(len(words))] }
	if r.IntN(4) == 0 {
		all = append(all, one("charset=latin1", "charset=utf8mb4", "collation=utf8mb4_bin", "collation=latin1_swedish_ci", "charset=utf8"))
	}
	if r.IntN(6) == 0 {
		all = append(all, one("time_zone=%27%2B05%3A00%27", "autocommit=0", "timeTruncate=1s", "checkConnLiveness=false", "maxAllowedPacket=0", "loc=Asia%2FShanghai"))
	}
	return strings.Join(all, "&")
}

// randomMode returns a sql_mode. "DEFAULT" is strict.
func randomMode(r *rand.Rand, f serverFeatures, noZero bool) string {
	one := func(words ...string) string { return words[r.IntN(len(words))] }
	mode := one("DEFAULT", "DEFAULT", "", "'STRICT_TRANS_TABLES'", "'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ZERO_DATE,NO_ZERO_IN_DATE'",
		"'ERROR_FOR_DIVISION_BY_ZERO,NO_ZERO_DATE'", "'TRADITIONAL'", "'STRICT_TRANS_TABLES,ANSI_QUOTES'", "'NO_BACKSLASH_ESCAPES'", "'STRICT_TRANS_TABLES,NO_UNSIGNED_SUBTRACTION'",
		"'STRICT_TRANS_TABLES,PAD_CHAR_TO_FULL_LENGTH'", "'PIPES_AS_CONCAT,IGNORE_SPACE,HIGH_NOT_PRECEDENCE'", "'ALLOW_INVALID_DATES'", "'STRICT_TRANS_TABLES,REAL_AS_FLOAT'")
	switch {
	case mode == "":
		mode = "''"
	case !noZero && r.IntN(12) == 0:
		mode = one("'NO_AUTO_VALUE_ON_ZERO'", "'STRICT_TRANS_TABLES,NO_AUTO_VALUE_ON_ZERO'")
	case f.mariaDB && r.IntN(20) == 0:
		mode = one("'STRICT_TRANS_TABLES,SIMULTANEOUS_ASSIGNMENT'", "'STRICT_TRANS_TABLES,EMPTY_STRING_IS_NULL'", "'TIME_ROUND_FRACTIONAL,STRICT_TRANS_TABLES'")
	case f.mySQL && r.IntN(20) == 0:
		mode = "'TIME_TRUNCATE_FRACTIONAL,STRICT_TRANS_TABLES'"
	}
	return mode
}

// createCommon creates what all worlds have: tables, functions and views.
func createCommon(t *testing.T, s side, f serverFeatures) {
	t.Helper()
	s.createTables(t)
	conn := must(s.db.Conn(t.Context()))(t)
	defer conn.Close()
	names, types := []string{"n"}, []string{"n INT PRIMARY KEY"}
	rows := [5][]string{{"1"}, {"2"}, {"3"}, {"4"}, {"5"}}
	for _, c := range typedOf(f) {
		names, types = append(names, c.name), append(types, c.name+" "+c.ddl)
		rows[0] = append(rows[0], "NULL")
		for i, v := range c.values {
			rows[i+1] = append(rows[i+1], v)
		}
	}
	var values []string
	for _, row := range rows {
		values = append(values, "("+strings.Join(row, ", ")+")")
	}
	ddl := []string{
		"SET SESSION sql_mode = ''",
		"SET NAMES utf8mb4",
		"CREATE TABLE one (a INT)",
		"INSERT INTO one VALUES (1), (2)",
		"CREATE TABLE log (n BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, what VARCHAR(20), k BIGINT, l BIGINT) AUTO_INCREMENT = 6000000",
		"CREATE TABLE ty (" + strings.Join(types, ", ") + ")",
		"INSERT INTO ty (" + strings.Join(names, ", ") + ") VALUES " + strings.Join(values, ", "),
	}
	for _, o := range slices.Concat(functions, views) {
		ddl = append(ddl, o.create())
	}
	for _, statement := range ddl {
		mustExec(t, conn, statement)
	}
}

// create creates what differs from world to world.
func (w *world) create(t *testing.T, s side, on *sql.Conn) {
	t.Helper()
	ddl := []string{
		"SET SESSION sql_mode = ''",
		"USE " + s.database,
		"DROP TABLE IF EXISTS d, b, t, {second}.t",
		"DROP VIEW IF EXISTS t",
		s.table("{db}."+w.base(), 1_000_000) + map[tableKind]string{versioned: " WITH SYSTEM VERSIONING", myISAM: " ENGINE=MyISAM"}[w.kind],
		fmt.Sprintf("ALTER TABLE %s ALTER a SET DEFAULT %s", w.base(), w.preset),
		fmt.Sprintf("CREATE TABLE d (id %s, v %s NULL, w %s NULL) AUTO_INCREMENT = 4000000", s.keyColumn(), w.columns[0], w.columns[1]),
		s.table("{second}.t", 1_700_000),
		"ALTER TABLE {second}.t MODIFY a INT NULL DEFAULT 8 AFTER s",
	}
	if w.kind == view {
		ddl = append(ddl, "CREATE VIEW t AS SELECT id, a, u, s FROM b")
	}
	for _, name := range strings.Fields(ReadAll(t, on, "SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = '"+s.database+"'")) {
		ddl = append(ddl, "DROP TRIGGER IF EXISTS "+strings.Trim(name, "[]"))
	}
	for _, o := range slices.Concat(w.triggers, w.second) {
		ddl = append(ddl, o.create())
	}
	for _, statement := range ddl {
		mustExec(t, on, s.expand(statement))
	}
}

// table returns a definition of a table with the columns of t.
func (s side) table(name string, first int) string {
	more := s.shape.moreColumns
	if s.plain {
		more = ""
	}
	return fmt.Sprintf("CREATE TABLE %s (id {key}, a INT, u INT UNIQUE, s VARCHAR(60)%s) AUTO_INCREMENT = %d", name, more, first)
}

// sessionVariables are what programs set. The first value may be any other than the default.
var sessionVariables = []struct {
	name   string
	values []string
	has    func(serverFeatures) bool // nil: each server
}{
	{"sql_select_limit", []string{"0", "1", "2"}, nil},
	{"sql_auto_is_null", []string{"1"}, nil},
	{"auto_increment_increment", []string{"3", "10"}, nil},
	{"auto_increment_offset", []string{"2"}, nil},
	{"sql_safe_updates", []string{"1"}, nil},
	{"sql_big_selects", []string{"0"}, nil},
	{"max_error_count", []string{"0"}, nil},
	{"sql_notes", []string{"0"}, nil},
	{"sql_warnings", []string{"1"}, nil},
	{"sql_quote_show_create", []string{"0"}, nil},
	{"unique_checks", []string{"0"}, nil},
	{"foreign_key_checks", []string{"0"}, nil},
	{"group_concat_max_len", []string{"10"}, nil},
	{"div_precision_increment", []string{"0", "9"}, nil},
	{"time_zone", []string{"'+05:00'", "'-11:30'"}, nil},
	{"lc_time_names", []string{"'de_DE'"}, nil},
	{"character_set_client", []string{"latin1", "utf8mb4"}, nil},
	{"character_set_results", []string{"latin1", "NULL"}, nil},
	{"character_set_connection", []string{"latin1", "utf8mb4"}, nil},
	{"collation_connection", []string{"utf8mb4_bin", "latin1_swedish_ci"}, nil},
	{"low_priority_updates", []string{"1"}, nil},
	{"old_alter_table", []string{"1"}, func(f serverFeatures) bool { return !f.mariaDB }},
	{"sql_generate_invisible_primary_key", []string{"1"}, isMySQL},
	{"show_gipk_in_create_table_and_information_schema", []string{"0"}, isMySQL},
	{"windowing_use_high_precision", []string{"0"}, isMySQL},
	{"cte_max_recursion_depth", []string{"2"}, isMySQL},
	{"max_recursive_iterations", []string{"2"}, isMariaDB},
	{"check_constraint_checks", []string{"0"}, isMariaDB},
	{"standard_compliant_cte", []string{"0"}, isMariaDB},
	{"sql_if_exists", []string{"1"}, isMariaDB},
	{"system_versioning_alter_history", []string{"KEEP"}, isMariaDB},
	{"optimizer_switch", []string{"'derived_merge=off'", "'materialization=off'"}, nil},
	{"big_tables", []string{"1"}, nil},
	{"transaction_read_only", []string{"0"}, isMySQL},
}

// defaults returns the statement that resets the session's variables.
func (w *world) defaults() string {
	var all []string
	for _, v := range sessionVariables {
		if v.has == nil || v.has(w.features) {
			all = append(all, v.name+" = DEFAULT")
		}
	}
	return "SET " + strings.Join(all, ", ")
}

var functions = []object{
	{"FUNCTION", "f1", "(x INT) RETURNS INT DETERMINISTIC NO SQL RETURN x + 1"},
	{"FUNCTION", "fi", "(x INT) RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN INSERT INTO free (a) VALUES (x); RETURN x; END"},
	{"FUNCTION", "fl", "() RETURNS BIGINT DETERMINISTIC READS SQL DATA RETURN LAST_INSERT_ID()"},
	{"FUNCTION", "fs", "(x INT) RETURNS INT DETERMINISTIC READS SQL DATA RETURN LAST_INSERT_ID(x)"},
	{"FUNCTION", "fk", "(x INT) RETURNS INT DETERMINISTIC NO SQL BEGIN KILL CONNECTION_ID(); RETURN x; END"},
	{"FUNCTION", "fm", "() RETURNS INT DETERMINISTIC READS SQL DATA RETURN (SELECT MAX(a) FROM src)"},
	{"PROCEDURE", "pf", "() INSERT INTO free (a) VALUES (8)"},
	{"PROCEDURE", "pl", "() INSERT INTO log (what, k) VALUES ('pl', LAST_INSERT_ID())"},
}

var views = []object{
	{"VIEW", "vl", "AS SELECT LAST_INSERT_ID() AS l"},
	{"VIEW", "vf", "AS SELECT fl() AS l"},
	{"VIEW", "vs", "AS SELECT id, a, s FROM src"},
	{"VIEW", "vt", "AS SELECT id, a, u, s FROM t"},
}

// addTriggers adds some triggers.
func (w *world) addTriggers(r *rand.Rand) {
	for _, table := range []string{"t", "t", "t", "child", "free", "d"} {
		time, event := []string{"BEFORE", "AFTER"}[r.IntN(2)], []string{"INSERT", "INSERT", "UPDATE", "DELETE"}[r.IntN(4)]
		name := strings.ToLower("tr_" + table + "_" + time + "_" + event)
		if slices.ContainsFunc(w.triggers, func(o object) bool { return o.name == name }) {
			continue
		}
		body := triggerBody(r, table, time, event, w.shape.noID, w.features)
		if table == "t" {
			table = w.base()
		}
		w.triggers = append(w.triggers, object{"TRIGGER", name, fmt.Sprintf("%s %s ON %s FOR EACH ROW %s", time, event, table, body)})
	}
}

// signals are the numbers of errors that a trigger raises. Some make shardkey look whether the
// statement itself was refused.
var signals = []int{1644, 1048, 1054, 1136, 1143, 1235, 1243, 1348, 1364, 1390, 1461, 1471, 1615, 3988}

func triggerBody(r *rand.Rand, table, time, event string, noID bool, f serverFeatures) string {
	bodies := []string{
		"INSERT INTO log (what, k) VALUES ('row', 1)",
		"INSERT INTO log (what, k) VALUES ('last', LAST_INSERT_ID())",
		"SET @runs = 1",
		"SET @last = LAST_INSERT_ID(31)",
		"SET @inserted = fi(3)",
		"SET @read = fl()",
		"CALL pf()",
		"BEGIN UPDATE src SET a = a WHERE a = 10; DELETE FROM log WHERE k = -1; END",
	}
	if table == "free" {
		bodies = slices.DeleteFunc(bodies, func(b string) bool { return strings.Contains(b, "fi(") || strings.Contains(b, "pf(") })
		if time == "BEFORE" && event == "INSERT" {
			bodies = append(bodies, "SET NEW.a = LAST_INSERT_ID()", "SET NEW.a = fl()")
		}
	}
	row := "NEW"
	if event == "DELETE" {
		row = "OLD"
	}
	if time == "AFTER" || event != "INSERT" {
		bodies = append(bodies, "INSERT INTO log (what, k) VALUES ('id', "+row+".id)")
	}
	if event != "DELETE" && table != "d" {
		bodies = append(bodies, fmt.Sprintf("IF NEW.a = 13 THEN SIGNAL SQLSTATE '45000' SET MYSQL_ERRNO = %d; END IF", signals[r.IntN(len(signals))]),
			"IF NEW.a = 13 THEN KILL "+[]string{"", "QUERY "}[r.IntN(2)]+"CONNECTION_ID(); END IF",
			"IF NEW.a = 7 THEN INSERT INTO log (what, k) VALUES ('seven', NEW.a); END IF")
		if time == "BEFORE" {
			bodies = append(bodies, "SET NEW.a = COALESCE(NEW.a, 3)")
			if f.skips {
				bodies = append(bodies, "IF NEW.a < 3 THEN SIGNAL SQLSTATE '02TRG'; END IF", "IF NEW.a > 2 THEN SIGNAL SQLSTATE '02TRG'; END IF")
			}
			if table != "free" { // it may have keys
				bodies = append(bodies, "SET NEW.a = f1(NEW.a)")
			}
		}
	}
	if noID { // keys aren't numbers, and aren't in LAST_INSERT_ID()
		bodies = slices.DeleteFunc(bodies, readsID.MatchString)
	}
	return bodies[r.IntN(len(bodies))]
}

var readsID = regexp.MustCompile(`LAST_INSERT_ID\(\)|fl\(|\.id\b`)
