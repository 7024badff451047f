package testrouter

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// Rule is a random rule for the table t_order, for both the package rule and the router. Its
// columns are order_id, user_id, name and created.
type Rule struct {
	*rand.Rand
	Router     Table
	Algorithms []string // as YAML
	settings   []string
}

// RandomRule returns a rule with one or two strategies.
func RandomRule(r *rand.Rand) *Rule {
	rr := &Rule{Rand: r, Router: Table{Logic: "t_order"}}
	digits := 1 + rr.IntN(3)
	tables := []int{1, 2, 3, 4, 7, 10, 12, 16, 64}[rr.IntN(9)]
	sources := []int{1, 1, 2, 3, 4}[rr.IntN(5)]
	var strategies []string
	if sources > 1 {
		rr.Router.Database = rr.strategy("ds_", sources, 1)
		strategies = append(strategies, "databaseStrategy: "+rr.Written(rr.Router.Database))
	}
	var nodes []string
	isMonth := rr.IntN(10) == 0
	switch {
	case isMonth:
		rr.Router.Table = rr.monthly()
		tables = 24
	case tables > 1 || sources == 1:
		rr.Router.Table = rr.strategy("t_order_", tables, digits)
	}
	for s := range sources {
		for i := range tables {
			name := fmt.Sprintf("t_order_%0*d", digits, i)
			if isMonth {
				name = fmt.Sprintf("t_order_%04d%02d", 2025+i/12, i%12+1)
			}
			if rr.IntN(200) == 0 && len(nodes) > 0 {
				continue // an actual table that is missing
			}
			nodes = append(nodes, fmt.Sprintf("ds_%d.%s", s, name))
			rr.Router.Nodes = append(rr.Router.Nodes, Node{DataSource: fmt.Sprintf("ds_%d", s), Table: name})
		}
	}
	if rr.Router.Table != nil {
		strategies = append(strategies, "tableStrategy: "+rr.Written(rr.Router.Table))
	}
	rr.settings = append([]string{"actualDataNodes: " + strings.Join(nodes, ",")}, strategies...)
	return rr
}

// RandomRuleOfNames returns a rule whose tables are chosen by an expression of the strings in
// name.
func RandomRuleOfNames(r *rand.Rand) *Rule {
	rr := &Rule{Rand: r, Router: Table{Logic: "t_order"}}
	count := 2 + rr.Int64N(3)
	s := &Strategy{Columns: []string{"name"}, Type: "INLINE", Prefix: "t_order_", Expression: RandomOfText(r, "name").abs().Modulo(count, 1)}
	s.Props = map[string]string{"algorithm-expression": "t_order_${" + s.Expression.Groovy + "}"}
	rr.Router.Table = s
	for i := range count {
		rr.Router.Nodes = append(rr.Router.Nodes, Node{DataSource: "ds", Table: fmt.Sprintf("t_order_%d", i)})
	}
	rr.settings = []string{fmt.Sprintf("actualDataNodes: ds.t_order_${0..%d}", count-1), "tableStrategy: " + rr.Written(s)}
	return rr
}

// Text returns the rule as YAML. Column key has a generator of this type with settings.
func (rr *Rule) Text(key, generator, settings string) string {
	return "rules:\n- !SHARDING\n  tables:\n    t_order:\n      " + strings.Join(rr.settings, "\n      ") + `
      keyGenerateStrategy: {column: ` + key + `, keyGeneratorName: g` + settings + `}
  keyGenerators: {g: ` + generator + `}
  shardingAlgorithms:
    ` + strings.Join(rr.Algorithms, "\n    ") + "\n"
}

