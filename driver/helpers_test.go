package driver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/sqltoken"
	testcases "github.com/shardkey/shardkey/internal/test/cases"
	"github.com/shardkey/shardkey/internal/test/fakedb"
	testmust "github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// must is short for must.Get: must(db.Conn(ctx))(t).
func must[T any](v T, err error) func(t testing.TB, what ...any) T { return testmust.Get(v, err) }

// errOf is short for must.Err.
func errOf[T any](v T, err error) error { return testmust.Err(v, err) }

// These are short for must.Do, must.Open, must.Is, must.Fail, must.FailWith and must.Contain.
var (
	noError   = testmust.Do
	mustOpen  = testmust.Open
	isError   = testmust.Is
	fails     = testmust.Fail
	failsWith = testmust.FailWith
	contains  = testmust.Contain
)

// check fails the test if err isn't nil. The test continues.
func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// equal is short for must.Equal.
func equal[T comparable](t testing.TB, have, want T, what ...any) {
	t.Helper()
	testmust.Equal(t, have, want, what...)
}

// equalSlices is short for must.EqualSlices.
func equalSlices[T comparable](t testing.TB, have, want []T, what ...any) {
	t.Helper()
	testmust.EqualSlices(t, have, want, what...)
}

// mustExec executes a statement on a *sql.DB, *sql.Conn or *sql.Tx.
func mustExec(t testing.TB, on interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}, query string, args ...any,
) sql.Result {
	t.Helper()
	return must(on.ExecContext(context.Background(), query, args...))(t, query)
}

// statementCase is a statement with arguments, and its outcome.
type statementCase struct {
	query string
	args  []any
	want  string
}

// statementCases returns the cases of a file with the columns want, query and arguments.
func statementCases(t *testing.T, file string) (all []statementCase) {
	t.Helper()
	for _, c := range testcases.Read(t, file, 3) {
		all = append(all, statementCase{c[1], argsOf(c[2]), c[0]})
	}
	return all
}

// argsOf returns the arguments of a line, which are separated by blanks.
func argsOf(line string) (args []any) {
	for arg := range strings.FieldsSeq(line) {
		args = append(args, scriptValue(arg))
	}
	return args
}

// script is a generator of text keys that the test specifies.
type script func(ctx context.Context, c spi.Column, n int) ([]any, error)

func (s script) GenerateKeys(ctx context.Context, c spi.Column, n int) ([]any, error) {
	return s(ctx, c, n)
}

// generatorRule returns a rule for the tables in "table.column" with the keys of one generator. After a
// blank, "keep" allows explicit keys, and "consecutive" requires consecutive keys.
func generatorRule(t testing.TB, g spi.KeyGenerator, columns ...string) *rule.Rule {
	t.Helper()
	config := rule.Config{Generators: map[string]rule.GeneratorConfig{"script": {Generator: g}}}
	for _, column := range columns {
		column, more, _ := strings.Cut(column, " ")
		table, column, _ := strings.Cut(column, ".")
		key := rule.KeyConfig{Column: column, Generator: "script", Consecutive: more == "consecutive"}
		if more == "keep" {
			key.ExplicitKeys = more
		}
		config.Tables = append(config.Tables, rule.TableConfig{Name: table, KeyConfig: key})
	}
	return must(rule.New(config))(t)
}

// ints is a script of int64 keys.
type ints struct{ script }

func (g ints) GenerateInt64Keys(ctx context.Context, c spi.Column, keys []int64) error {
	made, err := g.script(ctx, c, len(keys))
	for i := range made {
		keys[i] = made[i].(int64)
	}
	return err
}

// integers returns a generator of the int64 keys that f returns.
func integers(f script) ints { return ints{f} }

// numbered returns a generator of key(0), key(1), …
func numbered(key func(i int) int64) ints {
	return ints{texts(func(i int) any { return key(i) })}
}

// texts returns a generator of the text keys key(0), key(1), …
func texts(key func(i int) any) script {
	var made atomic.Int64
	return func(_ context.Context, _ spi.Column, n int) ([]any, error) {
		keys, first := make([]any, n), int(made.Add(int64(n)))-n
		for i := range keys {
			keys[i] = key(first + i)
		}
		return keys, nil
	}
}

// counted returns a generator of 1001, 1002, …
func counted() ints { return numbered(func(i int) int64 { return int64(1001 + i) }) }

