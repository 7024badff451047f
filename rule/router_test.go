package rule_test

import (
	"math/rand/v2"
	"testing"

	"github.com/shardkey/shardkey/internal/testrouter"
	"github.com/shardkey/shardkey/rule"
)

// TestSharding_asTheRouter compares where random rows of random rules belong with
// what a router says that is written from ShardingSphere's documentation.
func TestSharding_asTheRouter(t *testing.T) {
	const rules, rows = 120, 300
	r := rand.New(rand.NewPCG(13, 1))
	placed, types := 0, map[string]int{}
	for range rules {
		rr := testrouter.RandomRule(r)
		text := rr.Text("order_id", "{type: UUID}", "")
		parsed, err := rule.Parse("rule.yaml", []byte(text))
		if err != nil {
			t.Fatalf("%s\nhave: %v", text, err)
		}
		s := parsed.Tables()[0].Sharding
		if s.Err != nil {
			t.Fatalf("%s\nhave: %v", text, s.Err)
		}
		for range rows {
			row := rr.Row()
			var values []any
			for _, c := range s.Columns {
				values = append(values, row[c])
			}
			have, err := s.Place(values)
			want, wantErr := rr.Router.Route(row)
			if (err == nil) != (wantErr == nil) || err == nil && (have.DataSource != want.DataSource || have.Table != want.Table) {
				t.Fatalf("%s\n%v\nhave: %v, %v\nwant: %v, %v", text, row, have, err, want, wantErr)
			}
			if err == nil {
				placed++
				if rr.Router.Table != nil {
					types[rr.Router.Table.Type]++
				}
			}
		}
	}
	if placed < rules*rows/2 || len(types) < 6 {
		t.Errorf("have: %d of %d rows placed, %v\nwant: half of them, by every algorithm", placed, rules*rows, types)
	}
	t.Logf("%d of %d rows placed: %v", placed, rules*rows, types)
}
