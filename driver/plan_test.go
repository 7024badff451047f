package driver

import (
	"cmp"
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

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/driver/internal/session"
	"github.com/shardkey/shardkey/internal/test/differential"
	"github.com/shardkey/shardkey/internal/test/fakedb"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// TestPlan_parsesOnce counts the statements that are parsed.
func TestPlan_parsesOnce(t *testing.T) {
	base := &fakedb.Server{Columns: [][2]string{{"id", "bigint"}, {"a", "int"}}}
	c, connector := openFake(t, base, taggedRule(t, "ruled", 0), Config{Server: "mysql"})
	c.SetMaxOpenConns(1)
	long := "INSERT INTO ruled (a) VALUES (1)" + strings.Repeat(", (2)", maxRecent/5+1)
	for _, of := range []struct {
		name, query string
		args        []any
		want        int64
	}{
		{"bound", "INSERT INTO ruled (a) VALUES (?)", []any{1}, 1},
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
		{"no rule, of the connection", "INSERT INTO nowhere (a) VALUES (1)", nil, 0},
		{"no insert", "SELECT 1", nil, 0},
	} {
		t.Run(of.name, func(t *testing.T) {
			before := connector.Stats().Plans.Misses
			_, _ = c.ExecContext(t.Context(), of.query, of.args...)
			equal(t, connector.Stats().Plans.Misses-before, of.want)
		})
	}
}

// agreedColumns are the columns of each table of agreedRules.
var agreedColumns = [][2]string{{"id", "bigint"}, {"a", "int"}, {"u", "int"}, {"s", "varchar(60)"}}

// stockServer returns a server that answers like a new MySQL, with tables of agreedColumns.
func stockServer() *fakedb.Server {
	return &fakedb.Server{Version: "8.4.6", Comment: "MySQL Community Server - GPL", Mode: defaultSQLMode, Columns: agreedColumns}
}

const (
	agreedInline   = `{type: INLINE, props: {algorithm-expression: "t_${%s %% 4}"}}`
	agreedMod      = "{type: MOD, props: {sharding-count: 4}}"
	agreedHash     = "{type: HASH_MOD, props: {sharding-count: 4}}"
	agreedVolume   = "{type: VOLUME_RANGE, props: {range-lower: 3, range-upper: 100, sharding-volume: 60}}"
	agreedBoundary = `{type: BOUNDARY_RANGE, props: {sharding-ranges: "3, 8, 200"}}`
	agreedBits     = "{type: SNOWFLAKE, props: {worker-id: %d, layout: 41-10-12, gene-column: a, gene-bits: %d}}"
	agreedUUID     = "{type: UUID}"
)

// agreedRules are the sharding columns of table t, if any, with the settings that depend on them.
var agreedRules = []struct{ column, algorithm, settings, generator string }{
	{column: "a", algorithm: agreedMod},
	{column: "a", algorithm: agreedHash},
	{column: "s", algorithm: agreedHash, generator: agreedUUID},
	{column: "u", algorithm: fmt.Sprintf(agreedInline, "u")},
	{column: "a", algorithm: fmt.Sprintf(agreedInline, "a"), settings: ", explicitKeys: keep"},
	{column: "a", algorithm: agreedMod, settings: ", shardGuard: warn"},
	{column: "a", algorithm: agreedMod, settings: ", shardGuard: off"},
	{column: "id", algorithm: agreedMod},
	{column: "a", algorithm: agreedVolume},
	{column: "u", algorithm: agreedBoundary},
	{column: "id", algorithm: fmt.Sprintf(agreedInline, "id"), generator: fmt.Sprintf(agreedBits, 77, 4)},
	{algorithm: agreedMod, generator: fmt.Sprintf(agreedBits, 78, 2)},
}

// agreedConnector returns a connector to a server with one of agreedRules.
func agreedConnector(t testing.TB, base driver.Connector, of int, server string) *Connector {
	t.Helper()
	a := agreedRules[of]
	strategy := "tableStrategy: {none: }"
	if a.column != "" {
		strategy = "tableStrategy: {standard: {shardingColumn: " + a.column + ", shardingAlgorithmName: a}}"
	}
	generator := cmp.Or(a.generator, fmt.Sprintf("{type: SNOWFLAKE, props: {worker-id: %d}}", 40+of))
	r := must(rule.Parse(fmt.Sprintf("%s-%d", t.Name(), of), []byte(`
rules:
- !SHARDING
  tables:
    t:
      actualDataNodes: app.t_${0..4}
      `+strategy+`
      keyGenerateStrategy: {column: id, keyGeneratorName: keys`+a.settings+`}
  shardingAlgorithms: {a: `+a.algorithm+`}
  keyGenerators: {keys: `+generator+`}
`)))(t)
	c := must(NewConnector(base, r, Config{Server: server}, WithLogger(slog.New(slog.DiscardHandler))))(t)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// agreedSource generates INSERTs like the differential test, into the tables of agreedRules.
type agreedSource struct{ differential.Inserts }

func newAgreedSource(seed uint64, of int) *agreedSource {
	return &agreedSource{differential.Inserts{Rand: rand.New(rand.NewPCG(seed, uint64(of))), Aliases: true}}
}

var tableOfDifferential = regexp.MustCompile(`\bt\b`)

func (r *agreedSource) statement() statementCase {
	if r.IntN(20) == 0 {
		return statementCase{query: oneOf(r.Rand, "SELECT 1", "UPDATE t_1 SET a = 6 WHERE id = 1", "DELETE FROM t_2", "SET @a = 1", "INSERT", "INSERT INTO t",
			"INSERT INTO t_1 (a) VALEUS (1)", "INSERT INTO t_1 (a VALUES (1)", "REPLACE t_1 (a) VALUES (1", "",
			"PREPARE p FROM 'INSERT INTO t_1 (a) VALUES (2)'", "/*!80000 INSERT INTO t_1 (a) VALUES (2) */",
			"INSERT INTO t_1 (a) VALUES (ROW_COUNT())", "CREATE TABLE t_1 SELECT 1")}
	}
	st := r.into()
	if r.IntN(20) == 0 {
		second := r.into()
		st.query, st.args = st.query+"\n; "+second.query, append(st.args, second.args...)
	}
	return st
}

func (r *agreedSource) into() statementCase {
	query, args := r.Insert()
	table := oneOf(r.Rand, "t_0", "t_1", "t_2", "t_3", "t_1", "t_2", "t", "T_3", "t_9", "other")
	query = tableOfDifferential.ReplaceAllString(query, table)
	if r.IntN(8) == 0 {
		query += oneOf(r.Rand, " ON DUPLICATE KEY UPDATE a = VALUES(a)", " ON DUPLICATE KEY UPDATE a = 5", " ON DUPLICATE KEY UPDATE a = a + 1", " RETURNING id")
	}
	return statementCase{query: query, args: args}
}

// isOfKeys reports whether an error is about the generated keys, or about the rows of a query.
func isOfKeys(err error) bool {
	var e *StatementError
	if !errors.As(err, &e) {
		return false
	}
	return strings.HasPrefix(e.Message, "INSERT … SELECT: ") ||
		slices.Contains([]string{ReasonNoKey, ReasonNoFittingKey, ReasonNarrowColumn, ReasonNotConsecutive}, e.Reason)
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
	planned, sent = counterOf.ReplaceAllString(planned, "counted"), counterOf.ReplaceAllString(sent, "counted")
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

// counterOf matches the expressions for the keys of a query, which differ if the keys aren't consecutive.
var counterOf = regexp.MustCompile(`CASE LAST_INSERT_ID\(\).*LAST_INSERT_ID\(1\) \+ ~0\)* END`)

// agreement compares plans with executions.
type agreement struct {
	*testing.T
	refused, sent, undecided, assumed int
}

// compare compares an execution with two plans: cold is from a connector without metadata of the
// server, warm from one with the metadata that the execution has queried. executed are the
// statements that the server executed.
func (a *agreement) compare(s statementCase, cold, warm *Plan, coldErr, warmErr, err error, executed []string) {
	a.Helper()
	switch {
	case errors.Is(coldErr, ErrNoConnection):
		a.assumed++
	case coldErr != nil && err == nil:
		a.Errorf("%s %v\nplan: %v\nexec: no error", s.query, s.args, coldErr)
	case coldErr == nil && reasonOf(err) != "" && !isOfKeys(err) && len(s.args) == 0 && cold.Query() != "" &&
		len(cold.Assumes) == 0:
		a.Errorf("%s\nexec: %v\nplan: %q, without an assumption", s.query, err, cold.Query())
	}
	switch {
	case errors.Is(warmErr, ErrNoConnection) && err != nil:
		// There is no such table.
	case warmErr != nil && strings.Contains(s.query, ";") && errors.As(err, new(*mysql.MySQLError)):
		a.refused++ // the server refused a statement in front of it
	case warmErr != nil && (err == nil || warmErr.Error() != err.Error() && !isOfKeys(err) && !(reasonOf(err) != "" && len(s.args) > 0)):
		a.Errorf("%s %v\nplan: %v\nexec: %v", s.query, s.args, warmErr, err)
	case warmErr != nil:
		a.refused++
	case isOfKeys(err), reasonOf(err) != "" && (len(s.args) > 0 || warm.Query() == ""):
		a.undecided++
	case reasonOf(err) != "":
		a.Errorf("%s\nplan: %q\nexec: %v", s.query, warm.Query(), err)
	case warm.Query() != "":
		a.sent++
		planned := append([]*Plan{warm}, warm.Others...)
		if n := len(executed) - len(planned); len(executed) > 0 && err == nil {
			for i, p := range planned {
				if n < 0 || !isSent(p.Query(), executed[n+i]) {
					a.Errorf("%s %v\nplan: %q\nsent: %q", s.query, s.args, p.Query(), executed)
				}
			}
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
		r := newAgreedSource(18, of)
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

func TestPlan_agreesWithServer(t *testing.T) { onEach(t, testPlan_agreesWithServer) }

func testPlan_agreesWithServer(t *testing.T) {
	cfg := must(mysql.ParseDSN(testserver.Database(t) + "?multiStatements=true"))(t)
	base := must(mysql.NewConnector(cfg))(t)
	plain := sql.OpenDB(base)
	defer plain.Close()
	var columns []string
	for _, column := range agreedColumns {
		columns = append(columns, column[0]+" "+column[1])
	}
	table := " (" + strings.Join(columns, ", ") + ", PRIMARY KEY (id))"
	for _, name := range []string{
		"t", "t_0", "t_1", "t_2", "t_3", "T_3", "t_9", "src", "other",
	} {
		mustExec(t, plain, "CREATE TABLE IF NOT EXISTS "+name+table)
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
		db.SetMaxIdleConns(-1) // each execution has a new session
		r := newAgreedSource(81, of)
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
	db, _ := openFake(t, &fakedb.Server{}, generatorRule(t, listed(2, 4, 6, 8, 10, 12, 14), "ruled.id"), Config{Server: "other"}, WithLogger(log.logger()))
	log.take(t) // the rule in use
	const query = "INSERT INTO ruled (a) VALUES (1), (2)"
	mustExec(t, db, "INSERT INTO ruled (a) VALUES (1)")
	must(db.ExecContext(WithKeys(t.Context(), new(Keys)), query))(t)
	equal(t, log.String(), "")
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
	c := newPlanCache(new(env))
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
	c.bytes = maxPlansBytes - 1 - p.size()
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
