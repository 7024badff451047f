package rule

import (
	"fmt"
	"slices"
	"testing"
)

func TestPlaces_ofEachKindOfTable(t *testing.T) {
	r, err := Parse("places.yaml", []byte(`
rules:
- !SHARDING
  tables:
    t_order:
      actualDataNodes: ds_${0..1}.t_order_${0..1}, ds_9.other.t_order_x
      keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}
    t_log:
      actualDataNodes: ds_0.t_log_${yyyyMM}
      keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}
    t_plain:
      keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}
    crm.t_note:
      keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}
  autoTables:
    t_auto:
      actualDataSources: ds_${0..1}
      shardingStrategy: {standard: {shardingColumn: id, shardingAlgorithmName: mod}}
      keyGenerateStrategy: {column: id, keyGeneratorName: snowflake}
  shardingAlgorithms:
    mod: {type: MOD, props: {sharding-count: 3}}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id: 1, max-vibration-offset: 2}}
`))
	if err != nil {
		t.Fatal(err)
	}
	for table, want := range map[string]string{
		"T_ORDER":    "[ds_0.t_order_0 ds_0.t_order_1 ds_1.t_order_0 ds_1.t_order_1 ds_9.other.t_order_x]",
		"t_log":      "[ds_0.t_log_${yyyyMM}]",
		"t_plain":    "[t_plain]",
		"crm.t_note": "[crm.t_note]",
		"t_auto":     "[ds_0.t_auto_0 ds_1.t_auto_1 ds_0.t_auto_2]",
		"t_none":     "[]",
	} {
		if have := fmt.Sprint(slices.Collect(r.Places(table))); have != want {
			t.Errorf("%s\nhave: %s\nwant: %s", table, have, want)
		}
	}
	for p := range r.Places("t_order") {
		if p.Table != "t_order_0" {
			t.Errorf("have: %v after the first was enough", p)
		}
		break
	}
}
