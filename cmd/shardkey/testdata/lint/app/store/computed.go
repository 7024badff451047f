package store

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"
)

const base = "t_order_"

func name(n int) string { return base + strconv.Itoa(n) }

// Computed builds the names of tables at run time.
func Computed(ctx context.Context, db *sql.DB, n int, column, all string) {
	db.Exec(fmt.Sprintf("INSERT INTO t_order_%d (user_id) VALUES (?)", n), 1)
	db.ExecContext(ctx, "INSERT INTO "+base+strconv.Itoa(n)+" (user_id) VALUES (?)", 1)
	db.Exec("REPLACE INTO `"+base+strconv.Itoa(n)+"` (user_id) VALUES (?)", 1)
	db.Exec(fmt.Sprintf("INSERT INTO %s (user_id) VALUES (?)", name(n)), 1)
	db.Exec(fmt.Sprintf("INSERT INTO %s.t_order (user_id) VALUES (?)", all), 1)
	db.Exec(strings.ReplaceAll("INSERT INTO {table} (user_id) VALUES (?)", "{table}", name(n)), 1)
	db.Exec(strings.Join([]string{"INSERT INTO", name(n), "(user_id) VALUES (?)"}, " "), 1)
	db.Exec(fmt.Sprintf("INSERT INTO t_item_%d (user_id) VALUES (?)", n), 1)
	db.Exec(fmt.Sprintf("SELECT * FROM t_order_%d", n))
	db.Exec(all)

	table := fmt.Sprintf("t_order_%02d", n)
	q := "INSERT INTO " + table
	q += " (user_id) VALUES (?)"
	db.Exec(q, 1)

	var b strings.Builder
	b.WriteString("INSERT INTO t_order_")
	b.WriteString(strconv.Itoa(n))
	b.WriteByte(' ')
	fmt.Fprintf(&b, "(%s) VALUES (?)", column)
	db.Exec(b.String(), 1)
	b.Reset()
	b.WriteString("SELECT 1")
	db.Exec(b.String())

	buffer := new(bytes.Buffer)
	buffer.WriteString("INSERT INTO t_order (user_id) VALUES (?)")
	for range n {
		buffer.WriteString(", (?)")
	}
	db.Exec(buffer.String(), 1)

	db.Exec(fmt.Sprintf("UPDATE t_order_%d SET order_id = 7", n))
	db.Exec(fmt.Sprintf("UPDATE t_order_%d SET note = 'order_id = 7' WHERE order_id = 7", n))
	db.Exec(fmt.Sprintf("UPDATE %s AS o SET o.order_id = ? WHERE user_id = %d", all, n))
	db.Exec(fmt.Sprintf("UPDATE t_item_%d SET order_id = 7", n))
	db.Exec(fmt.Sprintf("UPDATE t_order SET order_id = %d", n))

	// The tables of these statements are known.
	db.Exec(fmt.Sprintf("INSERT INTO %s (user_id) VALUES (?)", "t_order"), 1)
	db.Exec(fmt.Sprintf("INSERT INTO %s%d (user_id) VALUES (100%%2)", base, 3), 1)
}
