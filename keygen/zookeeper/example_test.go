package zookeeper_test

import (
	"context"
	"fmt"
	"time"

	"github.com/shardkey/shardkey/keygen/zookeeper"
	"github.com/shardkey/shardkey/spi"
)

// A rule names the assigner by its type, and the import registers that.
//
//	workerIdAssigners:
//	  cluster: {type: ZOOKEEPER, props: {servers: "10.0.0.1:2181", namespace: orders}}
func Example() {
	props, _ := spi.NewProps(map[string]any{"servers": "10.0.0.1:2181", "namespace": "orders"}, spi.Host{})
	assigner, err := spi.NewWorkerIDAssigner("ZOOKEEPER", props) // connects at the first key
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(assigner.(spi.Describer).Describe())
	// Output:
	// ZOOKEEPER 10.0.0.1:2181 /shardkey/orders namespace=orders lease=10s renew=3s: none held
}

// Leaf's own keys are taken apart as ours are.
func ExampleLeaf_DecodeKey() {
	leaf, err := zookeeper.NewLeaf(zookeeper.LeafConfig{
		Ensemble: zookeeper.Ensemble{Servers: []string{"10.0.0.1:2181"}},
		Name:     "orders", IP: "10.0.0.7", Port: 8080,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer leaf.Close()
	parts, _ := leaf.DecodeKey(1514764800000<<22 - 1288834974657<<22 | 17<<12 | 42)
	fmt.Println(parts.Time.Format(time.RFC3339), "worker", parts.WorkerID, "sequence", parts.Sequence)

	ctx, cancel := context.WithCancel(context.Background())
	cancel() // nobody is at 10.0.0.1
	_, err = leaf.Next(ctx)
	fmt.Println(err != nil)
	// Output:
	// 2018-01-01T00:00:00Z worker 17 sequence 42
	// true
}
