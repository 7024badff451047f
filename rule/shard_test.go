package rule_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	testrouter "github.com/shardkey/shardkey/internal/test/router"
	"github.com/shardkey/shardkey/rule"
)

// TestShard_asTheRouter checks random rows of random rules against a random actual table.
// Shard.Place reports that a row belongs to the table exactly if the router does. The keys that
// Shard.Keys accepts for a row belong to the table.
func TestShard_asTheRouter(t *testing.T) {
	const rules, rows = 50, 40
	r := rand.New(rand.NewPCG(13, 2))
	here, fitted := 0, 0
	for range rules {
		rr := testrouter.RandomRule(r)
		text := rr.Text("order_id", "{type: UUID}", "")
		parsed, err := rule.Parse("rule.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		s := parsed.Tables()[0].Sharding
		for range rows {
			node := rr.Router.Nodes[rr.IntN(len(rr.Router.Nodes))]
			row := rr.Row()
			want, wantErr := rr.Router.Route(row)
			if wantErr == nil && rr.IntN(2) == 0 {
				node.Table = want.Table
			}
			schema := ""
			if rr.IntN(2) == 0 {
				schema = node.DataSource
			}
			x := s.Shard(schema, node.Table)
			if x == nil {
				continue
			}
			var values []any
			for _, c := range x.Columns {
				values = append(values, row[c])
			}
			place, is, err := x.Place(values)
			if wantErr != nil && err == nil && schema == "" {
				continue // the data source is wrong, and the table's name doesn't depend on it
			}
			wantHere := wantErr == nil && want.Table == node.Table && (schema == "" || want.DataSource == schema)
			if is != wantHere || (err == nil) != (wantErr == nil) || is && !strings.EqualFold(place.Table, node.Table) || err == nil && place.Table != want.Table {
				t.Fatalf("%s\n%v in %s.%s\nhave: %v, %v, %v\nwant: %v, %v", text, row, schema, node.Table, is, place, err, wantHere, want)
			}
			if is {
				here++
			}
			if rr.IntN(4) > 0 {
				continue
			}
			belongs, n, err := x.Keys("order_id", values)
			if err != nil {
				t.Fatalf("%s\n%v: %v", text, values, err)
			}
			if belongs != nil {
				key := rr.Int64N(math.MaxInt64 / 2)
				for range 16 * n {
					if key++; belongs(key) {
						break
					}
				}
				if !belongs(key) {
					continue
				}
				row["order_id"] = key
				found, err := rr.Router.Route(row)
				if err != nil && schema == "" {
					continue
				}
				if err != nil || found.Table != node.Table || schema != "" && found.DataSource != schema {
					t.Fatalf("%s\nkey %d for %s.%s\nhave: %v, %v", text, key, schema, node.Table, found, err)
				}
				fitted++
			}
		}
	}
	if here < rules*rows/8 || fitted < rules*rows/64 {
		t.Errorf("have: %d rows in their table, %d keys that fit, of %d", here, fitted, rules*rows)
	}
}

func TestShard_none(t *testing.T) {
	s := shardingOf(t, tableRule(`actualDataNodes: ds_${0..1}.t_order
databaseStrategy: {standard: {shardingColumn: user_id, shardingAlgorithmName: d}}`, `d: {type: MOD, props: {sharding-count: 2}}`))
	for _, name := range [][2]string{{"", "t_order"}, {"app", "t_order"}, {"", "t_other"}} {
		if x := s.Shard(name[0], name[1]); x != nil {
			t.Errorf("%v\nhave: %v\nwant: nil", name, x)
		}
	}
	if x := s.Shard("DS_1", "T_ORDER"); x == nil || len(x.Columns) != 1 {
		t.Errorf("have: %v\nwant: the table of ds_1", x)
	}
	if x := (*rule.Sharding)(nil).Shard("", "t"); x != nil {
		t.Errorf("have: %v\nwant: nil", x)
	}
}

func TestSettings_shards(t *testing.T) {
	text := tableRule(`actualDataNodes: ds.t_order_${0..1}`, `d: {type: MOD, props: {sharding-count: 2}}`)
	with := func(words string) string {
		return strings.Replace(text, "keyGeneratorName: u", "keyGeneratorName: u"+words, 1)
	}
	r, err := rule.Parse("rule.yaml", []byte(with(", shardGuard: warn")))
	if err != nil || r.Tables()[0].ShardGuard != "warn" || !strings.Contains(r.String(), "shardGuard: warn") {
		t.Errorf("have: %v, %v", r, err)
	}
	for words, want := range map[string]string{
		", shardGuard: maybe": `shardGuard: expected refuse, warn or off, found "maybe"`,
		", shardguard: off":   `did you mean "shardGuard"`,
	} {
		if _, err := rule.Parse("rule.yaml", []byte(with(words))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\nhave: %v\nwant: %s", words, err, want)
		}
	}
	config := rule.Config{Tables: []rule.TableConfig{{Name: "t", KeyConfig: rule.KeyConfig{Column: "id", ShardGuard: "on"}}}}
	if _, err := rule.New(config); err == nil || !strings.Contains(err.Error(), `shardGuard: expected refuse, warn or off, found "on"`) {
		t.Errorf("have: %v", err)
	}
	config.Tables[0].ShardGuard = "off"
	if r, err := rule.New(config); err != nil || r.Tables()[0].ShardGuard != "off" {
		t.Errorf("have: %v, %v", r, err)
	}
}
