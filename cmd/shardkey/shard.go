package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/rule"
)

// misplaced returns the error for a row whose text shows that it does not belong into
// the actual table that the INSERT names, where such rows are refused.
func misplaced(plan *rewrite.Plan, in *rewrite.Insert, t *rule.Table) error {
	shard := t.Sharding.Shard(in.Schema, in.Name)
	if shard == nil || t.ShardGuard != "refuse" {
		return nil
	}
	for row := range in.Rows() {
		values, known := givenValues(plan, in, t, shard, row)
		if !known {
			continue
		}
		place, here, err := shard.Place(values)
		if !here {
			return &driver.WrongShardError{Row: row + 1, Columns: shard.Columns, Values: values, Table: in.Name, Meant: place, Err: err}
		}
	}
	return nil
}

// givenValues are those of the columns that decide, when the text has all of them.
func givenValues(plan *rewrite.Plan, in *rewrite.Insert, t *rule.Table, shard *rule.Shard, row int) (values []any, known bool) {
	for _, column := range shard.Columns {
		if strings.EqualFold(column, t.Column) {
			key := plan.Kept(in, row, 0)
			if key == nil {
				return nil, false
			}
			values = append(values, key)
			continue
		}
		i := slices.Index(in.Table.Sharding, column)
		kind, _, value := plan.Given(in, i, row)
		if kind != rewrite.GivenLiteral {
			return nil, false
		}
		values = append(values, value)
	}
	return values, true
}

// explainShard says what the actual table that an INSERT names asks of its rows.
func explainShard(w io.Writer, in *rewrite.Insert, t *rule.Table) {
	shard := t.Sharding.Shard(in.Schema, in.Name)
	if shard == nil {
		return
	}
	columns := strings.Join(shard.Columns, ", ")
	if slices.ContainsFunc(shard.Columns, func(c string) bool { return strings.EqualFold(c, t.Column) }) {
		fmt.Fprintf(w, "  generated keys belong into %s, by %s\n", in.Name, columns)
	}
	if t.ShardGuard == "off" || in.Source != nil {
		return
	}
	what := "is refused"
	if t.ShardGuard == "warn" {
		what = "is logged"
	}
	fmt.Fprintf(w, "  a row that does not belong into %s, by %s, %s\n", in.Name, columns, what)
}
