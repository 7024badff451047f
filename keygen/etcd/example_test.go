package etcd_test

import (
	"fmt"

	_ "github.com/shardkey/shardkey/keygen/etcd"
	"github.com/shardkey/shardkey/spi"
)

// A rule names the assigner by its type, and the import registers that.
//
//	workerIdAssigners:
//	  cluster: {type: ETCD, props: {endpoints: "10.0.0.1:2379,10.0.0.2:2379", namespace: orders}}
func Example() {
	props, _ := spi.NewProps(map[string]any{"endpoints": "10.0.0.1:2379,10.0.0.2:2379", "namespace": "orders"}, spi.Host{})
	assigner, err := spi.NewWorkerIDAssigner("ETCD", props) // connects at the first key
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(assigner.(spi.Describer).Describe())

	props, _ = spi.NewProps(map[string]any{"endpoints": "10.0.0.1"}, spi.Host{})
	_, err = spi.NewWorkerIDAssigner("ETCD", props)
	fmt.Println(err)
	// Output:
	// ETCD 10.0.0.1:2379,10.0.0.2:2379 /shardkey/orders/ namespace=orders lease=10s renew=3s: none held
	// shardkey: worker-ID assigner ETCD: property "endpoints": expected the members' addresses, for example 10.0.0.1:2379,10.0.0.2:2379, found "10.0.0.1"
}
