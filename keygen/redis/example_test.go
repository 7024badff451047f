package redis_test

import (
	"fmt"
	"time"

	_ "github.com/shardkey/shardkey/keygen/redis"
	"github.com/shardkey/shardkey/spi"
)

// A rule names generator and assigner by their types, and the import registers
// those.
//
//	keyGenerators:
//	  counter: {type: REDIS, props: {addr: "127.0.0.1:6379", shard-id: 3}}
func Example() {
	props, _ := spi.NewProps(map[string]any{"addr": "127.0.0.1:6379", "password": "s3cret", "shard-id": "3"}, spi.Host{})
	generator, err := spi.NewKeyGenerator("REDIS", props) // connects at the first key
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(generator.(spi.Describer).Describe())
	// Output:
	// REDIS shard 3 at 127.0.0.1:6379, db 0, state shardkey:{keys:3}, layout 41-12-10, epoch 2016-11-01T00:00:00Z
}

// KeyRange finds the rows of a day by their keys.
func Example_keyRange() {
	props, _ := spi.NewProps(map[string]any{"addr": "127.0.0.1:6379"}, spi.Host{})
	g, err := spi.NewKeyGenerator("REDIS", props)
	if err != nil {
		fmt.Println(err)
		return
	}
	day := time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC)
	first, last, _ := g.(spi.KeyRanger).KeyRange(day, day.AddDate(0, 0, 1))
	fmt.Printf("WHERE order_id BETWEEN %d AND %d\n", first, last)
	parts, _ := g.(spi.KeyDecoder).DecodeKey(last)
	fmt.Println(parts.Time.Format(time.RFC3339Nano), "shard", parts.WorkerID, "sequence", parts.Sequence)
	// Output:
	// WHERE order_id BETWEEN 1234655458099200000 AND 1235017845964799999
	// 2026-03-01T23:59:59.999Z shard 4095 sequence 1023
}
