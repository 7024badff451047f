package rule_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// Parse a rule once. Each connector then opens its generators.
func Example() {
	r, err := rule.Parse("rule.yaml", []byte(`
rules:
- !SHARDING
  tables:
    t_order:
      actualDataNodes: ds_${0..1}.t_order_${0..15}
      keyGenerateStrategy: {column: order_id, keyGeneratorName: snowflake}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id: 123}}
`))
	if err != nil {
		log.Fatal(err)
	}
	live, err := r.Open(spi.Host{})
	if err != nil {
		log.Fatal(err)
	}
	defer live.Close()

	t := live.Lookup("", "T_ORDER_3")
	keys, err := t.Generator.GenerateKeys(context.Background(), spi.Column{Table: t.Logical, Name: t.Column}, 2)
	fmt.Println(t.Logical, t.Column, len(keys), err)
	fmt.Println(live.Lookup("", "t_user"))
	// Output:
	// t_order order_id 2 <nil>
	// <nil>
}

// An error has the place of the wrong word and suggests known words.
func ExampleParse_error() {
	_, err := rule.Parse("conf/rule.yaml", []byte(`
rules:
- !SHARDING
  tables:
    t_order: {keyGenerateStrategy: {column: order_id, keyGeneratorName: snowflak}}
  keyGenerators:
    snowflake: {type: SNOWFLAKE}
`))
	fmt.Println(err)
	var e *rule.Error
	if errors.As(err, &e) {
		fmt.Println(e.Line, e.Column, e.Word, e.Nearest)
	}
	// Output:
	// shardkey: conf/rule.yaml:5:73: key generator "snowflak" is not defined; defined: snowflake; did you mean "snowflake"?
	// 5 73 snowflak [snowflake]
}

// New builds the same rule in Go.
func ExampleNew() {
	r, err := rule.New(rule.Config{
		Tables: []rule.TableConfig{{
			Name:            "t_order",
			ActualDataNodes: "t_order_${0..3}",
			KeyConfig:       rule.KeyConfig{Column: "order_id", Generator: "snowflake"},
		}},
		Generators: map[string]rule.GeneratorConfig{
			"snowflake": {Type: "SNOWFLAKE", Props: map[string]any{"worker-id": 123}},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(r)
	// Output:
	// rule rule
	//   table t_order: column order_id from snowflake (SNOWFLAKE), actual tables: t_order_0, t_order_1, t_order_2, t_order_3
}

// Tables lists the tables of a rule.
func ExampleRule_Tables() {
	r, err := rule.Load("testdata/v554.yaml")
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range r.Tables() {
		fmt.Printf("%-14s%-10s%-11s%d actual\n", t.Logical, t.Column, t.GeneratorName, t.ActualCount)
	}
	// Output:
	// t_order       order_id  snowflake  2 actual
	// T_Order_Item  item_id   snowflake  2 actual
	// t_account     id        snowflake  24 actual
	// t_log         log_id    uuid       1 actual
	// t_auto        auto_id   uuid       4 actual
}