// listed returns a generator that returns each of the keys once, integers or texts.
func listed(keys ...any) spi.KeyGenerator {
	var mu sync.Mutex
	isText := false
	for i := range keys {
		keys[i] = sqltoken.PlainValue(keys[i])
		_, isInt := keys[i].(int64)
		isText = isText || !isInt
	}
	list := script(func(_ context.Context, _ spi.Column, n int) ([]any, error) {
		mu.Lock()
		defer mu.Unlock()
		if n > len(keys) {
			return nil, fmt.Errorf("%d keys are wanted, %d are left", n, len(keys))
		}
		some := keys[:n]
		keys = keys[n:]
		return append([]any(nil), some...), nil
	})
	if isText {
		return list
	}
	return ints{list}
}

// openScripted opens a new database twice, with a rule and with the plain driver.
func openScripted(t *testing.T, r *rule.Rule, params ...string) (ours, plain *sql.DB) {
	t.Helper()
	return openScriptedOn(t, testserver.Database(t)+"?"+strings.Join(params, "&"), r)
}

func openScriptedOn(t *testing.T, dsn string, r *rule.Rule) (ours, plain *sql.DB) {
	t.Helper()
	cfg := must(mysql.ParseDSN(dsn))(t)
	base := must(mysql.NewConnector(cfg))(t)
	ours, plain = sql.OpenDB(mustConnector(t, base, r)), sql.OpenDB(base)
	t.Cleanup(func() { check(t, errors.Join(ours.Close(), plain.Close())) })
	return ours, plain
}

// door is a way to execute a statement.
type door struct {
	name string
	exec func(ctx context.Context, db *sql.DB, query string, args ...any) (sql.Result, error)
}

// doors are all ways of database/sql to execute a statement.
var doors = []door{
	{"DB", func(ctx context.Context, db *sql.DB, query string, args ...any) (sql.Result, error) {
		return db.ExecContext(ctx, query, args...)
	}},
	{"Tx", func(ctx context.Context, db *sql.DB, query string, args ...any) (sql.Result, error) {
		tx, err := db.BeginTx(context.Background(), nil)
		if err != nil {
			return nil, err
		}
		res, err := tx.ExecContext(ctx, query, args...)
		return res, errors.Join(err, tx.Commit())
	}},
	{"Conn", func(ctx context.Context, db *sql.DB, query string, args ...any) (sql.Result, error) {
		c, err := db.Conn(context.Background())
		if err != nil {
			return nil, err
		}
		res, err := c.ExecContext(ctx, query, args...)
		return res, errors.Join(err, c.Close())
	}},
	{"Stmt", func(ctx context.Context, db *sql.DB, query string, args ...any) (sql.Result, error) {
		s, err := db.PrepareContext(context.Background(), query)
		if err != nil {
			return nil, err
		}
		res, err := s.ExecContext(ctx, args...)
		return res, errors.Join(err, s.Close())
	}},
	{"Query", func(ctx context.Context, db *sql.DB, query string, args ...any) (sql.Result, error) {
		return nil, drain(db.QueryContext(ctx, query, args...))
	}},
}

// testGenerators counts the open generators of type TEST by their property tag. Each test uses
// another tag.
var testGenerators [9]atomic.Int64

type testGenerator struct {
	tag  int64
	next atomic.Int64
}

func init() {
	spi.RegisterKeyGenerator("TEST", func(p spi.Props) (spi.KeyGenerator, error) {
		tag, err := p.Int("tag", 0, 0, int64(len(testGenerators)-1))
		if err != nil {
			return nil, err
		}
		testGenerators[tag].Add(1)
		return &testGenerator{tag: tag}, nil
	})
}

func (g *testGenerator) GenerateKeys(ctx context.Context, c spi.Column, n int) ([]any, error) {
	return spi.KeysFromInts(ctx, g, c, n)
}

func (g *testGenerator) GenerateInt64Keys(_ context.Context, _ spi.Column, keys []int64) error {
	for i := range keys {
		keys[i] = g.next.Add(1)
	}
	return nil
}

func (g *testGenerator) Close() error { testGenerators[g.tag].Add(-1); return nil }

func (g *testGenerator) Health() spi.Health { return spi.Health{Issued: g.next.Load()} }

// taggedRuleText returns a rule for one table with a generator of a tag.
func taggedRuleText(table string, tag int) string {
	return ruleText(table+" - - - id:test", "", fmt.Sprintf("  keyGenerators: {test: {type: TEST, props: {tag: %d}}}\n", tag))
}

func taggedRule(t testing.TB, table string, tag int) *rule.Rule {
	t.Helper()
	return mustParseRule(t, taggedRuleText(table, tag))
}

// snowflakeRule returns a rule for the column id of a table, with consecutive int64 keys.
func snowflakeRule(t testing.TB, table string) *rule.Rule {
	t.Helper()
	return mustParseRule(t, ruleText(table+" - - - id:snowflake", "",
		"  keyGenerators: {snowflake: {type: SNOWFLAKE, props: {worker-id: 5}}}\n"))
}