// strategy returns a strategy over names with a prefix, numbered from 0.
func (rr *Rule) strategy(prefix string, count, digits int) *Strategy {
	s := &Strategy{Columns: []string{[]string{"user_id", "order_id", "name"}[rr.IntN(3)]}, Integer: map[string]bool{}, Props: map[string]string{}}
	s.Integer["user_id"] = rr.IntN(2) == 0
	s.Type = []string{"MOD", "HASH_MOD", "HASH_MOD", "VOLUME_RANGE", "BOUNDARY_RANGE", "INLINE", "INLINE", "INLINE", "INLINE"}[rr.IntN(9)]
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
	default:
		rr.inline(s, prefix, count, digits)
	}
	return s
}

func (rr *Rule) inline(s *Strategy, prefix string, count, digits int) {
	s.Prefix = prefix
	s.Expression = AbsHash("name")
	if column := s.Columns[0]; column != "name" {
		s.Expression = Random(rr.Rand, column)
	}
	if rr.IntN(2) == 0 {
		s.Expression = s.Expression.abs()
	}
	s.Expression = s.Expression.Modulo(int64(count), digits)
	s.Props["algorithm-expression"] = prefix + []string{"${", "$->{ "}[rr.IntN(2)] + s.Expression.Groovy + "}"
}

func (rr *Rule) monthly() *Strategy {
	return &Strategy{Columns: []string{"created"}, Type: "INTERVAL", Props: map[string]string{
		"datetime-pattern": "yyyy-MM-dd HH:mm:ss", "datetime-lower": fmt.Sprintf("2025-0%d-01 00:00:00", 1+rr.IntN(3)), "datetime-upper": "2026-11-30 00:00:00",
		"sharding-suffix-pattern": "yyyyMM", "datetime-interval-amount": fmt.Sprint(1 + rr.IntN(3)), "datetime-interval-unit": "MONTHS",
	}}
}

// Written adds a strategy to the rule, and returns its YAML.
func (rr *Rule) Written(s *Strategy) string {
	name := fmt.Sprintf("a%d", len(rr.Algorithms))
	var props []string
	for prop, value := range s.Props {
		props = append(props, fmt.Sprintf("%s: '%s'", prop, strings.ReplaceAll(value, "'", "''")))
	}
	rr.Algorithms = append(rr.Algorithms, fmt.Sprintf("%s: {type: %s, props: {%s}}", name, s.Type, strings.Join(props, ", ")))
	column := s.Columns[0]
	class := map[bool]string{true: "Integer", false: "Long"}[s.Integer[column]]
	if column == "name" || column == "created" {
		class = "String"
	}
	return fmt.Sprintf("{standard: {shardingColumn: '%s', shardingAlgorithmName: %s, javaType: '%s'}}", column, name, class)
}

// Row returns a random row.
func (rr *Rule) Row() map[string]any {
	order := []int64{rr.Int64(), -rr.Int64(), rr.Int64N(2000), -rr.Int64N(2000), rr.Int64N(1 << 33)}[rr.IntN(5)]
	user := []int64{rr.Int64N(2000), int64(int32(rr.Uint32())), -rr.Int64N(2000)}[rr.IntN(3)]
	at := time.Date(2024, 11, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(rr.Int64N(int64(27*31*24)))*time.Hour + time.Duration(rr.IntN(3600))*time.Second)
	return map[string]any{"order_id": order, "user_id": user, "created": at.Format(time.DateTime), "name": fmt.Sprintf("n-%d", rr.Int64N(1_000_000))}
}

// Uses reports whether a column affects the table of a row.
func (rr *Rule) Uses(column string) bool {
	return rr.Router.Database.uses(column) || rr.Router.Table.uses(column)
}

// Numeric reports whether a strategy interprets a column's value as a number or a time.
func (rr *Rule) Numeric(column string) bool {
	return slices.ContainsFunc([]*Strategy{rr.Router.Database, rr.Router.Table}, func(s *Strategy) bool {
		return s.uses(column) && s.Type != "HASH_MOD" && s.Expression == nil
	})
}

func (s *Strategy) uses(column string) bool { return s != nil && slices.Contains(s.Columns, column) }
