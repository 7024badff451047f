package zookeeper_test

import (
	"fmt"
	"io"
	"time"

	_ "github.com/shardkey/shardkey/keygen/zookeeper"
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
func Example_decodeKey() {
	props, _ := spi.NewProps(map[string]any{"leaf.zk.list": "10.0.0.1:2181", "leaf.key": "orders"}, spi.Host{})
	generator, err := spi.NewKeyGenerator("LEAF_SNOWFLAKE", props)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer generator.(io.Closer).Close()
	parts, _ := generator.(spi.KeyDecoder).DecodeKey(1514764800000<<22 - 1288834974657<<22 | 17<<12 | 42)
	fmt.Println(parts.Time.Format(time.RFC3339), "worker", parts.WorkerID, "sequence", parts.Sequence)
	// Output:
	// 2018-01-01T00:00:00Z worker 17 sequence 42
}
