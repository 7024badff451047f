INSERT INTO t_order (user_id)
VALUES (7)
