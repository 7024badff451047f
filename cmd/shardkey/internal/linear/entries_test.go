package linear

import (
	"database/sql"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/cmd/shardkey/internal/lint"
	"github.com/shardkey/shardkey/debug"
	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/internal/test/cases"
	"github.com/shardkey/shardkey/internal/test/fakedb"
	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/internal/tidb"
	_ "github.com/shardkey/shardkey/keygen/snowflake"
	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
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
		{"Scan", func(_ *testing.T, statement string) {
			q := sqltoken.Scan(statement, true)
			q.ReadsLastInsertID()
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

// shape is a kind of statement that is slow by design. Table t_1 is sharded by a.
type shape struct {
	name string
	// before and after surround repetitions of repeated. A %d in repeated is their number.
	before, repeated, after string
}

// statement returns a statement of about size bytes.
func (s shape) statement(size int) string {
	var b strings.Builder
	b.WriteString(s.before)
	for i := 0; b.Len()+len(s.after) < size; i++ {
		if strings.Contains(s.repeated, "%d") {
			fmt.Fprintf(&b, s.repeated, i)
		} else {
			b.WriteString(s.repeated)
		}
	}
	b.WriteString(s.after)
	return b.String()
}

// shapes returns the statements that the entries read.
func shapes(t *testing.T) (all []shape) {
	for _, c := range cases.Read(t, "testdata/shapes.txt", 4) {
		all = append(all, shape{c[0], c[1], c[2], c[3]})
	}
	return all
}

// readRule parses and opens a rule, and looks each of its tables up.
func readRule(t *testing.T, text string) {
	r, err := rule.Parse("rule.yaml", []byte(text))
	if err != nil {
		return
	}
	live, err := r.Open(spi.Host{DSN: spi.NewSecret("u:p@tcp(127.0.0.1:1)/app")})
	if err != nil {
		return
	}
	for _, table := range r.Tables() {
		live.Lookup("", table.Logical)
	}
	must.Do(t, live.Close())
}

const mod = "{type: MOD, props: {sharding-count: 2}}"

// rules are rules of n parts.
var rules = []struct {
	name string
	rule func(n int) string
}{
	{"generators", func(n int) string { return tables(n, "t%d: {%k}") + list(n, "keyGenerators", "g%d: {type: UUID}") }},
	{"generators with assigners", func(n int) string {
		return tables(n, "t%d: {%k}") + list(n, "keyGenerators", "g%d: {type: SNOWFLAKE, props: {worker-id-assigner: a%[1]d}}") +
			list(n, "workerIdAssigners", "a%d: {type: FILE, props: {path: /x}}")
	}},
	{"generators with state in their own database", func(n int) string {
		return tables(n, "t%d: {%k}") + list(n, "keyGenerators", "g%d: {type: TICKET}")
	}},
	{"generators without tables", func(n int) string { return tables(1, "t%d: {%k}") + list(n, "keyGenerators", "g%d: {type: UUID}") }},
	{"undefined generators", func(n int) string {
		return tables(1, "t%d: {keyGenerateStrategy: {column: id, keyGeneratorName: none}}") + list(n, "keyGenerators", "g%d: {type: UUID}")
	}},
	{"unknown properties", func(n int) string { return withProps(repeat(n, "p%d: a, ")) }},
	{"ignored properties", func(n int) string { return withProps("<<: [" + repeat(n, "{datacenter-id: 1, p%d: a}, ") + "]") }},
	{"a long list as a property", func(n int) string { return withProps("hosts: [" + repeat(n, "a%d, ") + "]") }},
	{"variables in a property", func(n int) string { return withProps("layout: '" + repeat(n, "${A%d::x}") + "'") }},
	{"tables", func(n int) string { return tables(n, "t%d: {%s}") }},
	{"tables without a key", func(n int) string {
		return tables(n, "t%d: {actualDataNodes: d.t%[1]d}") + "    k: {keyGenerateStrategy: {column: id}}\n"
	}},
	{"tables of 5.5.4", func(n int) string {
		return tables(n, "t%d: {actualDataNodes: d.t%[1]d}") + list(n, "keyGenerateStrategies", "s%d: {logicTable: t%[1]d, keyGenerateColumn: id}")
	}},
	{"sequences", func(n int) string {
		return tables(1, "t%d: {%s}") + list(n, "keyGenerateStrategies", "s%d: {logicTable: t0, keyGenerateColumn: id, keyGenerateType: sequence}")
	}},
	{"data nodes", func(n int) string { return tables(1, "t%d: {actualDataNodes: '"+repeat(n, "ds.t_%d,")+"', %s}") }},
	{"schemas", func(n int) string { return tables(1, "t%d: {actualDataNodes: '"+repeat(n, "ds.s%d.t,")+"', %s}") }},
	{"schemas of tables", func(n int) string { return tables(n, "t%d: {actualDataNodes: ds.s%[1]d.same, %s}") }},
	{"schemas without keys", func(n int) string {
		return tables(n, "t%d: {actualDataNodes: ds.same, keyGenerateStrategy: {none: }}") +
			"    k: {keyGenerateStrategy: {column: id}}\n"
	}},
	{"patterns", func(n int) string { return tables(n, "t%d: {actualDataNodes: 'ds.t%[1]d_${*}', %s}") }},
	{"patterns of one table", func(n int) string {
		return tables(1, "t%d: {actualDataNodes: '"+repeat(n, "ds.t%d_${*},")+"', %s}")
	}},
	{"patterns and tables", func(n int) string {
		return tables(n, "t%d: {actualDataNodes: 'ds.t%[1]d_${*}', %s}") +
			repeat(n, "    u%d: {actualDataNodes: 'ds.u%[1]d_1', keyGenerateStrategy: {column: id}}\n")
	}},
	{"unknown keys", func(n int) string { return tables(n, "t%d: {colour: red, %s}") }},
	{"unknown keys of one table", func(n int) string { return tables(1, "t%d: {"+repeat(n, "colour%d: red, ")+"%s}") }},
	{"unknown root keys", func(n int) string { return tables(1, "t%d: {%s}") + repeat(n, "colour%d: red\n") }},
	{"sharding algorithms", func(n int) string { return algorithms(n, "a", mod) }},
	{"undefined sharding algorithms", func(n int) string { return algorithms(n, "b", mod) }},
	{"odd sharding algorithms", func(n int) string {
		return algorithms(n, "a", "{type: BOUNDARY_RANGE, props: {sharding-ranges: '1,x'}}")
	}},
	{"wrong sharding algorithms", func(n int) string {
		return algorithms(n, "a", "{type: INLINE, props: {algorithm-expression: 't_${u % }'}}")
	}},
	{"unknown properties of an algorithm", func(n int) string {
		return tables(1, "t%d: {%s}") + "  shardingAlgorithms: {a: {type: MOD, props: {" + repeat(n, "p%d: 1, ") + "}}}\n"
	}},
	{"sharding columns", func(n int) string {
		return tables(1, "t%d: {actualDataNodes: 'ds.t_${0..1}', tableStrategy: {complex: {shardingColumns: '"+repeat(n, "u%d,")+
			"', javaType: '"+repeat(n-1, "Long,")+"Long', shardingAlgorithmName: a}}, %s}")
	}},
	{"broadcast tables", func(n int) string { return tables(1, "t%d: {%s}") + "  broadcastTables: [" + repeat(n, "b%d,") + "]\n" }},
	{"auto tables", func(n int) string {
		return tables(1, "t%d: {%s}") + list(n, "autoTables", "a%d: {actualDataSources: ds, shardingStrategy: {standard: {shardingColumn: u, shardingAlgorithmName: m}}, "+
			"keyGenerateStrategy: {column: id}}") + "  shardingAlgorithms: {m: " + mod + "}\n"
	}},
	{"auto tables without algorithm", func(n int) string {
		return tables(1, "t%d: {%s}") + list(n, "autoTables", "a%d: {actualDataSources: ds, keyGenerateStrategy: {column: id}}")
	}},
	{"shard bits", func(n int) string {
		return tables(n, "t%d: {%k}") + list(n, "keyGenerators", "g%d: {type: SNOWFLAKE, props: {gene-column: u%[1]d, gene-bits: 2}}")
	}},
	{"merges", func(n int) string { return tables(n, "t%d: {<<: {actualDataNodes: d.t%[1]d}, %s}") }},
	{"documents", func(n int) string { return tables(1, "t%d: {%s}") + strings.Repeat("---\nprops: {a: b}\n", n) }},
	{"rules", func(n int) string {
		return "rules:\n" + repeat(n, "- !SHARDING {tables: {t%d: {keyGenerateStrategy: {column: id}}}}\n")
	}},
	{"wrong anchors", func(n int) string { return "a: " + strings.Repeat("*b ", n) }},
	{"syntax", func(n int) string { return "rules:\n" + strings.Repeat("- {a: ds_${0..1}\n", n) }},
}

// tables returns the beginning of a rule with n tables. In a table, %d is its number, %s stands for
// a strategy, and %k for one with the generator of the same number.
func tables(n int, table string) string {
	table = strings.NewReplacer("%s", "keyGenerateStrategy: {column: id}",
		"%k", "keyGenerateStrategy: {column: id, keyGeneratorName: g%[1]d}").Replace(table)
	return "rules:\n- !SHARDING\n" + list(n, "tables", table)
}

// algorithms returns a rule with n tables and as many algorithms a0, a1, …. The tables use those
// whose names begin with used.
func algorithms(n int, used, algorithm string) string {
	return tables(n, "t%d: {actualDataNodes: 'ds.t%[1]d_${0..1}', "+
		"tableStrategy: {standard: {shardingColumn: u, shardingAlgorithmName: "+used+"%[1]d}}, %s}") +
		list(n, "shardingAlgorithms", "a%d: "+algorithm)
}

// withProps returns a rule whose generator has these properties.
func withProps(props string) string {
	return tables(1, "t%d: {%k}") + "  keyGenerators: {g0: {type: SNOWFLAKE, props: {" + props + "}}}\n"
}

// list returns a map of n entries under a key.
func list(n int, key, entry string) string { return "  " + key + ":\n" + repeat(n, "    "+entry+"\n") }

// repeat returns n copies of a text, each with its number.
func repeat(n int, text string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.TrimSuffix(fmt.Sprintf(text, i), fmt.Sprintf("%%!(EXTRA int=%d)", i)))
	}
	return b.String()
}
