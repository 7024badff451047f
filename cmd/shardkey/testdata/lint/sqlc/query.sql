-- name: CreateOrder :execresult
INSERT INTO t_order (user_id, note) VALUES (sqlc.arg(user_id), sqlc.narg('note'));

-- name: CopyOrders :copyfrom
INSERT INTO t_order (user_id) VALUES (?);

-- name: CopyKeys :copyfrom
INSERT INTO t_order (order_id, user_id) VALUES (?, ?);

-- name: GetOrder :one
SELECT * FROM t_order WHERE order_id = ?;
