package rewrite_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/shardkey/shardkey/rewrite"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"

	_ "github.com/shardkey/shardkey/keygen/snowflake" // the type of the rule's generator
)

func Example() {
	orders := &rewrite.Table{Key: "order_id"}
	opts := rewrite.Options{ReportKeys: true, Table: func(_, name string) *rewrite.Table {
		if name == "t_order_1" {
			return orders
		}
		return nil
	}}
	next := int64(100)
	generate := func(_ *rewrite.Insert, n int) (keys []any, _ error) {
		for range n {
			keys = append(keys, next)
			next++
		}
		return keys, nil
	}
	for _, statement := range []struct {
		query string
		args  []any
	}{
		{"INSERT INTO t_order_1 (user_id) VALUES (?), (?)", []any{7, 8}},
		{"INSERT INTO t_order_1 (user_id, order_id, n) VALUES (?, ?, ?), (?, ?, ?)", []any{7, nil, "x", 8, 55, "y"}},
		{"/*+ hint */ REPLACE t_order_1 SET user_id = ?, order_id = DEFAULT", []any{7}},
		{"INSERT INTO t_order_1 (user_id) VALUES (7)", nil},
		{"INSERT INTO other (a) VALUES (?)", []any{1}},
		{"INSERT INTO t_order_1 (user_id) SELECT id FROM users", nil},
		{"INSERT INTO t_order_1 VALUES (?)", []any{7}},
	} {
		plan, err := rewrite.Parse(statement.query, opts)
		if err != nil {
			fmt.Println(errors.Is(err, rewrite.ErrUnsupportedStatement), err)
			continue
		}
		if plan.Count() != "" {
			fmt.Println(plan.Count())
			continue
		}
		query, args, err := plan.Rewrite(statement.args, generate)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(query, args)
	}
	// Output:
	// INSERT INTO t_order_1 (user_id, `order_id`) VALUES (?, LAST_INSERT_ID(?)), (?, ?) [7 100 8 101]
	// INSERT INTO t_order_1 (user_id, order_id, n) VALUES (?, ?, ?), (?, ?, ?) [7 102 x 8 55 y]
	// /*+ hint */ REPLACE t_order_1 SET user_id = ?, order_id = LAST_INSERT_ID(?) [7 103]
	// INSERT INTO t_order_1 (user_id, `order_id`) VALUES (7, LAST_INSERT_ID(104)) []
	// INSERT INTO other (a) VALUES (?) [1]
	// WITH shardkey_rows (c1) AS (SELECT id FROM users) SELECT /*+ MAX_EXECUTION_TIME(4294967295) */ COUNT(*) FROM shardkey_rows LIMIT 1
	// true shardkey: cannot add keys to the statement: table t_order_1: line 1, column 22 near "VALUES (?)": the table's columns are unknown; list the columns in the statement
}

// A proxy counts the rows of an INSERT … SELECT, and hands out keys for them.
func ExamplePlan_RewriteSelect() {
	plan, err := rewrite.Parse("INSERT INTO t_order_1 (user_id) SELECT id FROM users WHERE id > ?", rewrite.Options{
		Table:      func(string, string) *rewrite.Table { return &rewrite.Table{Key: "order_id"} },
		ReportKeys: true,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	args, send := []any{5}, func(query string, args ...any) int { // sends it to the server
		fmt.Println(query, args)
		return 3
	}
	var keys []any
	for key := range max(1, send(plan.Count(), args[:plan.Insert.SelectArgs]...)) {
		keys = append(keys, 100+key)
	}
	const lastInsertID = 7 // SELECT LAST_INSERT_ID()
	query, args, err := plan.RewriteSelect(args, keys, lastInsertID)
	fmt.Println(len(query), args, err)
	// Output:
	// WITH shardkey_rows (c1) AS (SELECT id FROM users WHERE id > ?) SELECT /*+ MAX_EXECUTION_TIME(4294967295) */ COUNT(*) FROM shardkey_rows LIMIT 1 [5]
	// 487 [7 101 100 100 102 100 102 7 0 0 7 0 0 7 0 0 7 0 0 100 102 1 1 5] <nil>
}

// A proxy takes its tables and generators from a rule.
func ExampleOptions_rule() {
	r, err := rule.Parse("rule.yaml", []byte(`
rules:
- !SHARDING
  tables:
    t_order:
      actualDataNodes: ds_0.t_order_${0..1}
      keyGenerateStrategy: {column: order_id, keyGeneratorName: snowflake}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id: 1}}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	tables, err := r.Open(spi.Host{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer tables.Close()
	plan, err := rewrite.Parse("INSERT INTO t_order_1 (user_id) VALUES (?)", rewrite.Options{
		Table: func(schema, name string) *rewrite.Table {
			if t := tables.Lookup(schema, name); t != nil {
				return &rewrite.Table{Key: t.Column}
			}
			return nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	query, args, err := plan.Rewrite([]any{7}, func(in *rewrite.Insert, n int) ([]any, error) {
		t := tables.Lookup(in.Schema, in.Name)
		return t.Generator.GenerateKeys(context.Background(), spi.Column{Table: t.Logical, Name: t.Column}, n)
	})
	fmt.Println(query, len(args), err)
	// Output: INSERT INTO t_order_1 (user_id, `order_id`) VALUES (?, ?) 2 <nil>
}
