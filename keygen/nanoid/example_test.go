package nanoid_test

import (
	"context"
	"fmt"

	"github.com/shardkey/shardkey/keygen/nanoid"
	"github.com/shardkey/shardkey/spi"
)

func Example() {
	generator, err := nanoid.New(nanoid.Config{Size: 26, Alphabet: "0123456789abcdefghjkmnpqrstvwxyz"})
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
	fmt.Println(generator.Describe())
	// Output:
	// 26 26 true
	// NANOID of 26 characters out of 32, 130 bits
}
