BEGIN;
INSERT INTO t_order (user_id) VALUES (1);
INSERT INTO t_order (user_id) VALUES (2);
COMMIT;
