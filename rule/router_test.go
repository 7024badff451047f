package rule_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/testrouter"
	"github.com/shardkey/shardkey/rule"
)

// randomRule is a rule of one table, for the rule's reader and for the router.
type randomRule struct {
	*rand.Rand
	router     testrouter.Table
	text       string
	algorithms []string
}

// newRandomRule makes a rule with one strategy or two.
func newRandomRule(r *rand.Rand) *randomRule {
	rr := &randomRule{Rand: r, router: testrouter.Table{Logic: "t_order"}}
	digits := 1 + rr.IntN(3)
	tables := []int{1, 2, 3, 4, 7, 10, 12, 16, 64}[rr.IntN(9)]
	sources := []int{1, 1, 2, 3, 4}[rr.IntN(5)]
	var strategies []string
	if sources > 1 {
		rr.router.Database = rr.strategy("ds_", sources, 1)
		strategies = append(strategies, "databaseStrategy: "+rr.written(rr.router.Database))
	}
	var nodes []string
	isMonth := rr.IntN(10) == 0
	switch {
	case isMonth:
		rr.router.Table = rr.monthly()
		tables = 24
	case tables > 1 || sources == 1:
		rr.router.Table = rr.strategy("t_order_", tables, digits)
	}
	for s := range sources {
		for i := range tables {
			name := fmt.Sprintf("t_order_%0*d", digits, i)
			if isMonth {
				name = fmt.Sprintf("t_order_%04d%02d", 2025+i/12, i%12+1)
			}
			if rr.IntN(200) == 0 && len(nodes) > 0 {
				continue // one that is missing
			}
			nodes = append(nodes, fmt.Sprintf("ds_%d.%s", s, name))
			rr.router.Nodes = append(rr.router.Nodes, testrouter.Node{DataSource: fmt.Sprintf("ds_%d", s), Table: name})
		}
	}
	if rr.router.Table != nil {
		strategies = append(strategies, "tableStrategy: "+rr.written(rr.router.Table))
	}
	rr.text = tableRule("actualDataNodes: "+strings.Join(nodes, ",")+"\n"+strings.Join(strategies, "\n"), strings.Join(rr.algorithms, "\n"))
	return rr
}

// strategy makes a strategy over names with a prefix, numbered from 0 on.
func (rr *randomRule) strategy(prefix string, count, digits int) *testrouter.Strategy {
	s := &testrouter.Strategy{Columns: []string{[]string{"user_id", "order_id", "name"}[rr.IntN(3)]}, Integer: map[string]bool{}, Props: map[string]string{}}
	s.Integer["user_id"] = rr.IntN(2) == 0
	s.Type = []string{"MOD", "HASH_MOD", "HASH_MOD", "VOLUME_RANGE", "BOUNDARY_RANGE", "AUTO_INTERVAL", "COSID_MOD", "INLINE", "INLINE", "INLINE", "COMPLEX_INLINE"}[rr.IntN(11)]
	n := fmt.Sprint(count)
	switch s.Type {
	case "MOD":
		s.Props["sharding-count"] = n
		if s.Columns[0] == "name" {
			s.Props["start-offset"], s.Props["stop-offset"] = "2", fmt.Sprint(rr.IntN(2))
		}
		if rr.IntN(4) == 0 {
			s.Props["zero-padding"] = "true"
		}
	case "HASH_MOD":
		s.Props["sharding-count"] = n
	case "VOLUME_RANGE":
		s.Props["range-lower"], s.Props["sharding-volume"] = fmt.Sprint(rr.IntN(1000)-500), fmt.Sprint(1+rr.IntN(40))
		s.Props["range-upper"] = fmt.Sprint(1000 + rr.IntN(1000))
	case "BOUNDARY_RANGE":
		s.Props["sharding-ranges"] = fmt.Sprint(rr.IntN(1000))
		for range count - 2 {
			s.Props["sharding-ranges"] += fmt.Sprint(", ", rr.IntN(4000)-2000)
		}
	case "AUTO_INTERVAL":
		s.Columns = []string{"created"}
		s.Props["datetime-lower"], s.Props["datetime-upper"] = "2025-01-01 00:00:00", "2026-06-01 12:30:00"
		s.Props["sharding-seconds"] = fmt.Sprint(1000 + rr.IntN(10_000_000))
	case "COSID_MOD":
		s.Props["mod"], s.Props["logic-name-prefix"] = n, prefix
	default:
		rr.inline(s, prefix, count, digits)
	}
	return s
}

