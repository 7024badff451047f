package linear

import (
	"database/sql"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/shardkey/shardkey/cmd/shardkey/internal/lint"
	"github.com/shardkey/shardkey/debug"
	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/internal/test/fakedb"
	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/internal/tidb"
	_ "github.com/shardkey/shardkey/keygen/snowflake"
	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/rule"
)

// entries are the ways to read a statement.
func entries(t *testing.T) []entry {
	connector := newConnector(t)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	page := debug.Handler(connector)
	return []entry{
		{"lint", func(_ *testing.T, statement string) {
			linter := lint.Linter{Connector: connector, Names: []string{"t", "t_0", "t_1"}}
			linter.Text("statements.sql", statement)
			linter.Findings()
		}},
		{"Parse", func(_ *testing.T, statement string) {
			if p, err := rewrite.Parse(statement, options()); err == nil {
				p.Query()
			}
		}},
		{"Classify", func(_ *testing.T, statement string) {
			sqltoken.Classify(statement)
			sqltoken.MentionsLastInsertID(statement)
			sqltoken.WithoutLiterals(statement, 0, sqltoken.UTF8, len(statement))
		}},
		{"Check", func(_ *testing.T, statement string) {
			if p, err := rewrite.Parse(statement, options()); err == nil {
				_, _ = tidb.Check(statement, options(), p)
			}
		}},
		{"Plan", func(_ *testing.T, statement string) { _, _ = connector.Plan(statement, "id", "a") }},
		{"Exec", func(t *testing.T, statement string) { _, _ = db.ExecContext(t.Context(), statement) }},
		{"Query", func(t *testing.T, statement string) {
			if rows, err := db.QueryContext(t.Context(), statement); err == nil {
				_ = rows.Close()
			}
		}},
		{"Prepare", func(t *testing.T, statement string) {
			if s, err := db.PrepareContext(t.Context(), statement); err == nil {
				_, _ = s.ExecContext(t.Context())
				_ = s.Close()
			}
		}},
		{"page", func(_ *testing.T, statement string) {
			w := httptest.NewRecorder()
			page.ServeHTTP(w, httptest.NewRequest("GET", "/?statement="+url.QueryEscape(statement), nil))
		}},
	}
}

func options() rewrite.Options {
	table := &rewrite.Table{Key: "id", Recorded: []string{"a"}, Fixed: []string{"a"}, Columns: []string{"id", "a"}}
	return rewrite.Options{Table: func(_, name string) *rewrite.Table {
		if name != "t_1" {
			return nil
		}
		return table
	}}
}

func newConnector(t *testing.T) *driver.Connector {
	t.Helper()
	r := must.Get(rule.Parse("rule.yaml", []byte(`rules: [!SHARDING {
  tables: {t: {actualDataNodes: 'ds.t_${0..1}', tableStrategy: {standard: {shardingColumn: a, shardingAlgorithmName: mod}},
    keyGenerateStrategy: {column: id, keyGeneratorName: keys}}},
  keyGenerators: {keys: {type: SNOWFLAKE, props: {worker-id: 1}}},
  shardingAlgorithms: {mod: {type: MOD, props: {sharding-count: 2}}}}]`)))(t)
	server := &fakedb.Server{Quiet: true, Version: "9.7.4", Columns: [][2]string{{"id", "bigint"}, {"a", "int"}}}
	c := must.Get(driver.NewConnector(server, r, driver.Config{}, driver.WithLogger(slog.New(slog.DiscardHandler))))(t)
	t.Cleanup(func() { _ = c.Close() })
	return c
}
