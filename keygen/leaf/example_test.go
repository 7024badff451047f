package leaf_test

import (
	"fmt"
	"io"

	_ "github.com/shardkey/shardkey/keygen/leaf"
	"github.com/shardkey/shardkey/spi"
)

// A generator as a rule makes it, from Leaf's own properties. Nothing connects
// before the first key.
func Example() {
	props, err := spi.NewProps(map[string]any{
		"leaf.key":           "order",
		"leaf.jdbc.url":      "jdbc:mysql://leaf-db:3306/leaf?useSSL=false&serverTimezone=UTC",
		"leaf.jdbc.username": "leaf",
		"leaf.jdbc.password": "secret",
		"max-step":           "100000",
	}, spi.Host{})
	if err != nil {
		fmt.Println(err)
		return
	}
	g, err := spi.NewKeyGenerator("LEAF_SEGMENT", props)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer g.(io.Closer).Close()
	fmt.Println(g.(spi.Describer).Describe())
	// Output: LEAF_SEGMENT "order", leaf_alloc at tcp(leaf-db:3306)/leaf, step not read yet
}
