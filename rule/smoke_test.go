package rule_test

import (
	"testing"

	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

func TestSmoke(t *testing.T) {
	r, err := rule.Parse("rule.yaml", []byte(`
rules:
- !SHARDING
  tables:
    t_order:
      actualDataNodes: ds_${0..1}.t_order_${0..15}
      keyGenerateStrategy: {column: order_id, keyGeneratorName: snowflake}
    t_item:
  defaultKeyGenerateStrategy: {column: id, keyGeneratorName: snowflake}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id: 123}}
`))
	if err != nil {
		t.Fatal(err)
	}
	t.Log(r)
	g, err := r.Open(spi.Host{})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(g.Describe(), g.Lookup("", "T_ORDER_3"), g.Health())
}
