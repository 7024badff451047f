package uuid_test

import (
	"context"
	"fmt"

	_ "github.com/shardkey/shardkey/keygen/uuid"
	"github.com/shardkey/shardkey/spi"
)

func Example() {
	props, err := spi.NewProps(map[string]any{"version": "7", "format": "canonical"}, spi.Host{})
	if err != nil {
		fmt.Println(err)
		return
	}
	generator, err := spi.NewKeyGenerator("UUID", props)
	if err != nil {
		fmt.Println(err)
		return
	}
	keys, err := generator.GenerateKeys(context.Background(), spi.Column{Table: "t_order", Name: "order_id"}, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	first, second := keys[0].(string), keys[1].(string)
	fmt.Println(len(first), "characters, version", first[14:15])
	fmt.Println("ascending:", first < second)
	// Output:
	// 36 characters, version 7
	// ascending: true
}
