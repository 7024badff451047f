package snowflake_test

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/shardkey/shardkey/keygen/snowflake"
	"github.com/shardkey/shardkey/spi"
)

func Example() {
	props, err := spi.NewProps(map[string]any{"worker-id": "123"}, spi.Host{})
	if err != nil {
		fmt.Println(err)
		return
	}
	generator, err := spi.NewKeyGenerator("SNOWFLAKE", props)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer generator.(io.Closer).Close()

	keys := make([]int64, 3)
	if err := generator.(spi.Int64KeyGenerator).GenerateInt64Keys(context.Background(), spi.Column{}, keys); err != nil {
		fmt.Println(err)
		return
	}
	parts, err := generator.(spi.KeyDecoder).DecodeKey(keys[0])
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("contiguous:", keys[1] == keys[0]+1 && keys[2] == keys[1]+1)
	fmt.Println("worker", parts.WorkerID, "layout", parts.Layout)
	fmt.Println("just now:", time.Since(parts.Time) < time.Hour)
	// Output:
	// contiguous: true
	// worker 123 layout 41-10-12
	// just now: true
}

// Rows of one day, by the time that is in their keys.
func ExampleKeyRange() {
	day := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	first, last, err := snowflake.KeyRange(snowflake.Classic, snowflake.DefaultEpoch, day, day.AddDate(0, 0, 1))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("SELECT * FROM t_order WHERE order_id BETWEEN %d AND %d\n", first, last)
	// Output:
	// SELECT * FROM t_order WHERE order_id BETWEEN 1213274574028800000 AND 1213636961894399999
}

func ExampleDecode() {
	parts, err := snowflake.Decode(snowflake.Classic, snowflake.DefaultEpoch, 1213274574029312345)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(parts.Time, parts.WorkerID, parts.Sequence)
	// Output:
	// 2026-01-01 00:00:00 +0000 UTC 125 345
}
