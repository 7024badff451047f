// Package store sends statements in many ways.
package store

import (
	"context"
	"database/sql"
	"fmt"

	"example.com/app/gorm"
	"example.com/app/sqlx"
)

const (
	insert = "INSERT INTO " + table + " (user_id) VALUES (?)"
	table  = "t_order"
	unsent = "INSERT INTO t_order (user_id) VALEUS (1)"
)

var update = "UPDATE t_order SET order_id = ? WHERE order_id = ?"

// DBTX is the interface that sqlc generates.
type DBTX interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
	PrepareContext(context.Context, string) (*sql.Stmt, error)
}

func Standard(ctx context.Context, db *sql.DB, tx *sql.Tx, c *sql.Conn) {
	db.Exec(insert, 1)
	db.ExecContext(ctx, `
		-- one of many
		INSERT INTO t_order (user_id)
		VALEUS (?)`, 1)
	tx.Query("INSERT INTO t_order (user_id) VALUES (?) RETURNING order_id", 1)
	tx.QueryRowContext(ctx, "REPLACE INTO t_order (order_id) VALUES (?)", 1)
	c.PrepareContext(ctx, "INSERT INTO t_order (order_id, user_id) VALUES (1, ?)")
	db.Exec(update, 1, 2)
	db.Exec("SELECT * FROM t_order")
	fmt.Println(unsent)
}

func Variables(db DBTX, ctx context.Context, many bool, name string) {
	q := "INSERT INTO t_order (user_id) VALUES (?)"
	if many {
		q = "INSERT INTO t_order (user_id) VALUES (?), (?)"
	}
	db.ExecContext(ctx, q, 1)
	db.PrepareContext(ctx, fmt.Sprintf("INSERT INTO t_order (%s) VALUES (?)", name))
	db.ExecContext(ctx, fmt.Sprintf("LOAD DATA LOCAL INFILE '%s' INTO TABLE `t_order` (user_id)", name))
	db.PrepareContext(ctx, "INSERT INTO "+name+" (user_id) VALUES (?)")
}

func Libraries(x *sqlx.DB, g *gorm.DB) {
	x.NamedExec("INSERT INTO t_order (user_id, note) VALUES (:user_id, :note)", nil)
	x.MustExec("INSERT INTO t_order (user_id) VALUES (?)", 1)
	x.Get(nil, "INSERT INTO t_order (user_id) VALUES (?) RETURNING *", 1)
	sqlx.Get(x, nil, "INSERT INTO t_order () VALUES ()")
	g.Exec("INSERT INTO t_order (user_id, note) VALUES (@user, ?)", 1, 2)
	g.Raw("CREATE TABLE t_order_9 SELECT 1 AS user_id")
}
