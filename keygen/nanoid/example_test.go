package nanoid_test

import (
	"context"
	"fmt"

	_ "github.com/shardkey/shardkey/keygen/nanoid"
	"github.com/shardkey/shardkey/spi"
)

func Example() {
	props, err := spi.NewProps(map[string]any{"size": "26", "alphabet": "0123456789abcdefghjkmnpqrstvwxyz"}, spi.Host{})
	if err != nil {
		fmt.Println(err)
		return
	}
	generator, err := spi.NewKeyGenerator("NANOID", props)
	if err != nil {
		fmt.Println(err)
		return
	}
	keys, err := generator.GenerateKeys(context.Background(), spi.Column{Table: "coupon", Name: "code"}, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(keys[0].(string)), len(keys[1].(string)), keys[0] != keys[1])
	// Output:
	// 26 26 true
}
