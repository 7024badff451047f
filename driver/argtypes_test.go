package driver

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/test/differential"
	testserver "github.com/shardkey/shardkey/internal/test/server"
)

// changingRows is the number of rows for each server and mode of TestStatements_changingTypes.
var changingRows = flag.Int("changing-rows", 3000, "rows of TestStatements_changingTypes")

// typedColumns are column types. A server that lacks one is tested without it.
var typedColumns = []string{
	"TINYINT UNSIGNED", "INT", "BIGINT", "BIGINT UNSIGNED", "INT UNSIGNED ZEROFILL", "DECIMAL(10,2)", "DECIMAL(30,10)", "FLOAT", "DOUBLE",
	"DATE", "TIME", "TIME(3)", "DATETIME(6)", "TIMESTAMP(3) NULL", "CHAR(5)", "VARCHAR(40)", "VARCHAR(40) CHARACTER SET latin1",
	"VARCHAR(40) CHARACTER SET ucs2", "TEXT", "BINARY(5)", "VARBINARY(40)", "BLOB", "ENUM('a','b','7','x y','')", "SET('a','b','7')",
	"JSON", "UUID", "INET6", "BIT(8)", "YEAR",
}

// TestStatements_changingTypes executes each statement several times with arguments of changing types,
// directly and prepared, through go-sql-driver and through shardkey, which uses cached statements.
// Both store the same rows. An exception are statements that a program executes several times: MySQL
// converts an argument to the type of an earlier one, and shardkey may have exchanged the statement
// for one without that type. It then stores what a new statement stores.
func TestStatements_changingTypes(t *testing.T) { onEach(t, testStatements_changingTypes) }

func testStatements_changingTypes(t *testing.T) {
	for i, params := range []string{"", "&sql_mode=%27%27", "&interpolateParams=true"} {
		t.Run(params, func(t *testing.T) {
			t.Parallel()
			y := newTyped(t, params, uint64(i))
			for y.rows < *changingRows {
				y.round()
			}
			t.Log(y.rows, "rows,", y.taken, "of them with a statement that was executed before")
			if y.taken < y.rows/4 {
				t.Errorf("have: %d of %d rows\nwant: many with a cached statement", y.taken, y.rows)
			}
		})
	}
}

// typed runs the same statements on three sides.
type typed struct {
	*testing.T
	rnd         *rand.Rand
	conns       [3]*sql.Conn // go-sql-driver, shardkey, and go-sql-driver with a new statement for each execution
	connector   *Connector
	columns     []string // their types; column i is named c and i
	rows, taken int
}

func newTyped(t *testing.T, params string, seed uint64) *typed {
	y := &typed{T: t, rnd: rand.New(rand.NewPCG(seed, 47))}
	name := fmt.Sprint("typed", strings.ReplaceAll(t.Name(), "/", "_"))
	name = strings.NewReplacer("&", "_", "=", "_", "%", "_", "#", "_").Replace(name)
	noError(t, RegisterRule(name, snowflakeRule(t, "t")))
	params = "?parseTime=true&time_zone=%27%2B00:00%27" + params
	for side, auto := range []string{" AUTO_INCREMENT", "", " AUTO_INCREMENT"} {
		dsn := testserver.Database(t) + params
		if side == 2 {
			dsn = strings.Replace(dsn, "&interpolateParams=true", "", 1)
		}
		db := mustOpen(t, "mysql", dsn)
		if side == 1 {
			db = mustOpen(t, "shardkey", dsn+"&shardkeyRule="+name)
			y.connector = ConnectorOf(db)
		}
		y.conns[side] = must(db.Conn(t.Context()))(t)
		t.Cleanup(func() { y.conns[side].Close() })
		mustExec(t, db, "CREATE TABLE t (id BIGINT NOT NULL PRIMARY KEY"+auto+")")
		y.columns = nil
		for _, typ := range typedColumns {
			if _, err := db.Exec(fmt.Sprintf("ALTER TABLE t ADD c%d %s", len(y.columns), typ)); err == nil {
				y.columns = append(y.columns, typ)
			}
		}
	}
	return y
}

// round executes one statement 2 to 20 times.
func (y *typed) round() {
	query, columns := y.statement()
	modes := [][]string{{"exec"}, {"prepare"}, {"exec", "prepare"}}[y.rnd.IntN(3)]
	var log []string
	var outcomes [3][]string
	kept := false // a statement was executed several times
	y.both("START TRANSACTION")
	before := y.connector.cache.Stats().Hits
	for n := 2 + y.rnd.IntN(19); n > 0; {
		mode, times := modes[y.rnd.IntN(len(modes))], 1
		if mode == "prepare" && y.rnd.IntN(4) == 0 {
			times = 1 + y.rnd.IntN(3)
		}
		all := make([][]any, times)
		for i := range all {
			for _, c := range columns {
				all[i] = append(all[i], y.value(c))
			}
		}
		for side, conn := range y.conns {
			mode := mode
			if side == 2 {
				mode = "exec"
			}
			outcomes[side] = append(outcomes[side], typedRun(conn, mode, query, all)...)
		}
		kept = kept || times > 1
		log = append(log, fmt.Sprintf("%s %#v", mode, all))
		n, y.rows = n-times, y.rows+times
	}
	y.taken += int(y.connector.cache.Stats().Hits - before)
	y.compare(fmt.Sprint(query, y.named(columns), "\n", strings.Join(log, "\n")), outcomes, columns, kept)
	y.both("ROLLBACK")
}

