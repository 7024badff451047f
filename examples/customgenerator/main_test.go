package main

import (
	"context"
	"fmt"
	"os"
)

func Example() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// t_order_0 ('tea') got the keys [1]
	// t_order_0 ('milk'), ('sugar'), ('lemon') got the keys [2 3 4]
	// t_order_1 ('tea') got the keys [5]
	// t_order_1 ('milk'), ('sugar'), ('lemon') got the keys [6 7 8]
}
