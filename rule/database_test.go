package rule_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

const (
	own       = "{type: OWN}"
	ownDSN    = "{type: OWN, props: {dsn: u@tcp(one)/ids}}"
	ownMeant  = "{type: OWN, props: {own-database: yes}}"
	twoShards = "ds_${0..1}.t_${0..3}"
)

// withAssigner returns a rule with a generator that uses an assigner, and an unused generator that
// uses another one.
func withAssigner(nodes, assigner string) string {
	return oneTable(nodes, "{type: SNOWFLAKE, props: {worker-id-assigner: cluster}}\n    unused: {type: UUID, props: {worker-id-assigner: idle}}") +
		"  workerIdAssigners:\n    cluster: " + assigner + "\n    idle: {type: OWN}\n"
}

// spreadTable returns a rule with a databaseStrategy, either the table's own or the default one,
// and without data nodes.
func spreadTable(where, generator string) string {
	strategy := "{standard: {shardingColumn: u, shardingAlgorithmName: two}}"
	if where == "" {
		return strings.Replace(oneTable("t", generator), "actualDataNodes: t", "databaseStrategy: "+strategy, 1) + twoAlgorithm
	}
	return strings.Replace(oneTable("t", generator), "      actualDataNodes: t\n", "", 1) + "  defaultDatabaseStrategy: " + strategy + "\n" + twoAlgorithm
}

const twoAlgorithm = "  shardingAlgorithms: {two: {type: MOD, props: {sharding-count: 2}}}\n"

func TestParse_stateInEachDatabase(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
	}{
		{"a generator", oneTable(twoShards, own), `rule.yaml:8:5: key generator "g" keeps its state in the connector's own database, but the tables are in several data sources (ds_0, ds_1), and each would generate the same keys; add the property dsn with one database for all of them; own-database: yes permits it where rows never move between the databases`},
		{"an assigner", withAssigner(twoShards, own), `rule.yaml:11:5: worker-ID assigner "cluster" keeps its state`},
		{"any number of data sources", oneTable("ds_${*}.t_${0..3}", own), "(ds_${*})"},
		{"schemas of two data sources", oneTable("a.s.t,b.s.t", own), "(a, b)"},
		{"a databaseStrategy without data nodes", spreadTable("", own), `a databaseStrategy distributes table "t" over several data sources`},
		{"the rule's default", spreadTable("default", own), `a databaseStrategy distributes table "t"`},
		{"one data source", oneTable("ds_0.t_${0..15}", own), ""},
		{"two schemas of one", oneTable("ds.a.t,ds.b.t", own), ""},
		{"a dsn", oneTable(twoShards, ownDSN), ""},
		{"an assigner's dsn", withAssigner(twoShards, ownDSN), ""},
		{"meant so", oneTable(twoShards, ownMeant), ""},
		{"an assigner meant so", withAssigner(twoShards, ownMeant), ""},
		{"said twice", oneTable(twoShards, "{type: OWN, props: {dsn: u@tcp(one)/ids, own-database: yes}}"), `property "own-database": expected no value, found "yes"`},
		{"of a type without", oneTable(twoShards, "{type: UUID, props: {own-database: yes}}"), `property "own-database": expected no value, found "yes"`},
		{"neither yes nor no", oneTable("t", "{type: OWN, props: {own-database: maybe}}"), `property "own-database": expected true or false, found "maybe"`},
		{"no", oneTable(twoShards, "{type: OWN, props: {own-database: no}}"), "keeps its state"},
	} {
		_, err := rule.Parse("rule.yaml", []byte(c.text))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\nhave: %v\nwant: %s", c.name, err, c.want)
		}
		inner := (*rule.Error)(nil)
		if strings.Contains(c.want, "keeps its state") && (!errors.Is(err, rule.ErrOwnDatabase) || !errors.As(err, &inner) || inner.Line == 0) {
			t.Errorf("%s\nhave: %#v\nwant: a rule.Error with a place that is ErrOwnDatabase", c.name, err)
		}
	}
}

