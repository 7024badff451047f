-- name: CreateOrder :execlastid
INSERT INTO t_order_1 (item, amount) VALUES (?, ?);

-- name: CreateTwoOrders :exec
INSERT INTO t_order_1 (item) VALUES (?), (?);

-- name: Order :one
SELECT * FROM t_order_1 WHERE order_id = ?;
