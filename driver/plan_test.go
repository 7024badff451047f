package driver

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/driver/internal/base"
	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/rewrite"
	"github.com/shardkey/shardkey/internal/test/fakedb"
	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// TestPlan_parsesOnce counts the statements that are parsed.
func TestPlan_parsesOnce(t *testing.T) {
	base := &fakedb.Server{Columns: [][2]string{{"id", "bigint"}, {"a", "int"}}}
	c, connector := openFake(t, base, taggedRule(t, "ruled", 0), Config{Server: "mysql"})
	c.SetMaxOpenConns(1)
	long := "INSERT INTO ruled (a) VALUES (1)" + strings.Repeat(", (2)", maxLiteralBytes/5+1)
	for _, of := range []struct {
		name, query string
		args        []any
		want        int64
	}{
		{"kind of keys not known yet", "INSERT INTO ruled (a) VALUES (?)", []any{1}, 1},
		{"kind of keys known", "INSERT INTO ruled (a) VALUES (?)", []any{1}, 1},
		{"bound, cached", "INSERT INTO ruled (a) VALUES (?)", []any{1}, 0},
		{"literal", "INSERT INTO ruled (a) VALUES (1)", nil, 1},
		{"literal, of the connection", "INSERT INTO ruled (a) VALUES (1)", nil, 0},
		{"too long for the cache", long, nil, 1},
		{"too long for the cache, again", long, nil, 1},
		{"columns not known yet", "INSERT INTO ruled VALUES (NULL, ?)", []any{1}, 1},
		{"columns known", "INSERT INTO ruled VALUES (NULL, ?), (NULL, 2)", []any{1}, 1},
		{"upsert", "INSERT INTO ruled (a) VALUES (?) ON DUPLICATE KEY UPDATE a = 3", []any{1}, 1},
		{"query", "INSERT INTO ruled (a) SELECT 1", nil, 1},
		{"no rule", "INSERT INTO nowhere (a) VALUES (1)", nil, 1},
		{"no rule, again", "INSERT INTO nowhere (a) VALUES (1)", nil, 1},
		{"no rule, cached", "INSERT INTO nowhere (a) VALUES (1)", nil, 0},
		{"no insert", "SELECT 1", nil, 0},
	} {
		t.Run(of.name, func(t *testing.T) {
			plans := connector.rules.Load().plans
			before := plans.parses.Load()
			_, _ = c.ExecContext(t.Context(), of.query, of.args...)
			equal(t, plans.parses.Load()-before, of.want)
		})
	}
}

// The first key shows that a custom generator returns integers. Later statements on the same
// connection contain LAST_INSERT_ID(key).
func TestPlan_kindOfTheFirstKey(t *testing.T) {
	base := &fakedb.Server{Columns: [][2]string{{"id", "bigint(20)"}}}
	db, _ := openFake(t, base, scriptRule(t, listed(1, 2), "ruled.id"), Config{Server: "mysql"})
	db.SetMaxOpenConns(1)
	for i := range 2 {
		mustExec(t, db, "INSERT INTO ruled (a) VALUES (?)", i)
	}
	if have := base.Sent[1].Query; !strings.Contains(have, "LAST_INSERT_ID(?)") {
		t.Errorf("have: %s\nwant: LAST_INSERT_ID(?)", have)
	}
}

