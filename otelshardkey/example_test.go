package otelshardkey_test

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/shardkey/shardkey/driver"
	"github.com/shardkey/shardkey/otelshardkey"
	"github.com/shardkey/shardkey/rule"
)

// A program registers each connector. An exporter takes the place of the manual reader.
func ExampleRegister() {
	r, err := rule.Parse("rule.yaml", []byte(`
rules:
- !SHARDING
  tables:
    t_order: {keyGenerateStrategy: {column: order_id, keyGeneratorName: snowflake}}
  keyGenerators:
    snowflake: {type: SNOWFLAKE, props: {worker-id: 17}}
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := driver.RegisterRule("metrics", r); err != nil {
		fmt.Println(err)
		return
	}
	db, connector, err := driver.Open("user:pass@tcp(127.0.0.1:3306)/shop?shardkeyRule=metrics")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()

	reader := metric.NewManualReader()
	metrics, err := otelshardkey.Register(connector, metric.NewMeterProvider(metric.WithReader(reader)))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer metrics.Unregister()

	ctx := context.Background()
	if _, err := driver.NextKeys(ctx, db, "t_order", 3); err != nil {
		fmt.Println(err)
		return
	}
	var collected metricdata.ResourceMetrics
	if err := reader.Collect(ctx, &collected); err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range collected.ScopeMetrics[0].Metrics {
		if keys, ok := m.Data.(metricdata.Sum[int64]); ok && m.Name == "shardkey.keys" {
			fmt.Println(m.Name, keys.DataPoints[0].Value, m.Unit)
		}
	}
	// Output:
	// shardkey.keys 3 {key}
}
