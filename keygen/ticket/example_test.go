package ticket_test

import (
	"fmt"
	"io"

	_ "github.com/shardkey/shardkey/keygen/ticket"
	"github.com/shardkey/shardkey/spi"
)

// Two ticket servers, as a rule names them. The first has
// auto_increment_offset = 1, the second 2, both auto_increment_increment = 2.
// Nothing connects before the first key.
func Example() {
	props, err := spi.NewProps(map[string]any{
		"dsns": []string{"app:secret@tcp(ticket-1:3306)/tickets", "app:secret@tcp(ticket-2:3306)/tickets"},
	}, spi.Host{})
	if err != nil {
		fmt.Println(err)
		return
	}
	g, err := spi.NewKeyGenerator("TICKET", props)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer g.(io.Closer).Close()
	fmt.Println(g.(spi.Describer).Describe())
	// Output: TICKET Tickets64 at tcp(ticket-1:3306)/tickets, tcp(ticket-2:3306)/tickets, increment 2, batch 1
}