func (y *typed) both(query string) {
	for _, conn := range y.conns {
		mustExec(y, conn, query)
	}
}

// compare compares the outcomes and the rows of the sides.
func (y *typed) compare(what string, outcomes [3][]string, columns []int, kept bool) {
	var selected []string
	for _, c := range slices.Compact(slices.Sorted(slices.Values(columns))) {
		selected = append(selected, fmt.Sprintf("c%d, HEX(c%[1]d)", c))
	}
	for side, conn := range y.conns {
		rows := differential.ReadAll(y.T, conn, "SELECT "+strings.Join(selected, ", ")+" FROM t ORDER BY id")
		outcomes[side] = append(outcomes[side], strings.SplitAfter(rows, "] ")...)
	}
	for i, want := range outcomes[0] {
		have := outcomes[1][i]
		if kept && len(outcomes[2]) == len(outcomes[0]) && have == outcomes[2][i] {
			continue
		}
		if have != want {
			y.Fatalf("%s\nrow %d\nhave: %s\nwant: %s", what, i, have, want)
		}
	}
}

func (y *typed) named(columns []int) (types []string) {
	for _, c := range columns {
		types = append(types, y.columns[c])
	}
	return types
}

// statement returns one of a few statements, so that they repeat, and the columns of its arguments.
func (y *typed) statement() (query string, columns []int) {
	r := rand.New(rand.NewPCG(uint64(y.rnd.IntN(40)), 3))
	for range 1 + r.IntN(3) {
		columns = append(columns, r.IntN(len(y.columns)))
	}
	slices.Sort(columns)
	columns = slices.Compact(columns)
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = fmt.Sprint("c", c)
	}
	list, values := strings.Join(names, ", "), strings.TrimSuffix(strings.Repeat("?, ", len(columns)), ", ")
	assigned := strings.Join(names, " = ?, ") + " = ?"
	switch r.IntN(6) {
	case 0:
		return "INSERT INTO t SET " + assigned, columns
	case 1:
		return fmt.Sprintf("INSERT IGNORE INTO t (%s) VALUES (%s), (%s)", list, values, values), append(columns, columns...)
	case 2:
		return fmt.Sprintf("INSERT INTO t (%s) VALUES (%s) ON DUPLICATE KEY UPDATE %s", list, values, assigned), append(columns, columns...)
	case 3:
		return fmt.Sprintf("INSERT INTO t (%s) VALUES (COALESCE(%s, NULL))", names[0], values), columns
	}
	return fmt.Sprintf("INSERT INTO t (%s) VALUES (%s)", list, values), columns
}

var typedStrings = []string{
	"", "a", "b", "7", "007", " 7", "+7", "-7", "1e2", "1.5", "12345678901234567.1234567891", "+15551234", "127", "255", "2155", "70", "x y", "a,b", "ü",
	"2026-02-03", "2026-02-03 10:11:12.5", "10:11:12", "true", `{"a": 1}`, "[1]", "::1", "123e4567-e89b-12d3-a456-426614174000",
}

// value returns an argument for a column. A few columns get no strings, times and floats; see the
// page about cached statements.
func (y *typed) value(column int) any {
	kinds := 11
	if typ := y.columns[column]; typ == "YEAR" || strings.HasPrefix(typ, "BIT") {
		kinds = 4
	}
	switch y.rnd.IntN(kinds) {
	case 0, 1:
		return nil
	case 2:
		return int64(y.rnd.IntN(9) - 1)
	case 3:
		return y.rnd.IntN(2) == 0
	case 4:
		return uint64(y.rnd.IntN(7)) + 1<<63
	case 5:
		return float64(y.rnd.IntN(70)) / 8
	case 6:
		return []byte(typedStrings[y.rnd.IntN(len(typedStrings))])
	case 7:
		return time.Date(2024, 2, 29, 23, 59, 59, 1000*y.rnd.IntN(1e6), time.UTC)
	}
	return typedStrings[y.rnd.IntN(len(typedStrings))]
}

// typedRun executes a statement for all arguments, and returns the error numbers. In the mode prepare
// the program prepares it once for all of them, and closes it.
func typedRun(conn *sql.Conn, mode, query string, all [][]any) (outcomes []string) {
	ctx := context.Background()
	exec := func(args ...any) (sql.Result, error) { return conn.ExecContext(ctx, query, args...) }
	if mode == "prepare" {
		st, err := conn.PrepareContext(ctx, query)
		if err != nil {
			return []string{err.Error()}
		}
		defer st.Close()
		exec = st.Exec
	}
	for _, args := range all {
		outcome := "done"
		if _, err := exec(args...); err != nil {
			// The error's text may have the type of an argument.
			outcome = strings.Join(strings.Fields(differential.PlainError(err))[:2], " ")
		}
		outcomes = append(outcomes, outcome)
	}
	return outcomes
}
