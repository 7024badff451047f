package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

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

// Keys that can't be counted from LastInsertId are logged once. With WithKeys, all keys are
// accepted.
func TestConsecutive_isLogged(t *testing.T) {
	var log jsonLog
	db, _ := openFake(t, &fakedb.Server{}, scriptRule(t, listed(2, 4, 6, 8, 10, 12, 14), "ruled.id"), Config{Server: "other"}, WithLogger(log.logger()))
	const query = "INSERT INTO ruled (a) VALUES (1), (2)"
	mustExec(t, db, "INSERT INTO ruled (a) VALUES (1)")
	must(db.ExecContext(WithKeys(t.Context(), new(Keys)), query))(t)
	equal(t, log.Len(), 0)
	for range 2 {
		mustExec(t, db, query)
	}
	if lines := log.take(t); len(lines) != 1 || lines[0]["table"] != "ruled" {
		t.Errorf("have: %v\nwant: one line", lines)
	}
}

// A plan is cached if it is small. If there are too many plans, or they are too large together,
// those that were not used for the longest time are dropped.
func TestPlanCache_bounds(t *testing.T) {
	c := newPlanCache(nil)
	p := &plan{Plan: new(rewrite.Plan)}
	for n, want := range map[int]bool{maxLiteralBytes: true, maxLiteralBytes + 1: false} {
		equal(t, c.holds(planKey{text: strings.Repeat("x", n)}, p), want, n, "bytes without placeholders")
	}
	has := func(text string) bool { return c.get(planKey{text: text}) != nil }
	c.most = 3
	for _, text := range []string{"a", "b", "c", "c", "d"} {
		c.put(planKey{text: text}, p)
	}
	if has("a") || !has("b") {
		t.Error("the oldest is not the one that was dropped")
	}
	if c.put(planKey{text: "e"}, p); has("c") || !has("b") {
		t.Error("a plan that was used is dropped before one that was not")
	}
	for _, text := range []string{"b", "d", "e", "unknown"} {
		c.remove(planKey{text: text})
	}
	entries, bytes := c.size()
	equal(t, [2]int{entries, bytes}, [2]int{})
	c.bytes = maxPlansBytes - 1 - p.Size()
	if c.put(planKey{text: "x"}, p); !has("x") {
		t.Error("a plan that just fits is dropped")
	}
	if c.put(planKey{text: "y"}, p); has("x") {
		t.Error("too many bytes are kept")
	}
}

// A plan without a connection assumes the DSN's sql_mode, or a server's default.
func TestPlan_modeOfTheDSN(t *testing.T) {
	for dsn, want := range map[string]bool{"": false, "/app": false, "/app?sql_mode=%27ANSI_QUOTES%27": true} {
		_, c := idleDB(t, generatorRule(t, new(shardCounter), "t.id"))
		c.host.DSN = spi.NewSecret(dsn)
		p, err := c.Plan("INSERT INTO t (id) VALUES (0)")
		noError(t, err)
		if have := strings.Contains(strings.Join(p.Assumes, "; "), "ANSI_QUOTES"); have != want {
			t.Errorf("%q\nhave: %q\nwant: ANSI_QUOTES: %v", dsn, p.Assumes, want)
		}
	}
}
