package driver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/test/differential"
	"github.com/shardkey/shardkey/internal/test/fakedb"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/spi"
)

// movedCases are statements that a program prepares in database one, and executes after the statements
// between. one and two have the same tables with other rows.
var movedCases = []struct {
	before, query, between string // before and between may be several statements
	args                   []any
	warm                   bool // the statement is executed before, too
	negative               bool // the generated keys are negative
	// refused: shardkey refuses the statement. Otherwise it does what go-sql-driver does.
	refused bool
}{
	{query: "INSERT INTO t (a) VALUES (?)", between: "USE two", args: []any{1}},
	{query: "INSERT INTO t (a) VALUES (?)", between: "USE two; USE one", args: []any{1}, negative: true},
	{query: "INSERT INTO t (a) VALUES (?)", between: "USE two", args: []any{1}, warm: true, negative: true},
	{query: "INSERT INTO t (a) VALUES (?)", between: "USE two", args: []any{1}, negative: true, refused: true},
	{query: "INSERT INTO reading (a) VALUES (?)", between: "USE two", args: []any{1}, refused: true},
	{query: "INSERT INTO reading (a) VALUES (?)", between: "USE two", args: []any{1}, warm: true},
	{query: "INSERT INTO t (a) VALUES (?), (?)", between: "USE two", args: []any{1, 2}},
	{query: "INSERT IGNORE INTO t (a) VALUES (?), (?)", between: "USE two", args: []any{50, 4}},
	{query: "INSERT IGNORE INTO t (a) VALUES (?), (?)", between: "USE two", args: []any{500, 4}},
	{query: "INSERT IGNORE INTO t (id, a) VALUES (NULL, ?), (5, ?)", between: "USE two", args: []any{3, 4}},
	{query: "INSERT INTO t (a) VALUES (?), (?) ON DUPLICATE KEY UPDATE s = 'u'", between: "USE two", args: []any{50, 7}},
	{query: "REPLACE INTO t (a, s) VALUES (?, 'x'), (?, 'y')", between: "USE two", args: []any{50, 50}},
	{query: "INSERT INTO t (id, a) VALUES (0, ?)", between: "USE two; SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'", args: []any{1}, refused: true},
	{query: "INSERT INTO t (id, a) VALUES (0, ?)", between: "SET sql_mode = CONCAT(@@sql_mode, ',NO_AUTO_VALUE_ON_ZERO')", args: []any{1}},
	{query: "INSERT INTO t (id, a) VALUES (0, ?)", between: "SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ANSI_QUOTES'", args: []any{1}, refused: true},
	{query: "INSERT INTO t (id, a) VALUES (?, ?)", between: "USE two; SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'", args: []any{0, 1}},
	{query: "INSERT INTO t VALUES (NULL, ?, 's')", between: "USE two", args: []any{1}},
	{query: "INSERT INTO t VALUES (NULL, ?, 's')", between: "USE two; ALTER TABLE one.t ADD b INT FIRST", args: []any{1}, refused: true},
	{query: "INSERT INTO t (a) VALUES (?) ON DUPLICATE KEY UPDATE s = 'u'", between: "USE two", args: []any{50}},
	{before: "SET sql_mode = 'PIPES_AS_CONCAT'", query: "INSERT INTO t (s) VALUES ('1' || ?)", between: "SET sql_mode = ''", args: []any{"2"}},
	{before: "SET sql_mode = 'PIPES_AS_CONCAT'", query: "INSERT INTO t (s) VALUES ('1' || ?)", between: "SET sql_mode = ''", args: []any{"2"}, negative: true, refused: true},
	{before: "SET sql_mode = 'ANSI_QUOTES'", query: `INSERT INTO reading (a, s, "z") VALUES (1, 'q', "s")`, between: "SET sql_mode = ''", refused: true},
	{before: "SET NAMES latin1", query: "INSERT INTO t (s) VALUES ('x')", between: "SET NAMES utf8mb4", negative: true, refused: true},
	{query: "INSERT INTO t (s) VALUES ('x')", between: "SET @n = 1; SET time_zone = '+01:00'", negative: true},
}

// A prepared INSERT keeps the database, sql_mode and character set of its PREPARE, or is refused.
func TestPrepared_keepsItsSession(t *testing.T) { onEach(t, testPrepared_keepsItsSession) }

func testPrepared_keepsItsSession(t *testing.T) {
	for i, c := range movedCases {
		positive, negative := counted(), numbered(func(i int) int64 { return int64(-1001 + i) })
		want := newMoved(t, nil).run(c.before, c.query, c.between, c.args, c.warm)
		keys := positive
		if c.negative {
			keys = negative
		}
		m := newMoved(t, keys)
		switch have := m.run(c.before, c.query, c.between, c.args, c.warm); {
		case c.refused && !errors.As(m.err, new(*StatementError)):
			t.Errorf("%d: %s; %s\nhave: %s\nwant: a StatementError", i, c.query, c.between, have)
		case c.refused && m.rows() != m.seen:
			t.Errorf("%d: %s; %s\nhave: %s\nwant: the rows before, %s", i, c.query, c.between, m.rows(), m.seen)
		case !c.refused && have != want:
			t.Errorf("%d: %s; %s\nhave: %s\nwant: %s", i, c.query, c.between, have, want)
		}
	}
}

// moved is a connection to two databases.
type moved struct {
	*testing.T
	conn  *sql.Conn
	names *strings.Replacer // of the databases
	seen  string            // the rows before the last execution
	err   error
}