func offlineConnector(t *testing.T, base *fakedb.Server, opts ...Option) *Connector {
	t.Helper()
	r := mustParseRule(t, `
rules:
- !SHARDING
  tables:
    t_order:
      actualDataNodes: ds.t_order_${0..3}
      tableStrategy: {standard: {shardingColumn: user_id, shardingAlgorithmName: m4}}
      keyGenerateStrategy: {column: order_id, keyGeneratorName: snowflake}
    t_user:
      keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}
    t_token:
      keyGenerateStrategy: {column: id, keyGeneratorName: uuid}
  shardingAlgorithms: {m4: {type: MOD, props: {sharding-count: 4}}}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id: 3}}
    uuid: {type: UUID}
`)
	c := must(NewConnector(base, r, opts...))(t)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestPlan_isWhatIsSent(t *testing.T) {
	for _, text := range []string{
		"INSERT INTO t_order (user_id) VALUES (?)",
		"INSERT INTO t_order_1 (user_id) VALUES (1), (5)",
		"INSERT INTO t_order (order_id, user_id) VALUES (NULL, ?), (?, ?)",
		"INSERT INTO t_token (name) VALUES (?)",
		"UPDATE t_order SET user_id = 1",
		"INSERT INTO other (a) VALUES (?)",
	} {
		base := &fakedb.Server{}
		c := offlineConnector(t, base, Config{Server: "other"})
		p, err := c.Plan(text)
		if err != nil {
			t.Errorf("%s\nhave: %v\nwant: no error", text, err)
			continue
		}
		if len(base.Calls) > 0 || healthOf(c)["snowflake"].Issued != 0 || c.Stats().Verification != (Verification{}) {
			t.Errorf("%s: it asked %q, made %d keys, counted %+v", text, base.Calls, healthOf(c)["snowflake"].Issued, c.Stats().Verification)
		}
		db := sql.OpenDB(c)
		args := make([]any, strings.Count(text, "?"))
		for i := range args {
			args[i] = 1
		}
		mustExec(t, db, text, args...)
		if !p.Literal && !strings.Contains(strings.Join(base.Calls, "\n"), p.Query) {
			t.Errorf("%s\nhave: %q\nsent: %q", text, p.Query, base.Calls)
		}
		_ = db.Close()
	}
}

func TestPlan_refusesAsExec(t *testing.T) {
	var log strings.Builder
	c := offlineConnector(t, &fakedb.Server{}, Config{Server: "mysql"}, WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	for _, text := range []string{
		"INSERT INTO t_order_4 (user_id) VALUES (1)",
		"INSERT INTO t_order (user_id VALUES (1)",
		"INSERT INTO t_order_1 (user_id) VALUES (1), (6), (?)",
		"INSERT INTO t_order VALUES (1)",
	} {
		if p, err := c.Plan(text); !errors.Is(err, ErrUnsupportedStatement) && !errors.Is(err, ErrWrongShard) {
			t.Errorf("%s\nhave: %v, %v\nwant: refused", text, p, err)
		}
	}
	var at *StatementError
	var wrong *WrongShardError
	if _, err := c.Plan("INSERT INTO t_order_1 (user_id) VALUES (?), (6)"); !errors.As(err, &at) || !errors.As(err, &wrong) || at.Row != 2 || wrong.Meant.Table != "t_order_2" {
		t.Errorf("have: %v\nwant: row 2 belongs to t_order_2", err)
	}
	if c.Stats().Verification != (Verification{}) || log.Len() > 0 {
		t.Errorf("counted %+v, logged %s", c.Stats().Verification, log.String())
	}
}

func TestPlan_ofAnUnknownServer(t *testing.T) {
	const text = "INSERT INTO t_order (user_id) VALUES (1) ON DUPLICATE KEY UPDATE user_id = 2"
	for server, reports := range map[string]bool{"auto": true, "mysql": true, "mariadb": true, "other": false} {
		p, err := offlineConnector(t, &fakedb.Server{}, Config{Server: server}).Plan(text)
		if err != nil || strings.Contains(p.Query, "LAST_INSERT_ID(") != reports {
			t.Errorf("%s\nhave: %v\nwant: reports by LAST_INSERT_ID(): %v", server, err, reports)
		}
	}
}

func TestPlan_withAnotherPolicyForUnlistedTables(t *testing.T) {
	for _, policy := range []string{"warn", "pass"} {
		c := offlineConnector(t, &fakedb.Server{}, Config{Unlisted: policy}, WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
		if p, err := c.Plan("INSERT INTO t_order_4 (user_id) VALUES (1)"); err != nil || len(p.Inserts) != 0 {
			t.Errorf("%v: have %v, want: it passes", policy, err)
		}
	}
}

func TestPlan_afterClose(t *testing.T) {
	c := offlineConnector(t, &fakedb.Server{})
	_ = c.Close()
	if _, err := c.Plan("SELECT 1"); !errors.Is(err, spi.ErrClosed) {
		t.Errorf("have: %v\nwant: %v", err, spi.ErrClosed)
	}
}

// agreedColumns are the columns of each table of agreedRules.
var agreedColumns = [][2]string{
	{"order_id", "bigint"}, {"user_id", "bigint"}, {"name", "varchar(64)"}, {"created", "datetime(6)"}, {"note", "text"},
}

// stockServer returns a server that answers like a new MySQL, with tables of agreedColumns.
func stockServer() *fakedb.Server {
	return &fakedb.Server{Version: "8.4.6", Comment: "MySQL Community Server - GPL", Mode: stockMode, Columns: agreedColumns}
}

const (
	agreedInline   = `{type: INLINE, props: {algorithm-expression: "t_order_${%s %% 4}"}}`
	agreedMod      = "{type: MOD, props: {sharding-count: 4}}"
	agreedHash     = "{type: HASH_MOD, props: {sharding-count: 4}}"
	agreedVolume   = "{type: VOLUME_RANGE, props: {range-lower: 3, range-upper: 100, sharding-volume: 60}}"
	agreedBoundary = `{type: BOUNDARY_RANGE, props: {sharding-ranges: "3, 8, 200"}}`
	agreedInterval = `{type: INTERVAL, props: {datetime-pattern: "yyyy-MM-dd HH:mm:ss",
      datetime-lower: "2026-01-01 00:00:00", datetime-upper: "2026-04-30 00:00:00",
      sharding-suffix-pattern: M, datetime-interval-amount: 1, datetime-interval-unit: MONTHS}}`
	agreedBits = "{type: SNOWFLAKE, props: {worker-id: %d, layout: 41-10-12, gene-column: user_id, gene-bits: %d}}"
)

// agreedRules are the sharding columns of table t_order, if any, with the settings that depend on
// them.
var agreedRules = []struct{ column, algorithm, settings, generator string }{
	{column: "user_id", algorithm: agreedMod},
	{column: "user_id", algorithm: agreedHash},
	{column: "name", algorithm: agreedHash, generator: agreedUUID},
	{column: "user_id", algorithm: fmt.Sprintf(agreedInline, "user_id")},
	{column: "user_id", algorithm: fmt.Sprintf(agreedInline, "user_id"), settings: ", explicitKeys: keep"},
	{column: "user_id", algorithm: agreedMod, settings: ", shardGuard: warn"},
	{column: "user_id", algorithm: agreedMod, settings: ", shardGuard: off"},
	{column: "order_id", algorithm: agreedMod},
	{column: "user_id", algorithm: agreedVolume},
	{column: "user_id", algorithm: agreedBoundary},
	{column: "created", algorithm: agreedInterval},
	{column: "order_id", algorithm: fmt.Sprintf(agreedInline, "order_id"), generator: fmt.Sprintf(agreedBits, 77, 4)},
	{algorithm: agreedMod, generator: fmt.Sprintf(agreedBits, 78, 2)},
}

const agreedUUID = "{type: UUID}"

// agreedConnector returns a connector to a server with one of agreedRules.
func agreedConnector(t testing.TB, base driver.Connector, of int, server string) *Connector {
	t.Helper()
	a := agreedRules[of]
	strategy := "tableStrategy: {none: }"
	if a.column != "" {
		strategy = "tableStrategy: {standard: {shardingColumn: " + a.column + ", shardingAlgorithmName: a}}"
	}
	generator := a.generator
	if generator == "" {
		generator = fmt.Sprintf("{type: SNOWFLAKE, props: {worker-id: %d}}", 40+of)
	}
	r, err := rule.Parse(fmt.Sprintf("%s-%d", t.Name(), of), []byte(`
rules:
- !SHARDING
  tables:
    t_order:
      actualDataNodes: app.t_order_${0..4}
      `+strategy+`
      keyGenerateStrategy: {column: order_id, keyGeneratorName: keys`+a.settings+`}
  shardingAlgorithms: {a: `+a.algorithm+`}
  keyGenerators: {keys: `+generator+`}
`))
	if err != nil {
		t.Fatalf("rule %d: %v", of, err)
	}
	c, err := NewConnector(base, r, Config{Server: server}, WithLogger(slog.New(slog.DiscardHandler)))
	if err != nil {
		t.Fatalf("rule %d: %v", of, err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// agreed is a statement whose plan and execution are compared.
type agreed struct {
	query string
	args  []any
	// converted means that a value's type differs from its column's, so that the server may
	// refuse it.
	converted bool
}

type agreedSource struct{ *rand.Rand }

func (r agreedSource) pick(of ...string) string { return of[r.IntN(len(of))] }

// statement returns a random statement.
func (r agreedSource) statement() (s agreed) {
	switch r.IntN(20) {
	case 0:
		s.query = r.pick("SELECT 1", "UPDATE t_order_1 SET user_id = 6 WHERE order_id = 1", "DELETE FROM t_order_2",
			"SET @a = 1", "INSERT", "INSERT INTO t_order", "INSERT INTO t_order_1 (user_id) VALEUS (1)",
			"INSERT INTO t_order_1 (user_id VALUES (1)", "REPLACE t_order_1 (user_id) VALUES (1", "",
			"PREPARE p FROM 'INSERT INTO t_order_1 (user_id) VALUES (2)'",
			"/*!80000 INSERT INTO t_order_1 (user_id) VALUES (2) */",
			"INSERT INTO t_order_1 (user_id) VALUES (ROW_COUNT())", "CREATE TABLE t_order_1 SELECT 1")
		return s
	case 1:
		first, second := r.insert(), r.insert()
		s.query, s.args = first.query+r.pick("; ", ";\n/* and */ ")+second.query, append(first.args, second.args...)
		s.converted = first.converted || second.converted
		if r.IntN(3) == 0 {
			s.query = "START TRANSACTION; " + s.query + "; COMMIT"
		} else if r.IntN(4) == 0 {
			s.query += "; SELECT LAST_INSERT_ID()"
		}
		return s
	}
	return r.insert()
}

func (r agreedSource) insert() (s agreed) {
	table := r.pick("t_order_0", "t_order_1", "t_order_2", "t_order_3", "t_order_1", "t_order_2", "t_order",
		"app.t_order_1", "`t_order_2`", "T_ORDER_3", "t_order_9", "other")
	verb := r.pick("INSERT INTO ", "INSERT INTO ", "INSERT INTO ", "INSERT IGNORE INTO ", "REPLACE INTO ",
		"insert /* c */ into ", "INSERT LOW_PRIORITY ")
	columns := []string{"user_id"}
	for _, column := range []string{"order_id", "name", "created", "note"} {
		if r.IntN(3) == 0 {
			columns = append(columns, column)
		}
	}
	if r.IntN(8) == 0 {
		columns = columns[1:]
	}
	r.Shuffle(len(columns), func(i, j int) { columns[i], columns[j] = columns[j], columns[i] })
	form := r.IntN(12)
	if form == 0 && len(columns) > 0 {
		s.query = verb + table + " SET "
		for i, column := range columns {
			s.query += strings.Repeat(", ", min(i, 1)) + column + " = " + r.value(column, &s)
		}
		s.query += r.suffix(&s.args)
		return s
	}
	if form == 1 {
		list := strings.Join(columns, ", ")
		s.query = verb + table + " (" + list + ") SELECT " + r.pick("*", "user_id", list) + " FROM " +
			r.pick("old", "old WHERE a = 1", "t_order_1")
		return s
	}
	if form == 2 {
		columns = nil
		for _, column := range agreedColumns {
			columns = append(columns, column[0])
		}
		s.query = verb + table + " VALUES "
	} else {
		s.query = verb + table + " (" + strings.Join(columns, ", ") + ")" +
			r.pick(" VALUES ", " VALUES ", " VALUE ", " values\n")
	}
	for row := range 1 + r.IntN(3) {
		s.query += strings.Repeat(", ", min(row, 1)) + "("
		for i, column := range columns {
			s.query += strings.Repeat(", ", min(i, 1)) + r.value(column, &s)
		}
		s.query += strings.Repeat(", 1", max(r.IntN(30)-28, 0)) + ")"
	}
	s.query += r.suffix(&s.args)
	return s
}

// value returns the SQL of a value, and appends its argument.
func (r agreedSource) value(column string, s *agreed) string {
	if r.IntN(4) == 0 {
		s.args = append(s.args, r.arg(column))
		return "?"
	}
	if r.IntN(40) == 0 {
		s.converted = true
		return r.pick("''", "'x'", "'12abc'", "'2026-02-03'", "7", "1e3")
	}
	if r.IntN(20) == 0 && column != "created" {
		s.converted = true // it may be out of range
		return r.pick("18446744073709551615", "99999999999999999999")
	}
	common := []string{"NULL", "DEFAULT", "NOW()", "1 + 1", "@v"}
	switch column {
	case "order_id":
		return r.pick(append(common, "NULL", "NULL", "DEFAULT", "0", "'0'", "5", "6", "(7)", "'6'", "0.4", "TRUE",
			"UUID()")...)
	case "created":
		return r.pick(append(common, "'2026-02-03'", "'2026-02-03 10:00:00.5'", "20260203", "'2026-01-31 23:59:59.9999999'",
			"'2025-02-03'", "CURRENT_TIMESTAMP", "'26-3-1'")...)
	case "name", "note":
		return r.pick(append(common, "'alice'", "'bob '", "N'carol'", "_utf8mb4'dave'", "\"eve\"", "'ü'", "'7'", "131", "''",
			"X'07'")...)
	}
	return r.pick(append(common, "0", "1", "2", "3", "131", "130", "(7)", "'7'", "'7.0'", "'131'", " ' 6'", "7.0", "1e3",
		"'1e3'", "TRUE", "0x07", "-1", "-5", "+2")...)
}

func (r agreedSource) arg(column string) any {
	switch n := int64(r.IntN(9) - 1); r.IntN(9) {
	case 0:
		return nil
	case 1:
		return fmt.Sprint(n)
	case 2:
		return []byte(fmt.Sprint(n))
	case 3:
		return float64(n) + float64(r.IntN(2))/2
	case 4:
		return r.IntN(2) == 0
	case 5:
		return time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	case 6:
		return r.pick("", "abc", "7.0", "2026-02-03 00:00:00")
	default:
		return n
	}
}

func (r agreedSource) suffix(args *[]any) string {
	switch r.IntN(14) {
	case 0:
		*args = append(*args, r.arg("user_id"))
		return " ON DUPLICATE KEY UPDATE user_id = ?"
	case 1:
		return " ON DUPLICATE KEY UPDATE " + r.pick("user_id = VALUES(user_id)", "user_id = 5", "user_id = '7'",
			"user_id = user_id + 1", "note = 'x'", "order_id = 5",
			"name = 'bob', created = '2026-03-01'", "order_id = LAST_INSERT_ID(order_id)")
	case 2:
		return " AS new ON DUPLICATE KEY UPDATE note = new.note"
	case 3:
		return r.pick(" RETURNING order_id", " -- c\n", " /* c */", ";")
	}
	return ""
}

// isOfKeys reports whether an error is about the generated keys, or about the rows of a query.
func isOfKeys(err error) bool {
	var e *StatementError
	if !errors.As(err, &e) {
		return false
	}
	return strings.HasPrefix(e.Message, "INSERT … SELECT: ") ||
		slices.Contains([]string{reasonNoKey, reasonNoFittingKey, reasonNarrowColumn, reasonNotConsecutive}, e.Reason)
}

// reasonOf returns the reason for which a statement was refused, or "".
func reasonOf(err error) string {
	if e := new(StatementError); errors.As(err, &e) {
		return e.Reason
	}
	return ""
}

var writtenKey = regexp.MustCompile(`^(-?[0-9]+|'[^']*')`)

// isSent reports whether a query is the planned one, with keys in place of placeholders.
func isSent(planned, sent string) bool {
	for planned != "" && sent != "" {
		if planned[0] == sent[0] {
			planned, sent = planned[1:], sent[1:]
			continue
		}
		key := writtenKey.FindString(sent)
		if planned[0] != '?' || key == "" {
			return false
		}
		planned, sent = planned[1:], sent[len(key):]
	}
	return planned == sent
}

// agreement compares plans with executions.
type agreement struct {
	*testing.T
	refused, sent, undecided, assumed int
}

// compare compares an execution with two plans: cold is from a connector without metadata of the
// server, warm from one with the metadata that the execution has queried. executed are the
// statements that the server executed.
func (a *agreement) compare(s agreed, cold, warm *Plan, coldErr, warmErr, err error, executed []string) {
	a.Helper()
	switch {
	case errors.Is(coldErr, ErrNoConnection):
		a.assumed++
	case coldErr != nil && reasonOf(err) == "" && (err == nil && !s.converted):
		a.Errorf("%s %v\nplan: %v\nexec: no error", s.query, s.args, coldErr)
	case coldErr == nil && reasonOf(err) != "" && !isOfKeys(err) && len(s.args) == 0 && cold.Query != "" &&
		len(cold.Assumes) == 0:
		a.Errorf("%s\nexec: %v\nplan: %q, without an assumption", s.query, err, cold.Query)
	}
	switch {
	case errors.Is(warmErr, ErrNoConnection) && err != nil:
		// There is no such table.
	case warmErr != nil && (err == nil || warmErr.Error() != err.Error() && !(reasonOf(err) != "" && len(s.args) > 0)):
		a.Errorf("%s %v\nplan: %v\nexec: %v", s.query, s.args, warmErr, err)
	case warmErr != nil:
		a.refused++
	case isOfKeys(err), reasonOf(err) != "" && (len(s.args) > 0 || warm.Query == ""):
		a.undecided++
	case reasonOf(err) != "":
		a.Errorf("%s\nplan: %q\nexec: %v", s.query, warm.Query, err)
	case warm.Query != "":
		a.sent++
		if len(executed) > 0 && !isSent(warm.Query, executed[len(executed)-1]) {
			a.Errorf("%s %v\nplan: %q\nsent: %q", s.query, s.args, warm.Query, executed)
		}
	}
}

func (a *agreement) expect(refused, sent int) {
	a.Logf("refused: %d, sent: %d, decided by arguments, keys or rows: %d, columns unknown: %d",
		a.refused, a.sent, a.undecided, a.assumed)
	if a.refused < refused || a.sent < sent {
		a.Errorf("want at least %d refused and %d sent", refused, sent)
	}
}

// forgetServer removes a connector's metadata of its server.
func forgetServer(t testing.TB, c *Connector) {
	t.Helper()
	c.known = session.Cache{Kind: c.known.Kind, Client: c.known.Client}
	if err := c.SetRule(c.Rule()); err != nil { // its tables have columns of the old cache
		t.Fatal(err)
	}
}

func TestPlan_agreesWithExec(t *testing.T) {
	a := &agreement{T: t}
	for of := range agreedRules {
		server := stockServer()
		c := agreedConnector(t, server, of, session.ServerAuto)
		db := sql.OpenDB(c)
		db.SetMaxIdleConns(-1) // each execution has a new session
		r := agreedSource{rand.New(rand.NewPCG(18, uint64(of)))}
		for range 400 {
			s := r.statement()
			forgetServer(t, c)
			server.Forget()
			cold, coldErr := c.Plan(s.query)
			_, err := db.ExecContext(context.Background(), s.query, s.args...)
			warm, warmErr := c.Plan(s.query)
			a.compare(s, cold, warm, coldErr, warmErr, err, server.Queries(""))
		}
		_ = db.Close()
	}
	a.expect(1500, 2000)
}

// The plans and executions of these statements could differ, because the plan needs the types of
// the columns.
func TestPlan_probes(t *testing.T) {
	const inline, bits = 3, 12
	for _, probe := range []struct {
		name    string
		of      int
		query   string
		refused string // reason, or "" if it is sent
	}{
		{"an UPDATE of a sharding column", inline, "UPDATE t_order_1 SET user_id = 6 WHERE order_id = 1", ""},
		{"a string that is an integer", inline, "INSERT INTO t_order_3 (user_id) VALUES ('7')", ""},
		{"a string that is a decimal", inline, "INSERT INTO t_order_3 (user_id) VALUES ('7.0')", ""},
		{"shard bits of a column that is left out", bits, "INSERT INTO t_order (note) VALUES ('x')", reasonNoGene},
		{"shard bits of an expression", bits, "INSERT INTO t_order (user_id) VALUES (NOW())", reasonNoGene},
		{"another table's row", inline, "INSERT INTO t_order_3 (user_id) VALUES (6)", reasonWrongShard},
		{"another table's row by an upsert", inline,
			"INSERT INTO t_order_3 (user_id) VALUES (7) ON DUPLICATE KEY UPDATE user_id = 6", reasonWrongShard},
	} {
		t.Run(probe.name, func(t *testing.T) {
			server := stockServer()
			c := agreedConnector(t, server, probe.of, session.ServerAuto)
			db := sql.OpenDB(c)
			defer func() { _ = db.Close() }()
			cold, coldErr := c.Plan(probe.query)
			_, err := db.Exec(probe.query)
			warm, warmErr := c.Plan(probe.query)
			for when, have := range map[string]error{"plan before": coldErr, "exec": err, "plan after": warmErr} {
				if reasonOf(have) != probe.refused || (have != nil) != (probe.refused != "") {
					t.Errorf("%s\nhave: %v\nwant: %q", when, have, probe.refused)
				}
			}
			a := &agreement{T: t}
			a.compare(agreed{query: probe.query}, cold, warm, coldErr, warmErr, err, server.Queries(""))
		})
	}
}

func TestPlan_agreesWithServer(t *testing.T) { onEachAndOldest(t, testPlan_agreesWithServer) }

func testPlan_agreesWithServer(t *testing.T) {
	cfg := must(mysql.ParseDSN(testserver.Database(t) + "?" + strictMode))(t)
	base := must(mysql.NewConnector(cfg))(t)
	plain := sql.OpenDB(base)
	defer func() { _ = plain.Close() }()
	var columns []string
	for _, column := range agreedColumns {
		columns = append(columns, column[0]+" "+column[1])
	}
	table := " (" + strings.Join(columns, ", ") + ", PRIMARY KEY (order_id))"
	for _, name := range []string{
		"t_order", "t_order_0", "t_order_1", "t_order_2", "t_order_3", "t_order_9", "old", "other",
	} {
		mustExec(t, plain, "CREATE TABLE "+name+table)
	}
	server := session.ServerMySQL
	if testserver.KindOf(t) == testserver.KindMariaDB {
		server = session.ServerMariaDB
	}
	a := &agreement{T: t}
	for of := range agreedRules {
		if agreedRules[of].generator == agreedUUID {
			continue // the key column is a BIGINT
		}
		c := agreedConnector(t, base, of, server)
		db := sql.OpenDB(c)
		r := agreedSource{rand.New(rand.NewPCG(81, uint64(of)))}
		for range 40 {
			s := r.statement()
			if strings.HasPrefix(s.query, "PREPARE") || strings.HasPrefix(s.query, "CREATE") {
				continue
			}
			forgetServer(t, c)
			cold, coldErr := c.Plan(s.query)
			_, err := db.ExecContext(context.Background(), s.query, s.args...)
			warm, warmErr := c.Plan(s.query)
			a.compare(s, cold, warm, coldErr, warmErr, err, nil)
		}
		_ = db.Close()
	}
	a.expect(100, 150)
}

// everySecond returns a script of 2, 4, 6, …
func everySecond() script {
	next := int64(0)
	return func(_ context.Context, _ spi.Column, n int) ([]any, error) {
		keys := make([]any, n)
		for i := range keys {
			next += 2
			keys[i] = next
		}
		return keys, nil
	}
}

// Keys that can't be counted from LastInsertId are an error if the rule requires consecutive
// keys, and otherwise a line in the log. With WithKeys, all keys are accepted.
func TestConsecutive_isCheckedBeforeSending(t *testing.T) {
	for _, c := range []struct {
		batchKeys string
		query     string
		withKeys  bool
		refused   bool
		logged    int
	}{
		{"any", "INSERT INTO ruled (a) VALUES (1)", false, false, 0},
		{"any", "INSERT INTO ruled (a) VALUES (1), (2)", false, false, 1},
		{"any", "INSERT INTO ruled (a) VALUES (1), (2)", true, false, 0},
		{"consecutive", "INSERT INTO ruled (a) VALUES (1)", false, false, 0},
		{"consecutive", "INSERT INTO ruled (a) VALUES (1), (2)", false, true, 0},
		{"consecutive", "INSERT INTO ruled (a) VALUES (1), (2)", true, false, 0},
	} {
		t.Run(c.query, func(t *testing.T) {
			var log bytes.Buffer
			base := &fakedb.Server{}
			connector := must(NewConnector(base, scriptRule(t, everySecond(), "ruled.id "+c.batchKeys), Config{Server: "other"},
				WithLogger(slog.New(slog.NewTextHandler(&log, nil)))))(t)
			opened, err := connector.Connect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ctx := t.Context()
			if c.withKeys {
				ctx = WithKeys(ctx, new(Keys))
			}
			for range 2 {
				before := len(base.Calls)
				_, err = opened.(*conn).ExecContext(ctx, c.query, nil)
				sent := slices.ContainsFunc(base.Calls[before:], func(call string) bool { return strings.Contains(call, "INSERT") })
				if errors.Is(err, ErrNotConsecutive) != c.refused || sent == c.refused {
					t.Errorf("batchKeys: %s, %s, with keys: %v\nhave: %v, sent %v\nwant: refused %v", c.batchKeys, c.query, c.withKeys, err, sent, c.refused)
				}
			}
			if have := strings.Count(log.String(), "not consecutive"); have != c.logged {
				t.Errorf("batchKeys: %s, %s\nhave: logged %d times\nwant: %d\n%s", c.batchKeys, c.query, have, c.logged, &log)
			}
			_ = opened.Close()
			_ = connector.Close()
		})
	}
}

// If the statement itself reads LAST_INSERT_ID(), and no generated key was inserted, only the
// server knows its value.
func TestLastID_readByTheStatement(t *testing.T) {
	s := session.New(nil, new(session.Cache))
	s.LastID.Told(7)
	e := &execution{session: &s, plan: &plan{Plan: &rewrite.Plan{Statements: 1}}}
	e.keepLastID(&insertion{target: &target{in: &rewrite.Insert{MentionsLastID: true}, table: &table{}}}, insertReport{}, noneInserted, 0, false)
	if s.LastID.Known() {
		t.Errorf("have: %+v\nwant: not known", s.LastID)
	}
}

// A bound key requests a generated one under the same conditions as with AUTO_INCREMENT, which
// depend on its kind and the session's sql_mode.
func TestTable_isMissing(t *testing.T) {
	const zeroStays, emptyIsNull = "NO_AUTO_VALUE_ON_ZERO", "EMPTY_STRING_IS_NULL"
	for _, c := range []struct {
		kind  rewrite.Kind
		mode  string
		bound driver.Value
		want  bool
	}{
		{rewrite.KindInteger, "", nil, true},
		{rewrite.KindInteger, zeroStays, []byte(nil), true},
		{rewrite.KindInteger, "", int64(0), true},
		{rewrite.KindInteger, "", uint64(0), true},
		{rewrite.KindInteger, "", "0", true},
		{rewrite.KindInteger, "", []byte("00"), true},
		{rewrite.KindInteger, "", false, true},
		{rewrite.KindInteger, "", 0.4, true},
		{rewrite.KindInteger, zeroStays, int64(0), false},
		{rewrite.KindInteger, zeroStays, "0", false},
		{rewrite.KindInteger, "", int64(7), false},
		{rewrite.KindInteger, "", "7", false},
		{rewrite.KindInteger, emptyIsNull + "," + zeroStays, "", true},
		{rewrite.KindText, "", nil, true},
		{rewrite.KindText, zeroStays, "", true},
		{rewrite.KindText, "", []byte{}, true},
		{rewrite.KindText, "", "0", false},
		{rewrite.KindText, "", int64(0), false},
	} {
		keys := &table{}
		keys.setKind(c.kind)
		conn := base.New(must((&fakedb.Server{Mode: c.mode}).Connect(t.Context()))(t), nil)
		s := session.New(&conn, new(session.Cache))
		if have, err := keys.isMissing(t.Context(), &s, c.bound, &rewrite.Insert{}, 0); err != nil || have != c.want {
			t.Errorf("%#v, kind %v, mode %v\nhave: %v, %v\nwant: %v", c.bound, c.kind, c.mode, have, err, c.want)
		}
	}
}

func TestInsertion_changedNothing(t *testing.T) {
	for _, c := range []struct {
		in     rewrite.Insert
		report insertReport
		want   bool
	}{
		{rewrite.Insert{}, insertReport{affected: 0}, false},
		{rewrite.Insert{Ignore: true}, insertReport{affected: 0, id: 5}, false},
		{rewrite.Insert{}, insertReport{affected: 1}, true},
		{rewrite.Insert{}, insertReport{affected: unknownCount}, true},
	} {
		equal(t, (&insertion{target: &target{in: &c.in}}).changed(c.report, false), c.want, c.in, "v", c.report, "v")
	}
}

func TestConsecutive_integers(t *testing.T) {
	for _, c := range []struct {
		keys []int64
		want bool
	}{{nil, true}, {[]int64{7}, true}, {[]int64{7, 8, 9}, true}, {[]int64{7, 8, 10}, false}, {[]int64{7, 7}, false}, {[]int64{9, 8}, false}} {
		equal(t, areConsecutive(&rewrite.Keys{Ints: c.keys}), c.want, c.keys)
	}
}

// Bound keys, integers and others, are in their rows.
func TestExecution_boundKeysOfTheirRows(t *testing.T) {
	for _, of := range []struct {
		generator spi.KeyGenerator
		keys      rewrite.Keys
		want      []driver.Value
	}{
		{&shardCounter{}, rewrite.Keys{Ints: []int64{5, 6, 7}}, []driver.Value{"a", int64(5), "b", int64(6), "c", int64(7)}},
		{textKeys{}, rewrite.Keys{Values: []any{"key0", "key1", "key2"}}, []driver.Value{"a", "key0", "b", "key1", "c", "key2"}},
	} {
		c := quietConn(t, must(rule.New(rule.Config{
			Tables:     []rule.TableConfig{{Name: "t", KeyConfig: rule.KeyConfig{Column: "id", Generator: "g"}}},
			Generators: map[string]rule.GeneratorConfig{"g": {Generator: of.generator}},
		}))(t), Config{Server: "other"}).(*conn)
		p := must(c.planFor(t.Context(), "INSERT INTO t (a) VALUES (?), (?), (?)"))(t)
		e := &execution{plan: p, session: &c.session, user: base.Named([]driver.Value{"a", "b", "c"}), first: insertion{target: &p.targets[0], keys: of.keys}, result: &result{}}
		args, err := e.bindArgs(true)
		var have []driver.Value
		for _, arg := range args {
			have = append(have, arg.Value)
		}
		if err != nil || !slices.Equal(have, of.want) {
			t.Errorf("have: %v, %v\nwant: %v", have, err, of.want)
		}
	}
}

// If the keys are literals, they are in their rows, even with bound keys between them.
func TestExecution_literalKeysOfTheirRows(t *testing.T) {
	plan := must(rewrite.Parse("INSERT INTO t (id, a) VALUES (?, 1), (DEFAULT, 2), (?, 3), (NULL, 4)", rewrite.Options{
		Tables: func(_, _ string) *rewrite.Table {
			return &rewrite.Table{KeyColumn: "id", Kind: rewrite.KindInteger}
		},
	}))(t)
	e := &execution{first: insertion{target: &target{in: &plan.Inserts[0]}, filled: []bool{true, false, false, false}, keys: rewrite.Keys{Ints: []int64{11, 12, 13}}}}
	have := e.fillKeys(nil)[0]
	if have.Len() != 2 || have.At(0) != int64(12) || have.At(1) != int64(13) {
		t.Errorf("have: %+v\nwant: 12, 13", have)
	}
}