// ruleText returns a rule. A line of tables has a table, its data nodes, the "column:algorithm" of its
// database strategy and of its table strategy, and the "column:generator" of its keys. "-" stands for
// none. settings are settings of all key columns. more is the rest, which may begin with tables.
func ruleText(tables, settings, more string) string {
	text := "rules:\n- !SHARDING\n  tables:\n"
	for line := range strings.Lines(strings.TrimSpace(tables)) {
		f := strings.Fields(line)
		column, generator, _ := strings.Cut(f[4], ":")
		text += fmt.Sprintf("    %s:\n      keyGenerateStrategy: {column: %s, keyGeneratorName: %s%s}\n",
			f[0], column, generator, settings)
		if f[1] != "-" {
			text += "      actualDataNodes: " + f[1] + "\n"
		}
		for i, strategy := range []string{"databaseStrategy", "tableStrategy"} {
			if column, algorithm, ok := strings.Cut(f[2+i], ":"); ok {
				text += fmt.Sprintf("      %s: {standard: {shardingColumn: %s, shardingAlgorithmName: %s}}\n", strategy, column, algorithm)
			}
		}
	}
	return text + strings.TrimPrefix(more, "\n")
}

// testRule returns a rule for a table that no test uses.
func testRule(t testing.TB) *rule.Rule { return taggedRule(t, "nobodys_table", 0) }

// openFake opens a rule over a connector of a server that is usually a fake.
func openFake(t testing.TB, base driver.Connector, r *rule.Rule, options ...Option) (*sql.DB, *Connector) {
	t.Helper()
	c := must(NewConnector(base, r, options...))(t)
	db := sql.OpenDB(c)
	t.Cleanup(func() { _ = db.Close() })
	return db, c
}

// openConn opens a connection of a rule over a connector.
func openConn(t testing.TB, base driver.Connector, r *rule.Rule, options ...Option) *conn {
	t.Helper()
	connector := must(NewConnector(base, r, options...))(t)
	c := must(connector.Connect(context.Background()))(t).(*conn)
	t.Cleanup(func() { _, _ = c.Close(), connector.Close() })
	return c
}

// idleDB opens a rule with a server that does nothing.
func idleDB(t testing.TB, r *rule.Rule, options ...Option) (*sql.DB, *Connector) {
	t.Helper()
	return openFake(t, &fakedb.Server{Quiet: true}, r, append([]Option{Config{Server: "other"}}, options...)...)
}

// ruleNumber makes the names of rules unique, because rules of the same name and content share
// generators.
var ruleNumber atomic.Int64

// mustParseRule parses a rule with its own generators.
func mustParseRule(t testing.TB, text string) *rule.Rule {
	t.Helper()
	return must(rule.Parse(fmt.Sprintf("rule%d.yaml", ruleNumber.Add(1)), []byte(text)))(t)
}

// textKeys returns the same keys in each call.
type textKeys struct{}

func (textKeys) GenerateKeys(_ context.Context, _ spi.Column, n int) ([]any, error) {
	keys := make([]any, n)
	for i := range keys {
		keys[i] = fmt.Sprint("key", i)
	}
	return keys, nil
}

func init() {
	spi.RegisterKeyGenerator("COUNTER", func(spi.Props) (spi.KeyGenerator, error) { return counted(), nil })
}

func TestMain(m *testing.M) { testserver.Main(m) }

// onEach runs testserver.Each in parallel with other tests.
func onEach(t *testing.T, test func(*testing.T)) {
	t.Helper()
	t.Parallel()
	testserver.Each(t, func(t *testing.T) { t.Parallel(); test(t) })
}

// number returns the number that a query returns.
func number(t testing.TB, db *sql.DB, query string) (n int64) {
	t.Helper()
	dest := []any{&n}
	if strings.HasPrefix(query, "SHOW") {
		dest = []any{new(string), &n}
	}
	noError(t, db.QueryRow(query).Scan(dest...), query)
	return n
}

// column returns the values of a query's only column.
func column(t testing.TB, db *sql.DB, query string) string {
	t.Helper()
	return columnOf(t, must(db.Query(query))(t))
}

func columnOf(t testing.TB, rows *sql.Rows) string {
	t.Helper()
	defer rows.Close()
	var all []string
	for rows.Next() {
		var s sql.NullString
		noError(t, rows.Scan(&s))
		all = append(all, s.String)
	}
	check(t, rows.Err())
	return strings.Join(all, " ")
}

// endsFacts ends what all connections of a connector know of tables, as ten seconds do.
const endsFacts = "DROP TABLE IF EXISTS no_such_table"
