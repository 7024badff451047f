package leaf_test

import (
	"fmt"

	"github.com/shardkey/shardkey/keygen/leaf"
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
	defer g.(*leaf.Generator).Close()
	fmt.Println(g.(spi.Describer).Describe())
	// Output: LEAF_SEGMENT "order", leaf_alloc at tcp(leaf-db:3306)/leaf, step not read yet
}

// What JDBC's address becomes in Go.
func ExampleParseJDBC() {
	cfg, err := leaf.ParseJDBC("jdbc:mysql://leaf-db/leaf?useSSL=false&socketTimeout=3000&serverTimezone=GMT%2B8")
	fmt.Println(cfg.Addr, cfg.DBName, cfg.ReadTimeout, "tls="+cfg.TLSConfig, err)

	_, err = leaf.ParseJDBC("jdbc:mysql://db-1,db-2/leaf")
	fmt.Println(err)
	// Output:
	// leaf-db:3306 leaf 3s tls=false <nil>
	// shardkey: property "leaf.jdbc.url": want one host: two servers would hand out the same numbers
}
