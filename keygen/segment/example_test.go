package segment_test

import (
	"fmt"
	"io"

	_ "github.com/shardkey/shardkey/keygen/segment"
	"github.com/shardkey/shardkey/spi"
)

// A generator as a rule makes it, from Leaf's own properties. Nothing connects
// before the first key.
func Example_leafSegment() {
	describe("LEAF_SEGMENT", map[string]any{
		"leaf.key":           "order",
		"leaf.jdbc.url":      "jdbc:mysql://leaf-db:3306/leaf?useSSL=false&serverTimezone=UTC",
		"leaf.jdbc.username": "leaf",
		"leaf.jdbc.password": "secret",
		"max-step":           "100000",
	})
	// Output: LEAF_SEGMENT "order", leaf_alloc at tcp(leaf-db:3306)/leaf, step not read yet
}

// Two ticket servers, as a rule names them. The first has
// auto_increment_offset = 1, the second 2, both auto_increment_increment = 2.
// Nothing connects before the first key.
func Example_ticket() {
	describe("TICKET", map[string]any{
		"dsns": []string{"app:secret@tcp(ticket-1:3306)/tickets", "app:secret@tcp(ticket-2:3306)/tickets"},
	})
	// Output: TICKET Tickets64 at tcp(ticket-1:3306)/tickets, tcp(ticket-2:3306)/tickets, increment 2, batch 1
}

func describe(typ string, properties map[string]any) {
	props, err := spi.NewProps(properties, spi.Host{})
	if err != nil {
		fmt.Println(err)
		return
	}
	g, err := spi.NewKeyGenerator(typ, props)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer g.(io.Closer).Close()
	fmt.Println(g.(spi.Describer).Describe())
}
