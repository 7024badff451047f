package rule_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/cases"
	"github.com/shardkey/shardkey/internal/test/must"
	testrouter "github.com/shardkey/shardkey/internal/test/router"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// geneTable returns a rule with one table whose keys carry the shard of user_id.
func geneTable(settings, algorithms, props string) string {
	return strings.Replace(tableRule(settings, algorithms), "{u: {type: UUID}}", "{u: {type: UNSEEN, props: {"+props+"}}}", 1)
}

const fourBits = "gene-column: user_id, gene-bits: 4"

func TestGene_agreesWithTheStrategies(t *testing.T) {
	const byKey, byUser = `actualDataNodes: ds.t_order_${0..15}
tableStrategy: {standard: {shardingColumn: order_id, shardingAlgorithmName: a}}`, `actualDataNodes: ds.t_order_${0..15}
tableStrategy: {standard: {shardingColumn: USER_ID, shardingAlgorithmName: a}}`
	const both = `actualDataNodes: ds_${0..1}.t_order_${0..15}
databaseStrategy: {standard: {shardingColumn: user_id, shardingAlgorithmName: d}}
tableStrategy: {standard: {shardingColumn: order_id, shardingAlgorithmName: a}}`
	twice := strings.Replace(both, "shardingColumn: order_id", "shardingColumn: user_id", 1)
	settings := map[string]string{"byKey": byKey, "byUser": byUser, "both": both, "twice": twice, "javaType": strings.Replace(twice, "_id,", "_id, javaType: Integer,", 1),
		"made": strings.Replace(byUser, "USER_ID", "made", 1), "none": "actualDataNodes: ds.t_order"}
	for _, c := range cases.Read(t, "testdata/shardbits.txt", 3) {
		settings, algorithms, want := settings[c[0]], c[1], c[2]
		must.Equal(t, settings != "", true, c[0], "is known:")
		r, err := rule.Parse("rule.yaml", []byte(geneTable(settings, algorithms, fourBits)))
		var e *rule.Error
		have := ""
		switch {
		case err == nil:
			gene := r.Tables()[0].ShardBits
			warnings := slices.DeleteFunc(r.Warnings(), func(w *rule.Error) bool { return strings.Contains(w.Error(), "get no rows") })
			if have = gene.String(); have != want || gene.Column != "user_id" || gene.Bits != 4 || len(warnings) > 0 {
				t.Errorf("%s\n%s\nhave: %s, %v\nwant: %s", settings, algorithms, have, r.Warnings(), want)
			}
			must.Contain(t, r.Tables()[0].String(), "shard bits: lowest 4, "+want)
		case !errors.As(err, &e) || !strings.Contains(err.Error(), want) || e.Line < 10:
			t.Errorf("%s\n%s\nhave: %v\nwant: %s", settings, algorithms, err, want)
		}
	}
}

// If the table isn't sharded by the column, its keys use the algorithm of the rule's other tables,
// whether or not these have a key.
func TestGene_asOtherTables(t *testing.T) {
	for _, tt := range []struct{ users, want, warning string }{
		{"HASH_MOD, props: {sharding-count: 4}", "the hash of user_id modulo 16", ""},
		{"HASH_MOD, props: {sharding-count: 5}", "the hash of user_id modulo 16", ""},
		{"MOD, props: {sharding-count: 4}", "user_id modulo 16", ""},
		{"BOUNDARY_RANGE, props: {sharding-ranges: 5}", "user_id, or the hash of a string, modulo 16", ""},
		{"HASH_MOD, props: {sharding-count: 4}}\nv: {type: MOD, props: {sharding-count: 4}", "the hash of user_id modulo 16", `table "t_user" is sharded by the hash of user_id, and table "t_visit" by its number`},
	} {
		text := geneTable(`actualDataNodes: ds.t_order_${0..15}
tableStrategy: {standard: {shardingColumn: order_id, shardingAlgorithmName: a}}`, "a: {type: MOD, props: {sharding-count: 16}}\nu: {type: "+tt.users+"}", fourBits)
		more := `    t_user:
      actualDataNodes: ds.t_user_${0..3}
      tableStrategy: {standard: {shardingColumn: USER_ID, shardingAlgorithmName: u}}
`
		if tt.warning != "" {
			more += strings.NewReplacer("t_user", "t_visit", "Name: u", "Name: v").Replace(more)
		}
		r, err := rule.Parse("rule.yaml", []byte(strings.Replace(text, "  keyGenerators:", more+"  keyGenerators:", 1)))
		must.Do(t, err)
		if r.Tables()[0].ShardBits.String() != tt.want || (len(r.Warnings()) > 0) != (tt.warning != "") || tt.warning != "" && !strings.Contains(r.Warnings()[0].Error(), tt.warning) {
			t.Errorf("%s\nhave: %v, %v, %v\nwant: %s", tt.users, r, err, r.Warnings(), tt.want)
		}
	}
}

