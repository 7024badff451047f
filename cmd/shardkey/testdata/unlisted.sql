INSERT INTO t_order_2 (a) VALUES (1);
INSERT INTO t_order_1 (a) VALUES (1);
INSERT INTO t_open_1 (a) VALUES (1);
INSERT INTO t_other (a) VALUES (1);
INSERT INTO t_order_2 (id, a) VALUES (7, 1);
INSERT INTO t_order_2 (id, a) VALUES (?, 1);
INSERT INTO t_order_2 VALUES (?, 1);