// newMoved returns a connection in database one of two new ones. keys may be nil for AUTO_INCREMENT.
func newMoved(t *testing.T, keys spi.KeyGenerator) *moved {
	dsn, two := testserver.Database(t), must(mysql.ParseDSN(testserver.Database(t)))(t).DBName
	auto := " AUTO_INCREMENT"
	db := mustOpen(t, "mysql", dsn)
	if keys != nil {
		auto = ""
		db, _ = openScriptedOn(t, dsn, generatorRule(t, keys, "t.id", "reading.id"))
	}
	conn := must(db.Conn(t.Context()))(t)
	t.Cleanup(func() { conn.Close() })
	one := must(mysql.ParseDSN(dsn))(t).DBName
	m := &moved{T: t, conn: conn, names: strings.NewReplacer("USE one", "USE "+one, "USE two", "USE "+two, "one.", one+".", "two.", two+".")}
	for i, database := range []string{"two.", "one."} {
		for _, query := range []string{
			"CREATE TABLE %st (id BIGINT PRIMARY KEY" + auto + ", a INT UNIQUE, s VARCHAR(20)) AUTO_INCREMENT = 100",
			"CREATE TABLE %sreading (id BIGINT PRIMARY KEY" + auto + ", a INT, s VARCHAR(20), z VARCHAR(20)) AUTO_INCREMENT = 100",
			"CREATE TRIGGER %[1]str BEFORE INSERT ON %[1]sreading FOR EACH ROW SET NEW.z = IF(LAST_INSERT_ID() < 0, 'x', 'y')",
			[]string{"INSERT INTO %st (id, a) VALUES (5, 500), (7, 50)", "INSERT INTO %st (id, a) VALUES (5, 50), (6, 60)"}[i],
		} {
			m.exec(fmt.Sprintf(query, database))
		}
	}
	return m
}

func (m *moved) exec(queries string) {
	for query := range strings.SplitSeq(queries, "; ") {
		if query != "" {
			mustExec(m, m.conn, m.names.Replace(query))
		}
	}
}

// run returns what the execution of a prepared statement reports, and the rows after it. Keys are
// shown by their row.
func (m *moved) run(before, query, between string, args []any, warm bool) string {
	m.exec(before)
	st := must(m.conn.PrepareContext(m.Context(), query))(m.T)
	defer st.Close()
	if warm {
		must(st.Exec(append([]any{99}, args[1:]...)...))(m.T)
	}
	m.exec(between)
	m.seen = m.rows()
	res, err := st.ExecContext(m.Context(), args...)
	if m.err = err; err != nil {
		return differential.PlainError(err)
	}
	id, _ := res.LastInsertId()
	n, _ := res.RowsAffected()
	return fmt.Sprintf("%d rows, LastInsertId of %s, LAST_INSERT_ID() of %s, %s", n, m.rowOf(fmt.Sprint(id)), m.rowOf("LAST_INSERT_ID()"), m.rows())
}

// rowOf returns the row of a key that isn't one of the first rows.
func (m *moved) rowOf(key string) string {
	var rows []string
	for _, table := range []string{"one.t", "one.reading", "two.t", "two.reading"} {
		query := fmt.Sprintf("SELECT '%s', a, s FROM %s WHERE id = CAST(%s AS SIGNED) AND id NOT BETWEEN 0 AND 7", strings.ReplaceAll(table, ".", " "), table, key)
		rows = append(rows, differential.ReadAll(m.T, m.conn, m.names.Replace(query)))
	}
	return strings.Join(rows, "")
}

func (m *moved) rows() string {
	var rows []string
	for _, table := range []string{"one.t", "one.reading", "two.t", "two.reading"} {
		query := "SELECT a, s FROM " + table + " ORDER BY a, s"
		rows = append(rows, table, differential.ReadAll(m.T, m.conn, m.names.Replace(query)))
	}
	return strings.Join(rows, " ")
}

// A statement that was prepared before the rule changed is planned again only in the same session.
func TestPrepared_ruleReplacedElsewhere(t *testing.T) {
	for between, refused := range map[string]bool{"": false, "SET @a = 1": false, "SET sql_mode = 'ANSI_QUOTES'": true} {
		server := &fakedb.Server{}
		db, connector := openFake(t, server, generatorRule(t, counted(), "t.id"), Config{Server: "mysql"})
		conn := pinned(t, db)
		st := must(conn.PrepareContext(t.Context(), "INSERT INTO t (a) VALUES (?)"))(t)
		if between != "" {
			mustExec(t, conn, between)
		}
		if refused {
			server.Mode = "ANSI_QUOTES"
		}
		noError(t, connector.SetRule(generatorRule(t, counted(), "t.id")))
		_, err := st.ExecContext(t.Context(), 1)
		var e *StatementError
		if errors.As(err, &e) != refused || !refused && err != nil {
			t.Errorf("%s\nhave: %v\nwant: refused %v", between, err, refused)
		}
		noError(t, st.Close())
	}
}

// A statement that was prepared under another sql_mode isn't cached.
func TestPrepared_closedUnderAnotherMode(t *testing.T) {
	k := newKeeping(t, &fakedb.Server{Statements: 1000, Kind: fakedb.Skipping}, "auto").warm()
	k.conn.overMySQL = true
	for range 2 {
		st := must(k.conn.PrepareContext(context.Background(), "INSERT INTO t_order (a) VALUES (?)"))(t)
		k.exec("SET sql_mode = 'ANSI_QUOTES'")
		noError(t, st.Close())
	}
	k.check("prepared", k.base.Prepared, 2)
	k.check("open", k.base.Stmts, 0)
}
