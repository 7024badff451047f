INSERT INTO "t_order" (user_id) VALUES (1);
INSERT INTO "app"."t_order" (user_id) VALUES (1);
INSERT INTO t_order (user_id) VALUES ("t_order");