func (rr *randomRule) inline(s *testrouter.Strategy, prefix string, count, digits int) {
	if s.Type == "COMPLEX_INLINE" {
		s.Columns = []string{"user_id", "order_id"}
	}
	s.Prefix = prefix
	for {
		s.Expression = testrouter.Random(rr.Rand, s.Columns, 1+rr.IntN(3))
		if s.Columns[0] == "name" {
			s.Expression = &testrouter.Expression{Op: "Math.abs", Args: []*testrouter.Expression{{Op: "hashCode", Args: []*testrouter.Expression{{Op: "column", Column: "name"}}}}}
		}
		if rr.IntN(2) == 0 {
			s.Expression = &testrouter.Expression{Op: "Math.abs", Args: []*testrouter.Expression{s.Expression}}
		}
		s.Expression = s.Expression.Modulo(int64(count), int64(digits))
		used := true
		for _, column := range s.Columns {
			used = used && s.Expression.Uses(column)
		}
		if used {
			break
		}
	}
	s.Props["algorithm-expression"] = prefix + []string{"${", "$->{ "}[rr.IntN(2)] + s.Expression.Groovy() + "}"
}

func (rr *randomRule) monthly() *testrouter.Strategy {
	return &testrouter.Strategy{Columns: []string{"created"}, Type: "INTERVAL", Props: map[string]string{
		"datetime-pattern": "yyyy-MM-dd HH:mm:ss", "datetime-lower": fmt.Sprintf("2025-0%d-01 00:00:00", 1+rr.IntN(3)), "datetime-upper": "2026-11-30 00:00:00",
		"sharding-suffix-pattern": "yyyyMM", "datetime-interval-amount": fmt.Sprint(1 + rr.IntN(3)), "datetime-interval-unit": "MONTHS",
	}}
}

// written writes the strategy into the rule.
func (rr *randomRule) written(s *testrouter.Strategy) string {
	name := fmt.Sprintf("a%d", len(rr.algorithms))
	var props []string
	for prop, value := range s.Props {
		props = append(props, fmt.Sprintf("%s: '%s'", prop, strings.ReplaceAll(value, "'", "''")))
	}
	rr.algorithms = append(rr.algorithms, fmt.Sprintf("%s: {type: %s, props: {%s}}", name, s.Type, strings.Join(props, ", ")))
	kind, column := "standard", "shardingColumn"
	var classes []string
	for _, c := range s.Columns {
		class := map[bool]string{true: "Integer", false: "Long"}[s.Integer[c]]
		if c == "name" || c == "created" {
			class = "String"
		}
		classes = append(classes, class)
	}
	if s.Type == "COMPLEX_INLINE" {
		kind, column = "complex", "shardingColumns"
	}
	return fmt.Sprintf("{%s: {%s: '%s', shardingAlgorithmName: %s, javaType: '%s'}}", kind, column, strings.Join(s.Columns, ","), name, strings.Join(classes, ","))
}

// row returns a random row.
func (rr *randomRule) row() map[string]any {
	order := []int64{rr.Int64(), -rr.Int64(), rr.Int64N(2000), -rr.Int64N(2000), rr.Int64N(1 << 33)}[rr.IntN(5)]
	user := []int64{rr.Int64N(2000), int64(int32(rr.Uint32())), -rr.Int64N(2000)}[rr.IntN(3)]
	at := time.Date(2024, 11, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(rr.Int64N(int64(27*31*24)))*time.Hour + time.Duration(rr.IntN(3600))*time.Second)
	return map[string]any{"order_id": order, "user_id": user, "created": at.Format(time.DateTime), "name": fmt.Sprintf("n-%d", rr.Int64N(1_000_000))}
}

// TestSharding_asTheRouter compares where random rows of random rules belong with
// what a router says that is written from ShardingSphere's documentation.
func TestSharding_asTheRouter(t *testing.T) {
	rules, rows := 400, 600
	if testing.Short() {
		rules = 120
	}
	r := rand.New(rand.NewPCG(13, 1))
	placed, types := 0, map[string]int{}
	for range rules {
		rr := newRandomRule(r)
		parsed, err := rule.Parse("rule.yaml", []byte(rr.text))
		if err != nil {
			t.Fatalf("%s\nhave: %v", rr.text, err)
		}
		s := parsed.Tables()[0].Sharding
		if s.Err != nil {
			t.Fatalf("%s\nhave: %v", rr.text, s.Err)
		}
		for range rows {
			row := rr.row()
			var values []any
			for _, c := range s.Columns {
				values = append(values, row[c])
			}
			have, err := s.Place(values)
			want, wantErr := rr.router.Route(row)
			if (err == nil) != (wantErr == nil) || err == nil && (have.DataSource != want.DataSource || have.Table != want.Table) {
				t.Fatalf("%s\n%v\nhave: %v, %v\nwant: %v, %v", rr.text, row, have, err, want, wantErr)
			}
			if err == nil {
				placed++
				if rr.router.Table != nil {
					types[rr.router.Table.Type]++
				}
			}
		}
	}
	if placed < rules*rows/2 || len(types) < 9 {
		t.Errorf("have: %d of %d rows placed, %v\nwant: half of them, by every algorithm", placed, rules*rows, types)
	}
	t.Logf("%d of %d rows placed: %v", placed, rules*rows, types)
}