func TestGene_of(t *testing.T) {
	r := must.Get(rule.Parse("rule.yaml", []byte(geneTable("actualDataNodes: ds.t_order", "a: {type: MOD}", fourBits))))(t)
	gene := r.Tables()[0].ShardBits
	type name string
	for _, tt := range []struct {
		value any
		want  int64 // −1 means an error
	}{{7, 7}, {int8(-1), 15}, {uint64(1<<64 - 1), 15}, {true, 1}, {false, 0}, {"abc", 2}, {name("abc"), 2}, {"7", 7}, {"71", 10}, {nil, -1}, {7.0, -1}, {[]byte("abc"), -1}, {struct{}{}, -1}} {
		have, err := gene.Of(tt.value)
		if place, ok := errors.AsType[*rule.PlaceError](err); tt.want < 0 && (!ok || place.Column != "user_id" || place.Table != "t_order") || tt.want >= 0 && (have != tt.want || err != nil) {
			t.Errorf("%T %v\nhave: %d, %v\nwant: %d", tt.value, tt.value, have, err, tt.want)
		}
	}
}

// TestGene_properties sets gene-column and gene-bits on every kind of generator. They aren't passed
// to its factory.
func TestGene_properties(t *testing.T) {
	for _, c := range cases.Read(t, "testdata/generators.txt", 2) {
		want, generator := c[0], c[1]
		r, err := rule.Parse("rule.yaml", []byte(`rules:
- !SHARDING
  tables:
    t_order: {keyGenerateStrategy: {column: order_id, keyGeneratorName: g}}
  keyGenerators:
    g: {type: `+generator+`}
`))
		if want == "" {
			if err != nil || r.Tables()[0].ShardBits == nil || r.Tables()[0].ShardBits.Column != "user_id" || r.Tables()[0].ShardBits.Bits%8 != 4 {
				t.Errorf("%s\nhave: %v\nwant: the bits of user_id", generator, err)
			}
			continue
		}
		if e, ok := errors.AsType[*rule.Error](err); !ok || e.Line != 6 || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nhave: %v\nwant: %s, on line 6", generator, err, want)
		}
	}
}

// unseen is a generator whose factory refuses all properties.
type unseen struct{ spi.Int64KeyGenerator }

func init() {
	spi.RegisterKeyGenerator("UNSEEN", func(spi.Props) (spi.KeyGenerator, error) { return unseen{}, nil })
}

// A generator built in Go can have gene-column and gene-bits next to it, and no other properties.
func TestGene_ofAGeneratorBuiltInGo(t *testing.T) {
	for _, tt := range []struct {
		props map[string]any
		want  string
	}{
		{map[string]any{"gene-column": "user_id", "gene-bits": 4}, ""},
		{map[string]any{"gene-column": "user_id", "worker-id": 4}, "gene-bits"},
	} {
		r, err := rule.New(rule.Config{
			Tables:     []rule.TableConfig{{Name: "t_order", KeyConfig: rule.KeyConfig{Column: "id", Generator: "g"}}},
			Generators: map[string]rule.GeneratorConfig{"g": {Generator: unseen{}, Props: tt.props}},
		})
		if tt.want == "" && (err != nil || r.Tables()[0].ShardBits == nil) || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%v\nhave: %v\nwant: %s", tt.props, err, tt.want)
		}
	}
}

// bitsRule is a random rule whose keys have shard bits.
type bitsRule struct {
	testrouter.Rule
	text string
}

