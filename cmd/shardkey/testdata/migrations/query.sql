-- name: CreateTable :exec
CREATE TABLE attributes (id BIGINT, x INT);
-- name: CreateOrder :exec
INSERT INTO t_order (user_id) SELECT id FROM attributes;
