CREATE TABLE attributes (id BIGINT, x INT);
INSERT IGNORE INTO t_order (user_id) SELECT id FROM attributes;
ALTER TABLE attributes ADD y INT;