func TestOpen_oneRuleForTwoDatabases(t *testing.T) {
	for _, text := range []string{oneTable("t_${0..3}", own), withAssigner("t_${0..3}", own)} {
		r := mustParse(t, text)
		first := opened(t, r, spi.Host{DSN: spi.NewSecret("u:geheim@tcp(Shard0)/shop?timeout=1s")})
		for _, same := range []string{
			"u:geheim@tcp(shard0)/shop",
			"other:pw@tcp(shard0:3306)/shop?parseTime=true&loc=UTC",
			"", // the rule doesn't show whether there are several databases
		} {
			l, err := r.Open(spi.Host{DSN: spi.NewSecret(same)})
			if err != nil {
				t.Errorf("%s\nhave: %v\nwant: the same database", same, err)
				continue
			}
			if shared := l.Generator("g") == first.Generator("g"); shared != (same != "") && text == oneTable("t_${0..3}", own) {
				t.Errorf("%s\nhave: shared %v", same, shared)
			}
			mustClose(t, l)
		}
		for _, other := range []string{"u:geheim@tcp(shard1)/shop", "u:geheim@tcp(shard0:3307)/shop", "u:geheim@tcp(shard0)/shop2", "u:geheim@unix(/shard0)/shop"} {
			l, err := r.Open(spi.Host{DSN: spi.NewSecret(other)})
			inner := (*rule.Error)(nil)
			if l != nil || !errors.Is(err, rule.ErrOwnDatabase) || !errors.As(err, &inner) || inner.Line == 0 {
				t.Errorf("%s\nhave: %v\nwant: ErrOwnDatabase", other, err)
				continue
			}
			if strings.Contains(err.Error(), "geheim") || !strings.Contains(err.Error(), "tcp(shard0:3306)/shop") {
				t.Errorf("%s\nhave: %v\nwant: both databases, and no password", other, err)
			}
		}
		mustClose(t, first)
		// Opening the rule for another database after closing the first one is allowed.
		mustClose(t, opened(t, r, spi.Host{DSN: spi.NewSecret("u@tcp(shard1)/shop")}))
	}
}

// The file changes between two opens, and the generator with the state has another name.
func TestOpen_oneRuleForTwoDatabasesRenamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rule.yaml")
	load := func(text string) *rule.Rule {
		must.Do(t, os.WriteFile(file, []byte(text), 0o600))
		r := must.Get(rule.Load(file))(t)
		return r
	}
	text := withAssigner("t_${0..3}", own)
	first := opened(t, load(text), spi.Host{DSN: spi.NewSecret("u@tcp(a)/d")})
	defer mustClose(t, first)
	renamed := load(strings.ReplaceAll(text, "cluster", "all"))
	if _, err := renamed.Open(spi.Host{DSN: spi.NewSecret("u@tcp(b)/d")}); !errors.Is(err, rule.ErrOwnDatabase) {
		t.Errorf("have: %v\nwant: ErrOwnDatabase", err)
	}
	mustClose(t, opened(t, renamed, spi.Host{DSN: spi.NewSecret("u@tcp(a)/d")}))
}

func TestOpen_ownDatabaseMeant(t *testing.T) {
	r := mustParse(t, oneTable(twoShards, ownMeant))
	a, b := opened(t, r, spi.Host{DSN: spi.NewSecret("u@tcp(a)/d")}), opened(t, r, spi.Host{DSN: spi.NewSecret("u@tcp(b)/d")})
	if a.Generator("g") == b.Generator("g") {
		t.Error("have: one generator for two databases\nwant: one for each")
	}
	again := opened(t, r, spi.Host{DSN: spi.NewSecret("v@tcp(b)/d")})
	if again.Generator("g") != b.Generator("g") {
		t.Error("have: two generators in one database\nwant: one")
	}
	mustClose(t, a, b, again)
}

// A generator that no table uses generates no duplicate keys.
func TestOpen_unusedStore(t *testing.T) {
	r := mustParse(t, oneTable(twoShards, "{type: UUID}\n    unused: {type: OWN}"))
	mustClose(t, opened(t, r, spi.Host{DSN: spi.NewSecret("u@tcp(a)/d")}), opened(t, r, spi.Host{DSN: spi.NewSecret("u@tcp(b)/d")}))
}
