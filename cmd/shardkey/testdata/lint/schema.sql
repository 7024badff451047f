-- The application's tables.
CREATE TABLE t_order (
  order_id BIGINT NOT NULL PRIMARY KEY,
  user_id  BIGINT NOT NULL,
  note     VARCHAR(64) -- INSERT INTO t_order VALUES (1)
);
INSERT INTO t_order VALUES (NULL, 1, 'it''s; a "test"'), (7, 2, 'x');
INSERT INTO t_order (user_id) VALUES (1);
INSERT INTO t_order (order_id, user_id) VALUES (5, 1);
INSERT INTO t_free (user_id) VALUES (1);
REPLACE INTO `t_order_3` (user_id) SELECT user_id FROM t_old;
INSERT INTO t_order (user_id) VALUES (1, 2);
INSERT INTO t_order (user_id)
  VALEUS (1);
/* a comment; */ INSERT INTO t_order (user_id) VALUES (1) AS new ON DUPLICATE KEY UPDATE user_id = new.user_id;
INSERT INTO t_order_5 VALUES (1, 2);

CREATE TABLE t_order_1 AS SELECT * FROM t_old;
CREATE TABLE IF NOT EXISTS t_order_2 LIKE t_order;
CREATE TABLE t_order_4 (order_id BIGINT) PARTITION BY RANGE (order_id) (PARTITION p VALUES LESS THAN (9));
PREPARE s FROM 'INSERT INTO t_order (user_id) VALUES (?)';
EXECUTE IMMEDIATE "REPLACE t_order (user_id) VALUES (1)";
EXPLAIN INSERT INTO t_order (user_id) VALUES (1);
TRACE INSERT INTO t_order (user_id) VALUES (1);
WITH old AS (SELECT 1 AS u) INSERT INTO t_order (user_id) SELECT u FROM old;

LOAD DATA LOCAL INFILE 'orders.csv' INTO TABLE t_order FIELDS TERMINATED BY ',' (user_id, note);
LOAD DATA INFILE 'orders.csv' INTO TABLE t_order (`order_id`, user_id);
LOAD DATA INFILE 'orders.csv' INTO TABLE t_order (user_id) SET order_id = user_id * 2;
LOAD XML INFILE 'orders.xml' INTO TABLE app.t_order;

UPDATE t_order SET order_id = 1 WHERE user_id = 2;
UPDATE t_order o JOIN t_user u ON o.user_id = u.id SET u.order_id = 1, o.note = 'x';
UPDATE t_order o, t_user u SET o.`order_id` = u.id;
INSERT INTO t_order (order_id, user_id) VALUES (1, 2) ON DUPLICATE KEY UPDATE order_id = LAST_INSERT_ID(order_id), user_id = 3;
INSERT INTO t_order (order_id, user_id) VALUES (1, 2) ON DUPLICATE KEY UPDATE order_id = 4;
