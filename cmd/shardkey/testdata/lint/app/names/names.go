// Package names contains names of tables.
package names

import "fmt"

const (
	Table  = "t_order"
	Prefix = "t_order_"
)

func Insert(n int) string {
	return fmt.Sprintf("INSERT INTO %s%d (user_id) VALUES (?)", Prefix, n)
}
