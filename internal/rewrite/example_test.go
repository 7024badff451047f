package rewrite_test

import (
	"fmt"

	"github.com/shardkey/shardkey/internal/rewrite"
)

// orders has a rule for one table.
func orders(schema, name string) *rewrite.Table {
	if name != "t_order" {
		return nil
	}
	return &rewrite.Table{KeyColumn: "order_id", Kind: rewrite.KindInteger}
}

func ExampleParse() {
	plan, err := rewrite.Parse("INSERT INTO t_order (user_id) VALUES (?), (?)", rewrite.Options{Tables: orders})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("the user's placeholders:", plan.Params())
	fmt.Println("keys to make:", plan.Fills())
	fmt.Println(plan.BindText())
	// Output:
	// the user's placeholders: 2
	// keys to make: 2
	// INSERT INTO t_order (user_id, `order_id`) VALUES (?, ?), (?, ?)
}

func ExampleParse_refused() {
	_, err := rewrite.Parse("INSERT INTO t_order (user_id) VALUES (1) WHERE note = 'secret'", rewrite.Options{Tables: orders})
	fmt.Println(err)
	// Output:
	// shardkey: statement cannot be filled: table `t_order`: what follows the values is not understood, at line 1 column 42 near «WHERE note = '…'»
}

func ExamplePlan_LiteralText() {
	plan, err := rewrite.Parse("INSERT INTO t_order (order_id, note) VALUES (NULL, 'a'), (7, 'b'), (0, 'c')", rewrite.Options{Tables: orders})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(plan.LiteralText([]rewrite.Keys{{Ints: []int64{101, 102}}}))
	// Output:
	// INSERT INTO t_order (order_id, note) VALUES (101, 'a'), (7, 'b'), (102, 'c')
}

func ExampleClassify() {
	for _, text := range []string{"SELECT 1", "/* trace */ INSERT INTO t_order (user_id) VALUES (1)", "USE app"} {
		fmt.Println(rewrite.Classify(text) == rewrite.ClassMayInsert)
	}
	// Output:
	// false
	// true
	// false
}