// newGeneRule returns a random rule. Its databases are sharded by the user, and its tables by the
// key or by the user. The keys carry the user's shard in their lowest bits.
func newGeneRule(r *rand.Rand) (rr *bitsRule, user string, bits int) {
	rr = &bitsRule{Rule: testrouter.Rule{Rand: r, Router: testrouter.Table{Logic: "t_order"}}}
	user = []string{"user_id", "user_id", "name"}[rr.IntN(3)]
	bits = 1 + rr.IntN(10)
	of := func(prefix, column string, n int, hash bool) *testrouter.Strategy {
		s := &testrouter.Strategy{Columns: []string{column}, Integer: map[string]bool{"user_id": rr.IntN(4) == 0 && column == "user_id"}, Props: map[string]string{"sharding-count": fmt.Sprint(n)}, Type: "MOD", Prefix: prefix}
		is := testrouter.Column(column)
		switch inline := rr.IntN(2) == 0; {
		case hash && inline:
			is = testrouter.AbsHash(column)
			s.Type = "INLINE"
		case hash:
			s.Type = "HASH_MOD"
		case inline:
			s.Type = "INLINE"
		}
		if s.Type == "INLINE" {
			s.Expression = is.Modulo(int64(n), 1)
			s.Props = map[string]string{"algorithm-expression": prefix + "${" + s.Expression.Groovy + "}"}
		}
		return s
	}
	power := func() int { return 1 << rr.IntN(min(bits, 6)+1) }
	hash := user == "name" || rr.IntN(2) == 0
	sources, tables := power(), power()
	rr.Router.Database = of("ds_", user, sources, hash)
	rr.Router.Table = of("t_order_", "order_id", tables, false)
	if rr.IntN(3) == 0 {
		rr.Router.Table = of("t_order_", user, tables, hash)
		rr.Router.Table.Integer = rr.Router.Database.Integer
	}
	strategies := "databaseStrategy: " + rr.Written(rr.Router.Database) + "\ntableStrategy: " + rr.Written(rr.Router.Table)
	for s := range sources {
		for i := range tables {
			rr.Router.Nodes = append(rr.Router.Nodes, testrouter.Node{DataSource: fmt.Sprintf("ds_%d", s), Table: fmt.Sprintf("t_order_%d", i)})
		}
	}
	strategies = strings.ReplaceAll(strategies, ", javaType: 'String'", "") // the shard bits of a string are a number
	rr.text = geneTable(fmt.Sprintf("actualDataNodes: ds_${0..%d}.t_order_${0..%d}\n%s", sources-1, tables-1, strategies),
		strings.Join(rr.Algorithms, "\n"), fmt.Sprintf("gene-column: %s, gene-bits: %d", user, bits))
	return rr, user, bits
}

// TestGene_foundByEither places random rows with the router. It then finds each row by its key
// alone, and by its user alone.
func TestGene_foundByEither(t *testing.T) {
	const rules, rows = 100, 200
	r := rand.New(rand.NewPCG(13, 4))
	found, none := 0, 0
	for range rules {
		rr, user, bits := newGeneRule(r)
		parsed := must.Get(rule.Parse("rule.yaml", []byte(rr.text)))(t, rr.text, "have")
		table := parsed.Tables()[0]
		for range rows {
			row := rr.Row()
			gene, err := table.ShardBits.Of(row[user])
			if err != nil {
				if n, isNumber := row[user].(int64); !isNumber || n >= 0 && n < 1<<31 {
					t.Fatalf("%s\n%v\nhave: %v", rr.text, row[user], err)
				}
				none++
				continue
			}
			key := rr.Int64()&^(1<<bits-1) | gene
			row["order_id"] = key
			want := must.Get(rr.Router.Route(row))(t, rr.text, row, "have")
			for _, alone := range []map[string]any{{"order_id": key, user: key & (1<<bits - 1)}, {"order_id": gene, user: row[user]}} {
				var values []any
				for _, c := range table.Sharding.Columns {
					values = append(values, alone[c])
				}
				have, err := table.Sharding.Place(values)
				node, routeErr := rr.Router.Route(alone)
				if err != nil || routeErr != nil || have.DataSource != want.DataSource || have.Table != want.Table || node != want {
					t.Fatalf("%s\n%v by %v\nhave: %v, %v; the router %v, %v\nwant: %v", rr.text, row, alone, have, err, node, routeErr, want)
				}
			}
			found++
		}
	}
	if found < rules*rows*2/3 || none == 0 {
		t.Errorf("have: %d of %d rows found, %d without a gene", found, rules*rows, none)
	}
	t.Logf("%d of %d rows found, %d without a gene", found, rules*rows, none)
}
