package rewrite

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// updateOptions read UPDATEs of the tables t and s, whose columns u and v are fixed.
func updateOptions() Options {
	tables := func(_, name string) *Table {
		if !strings.EqualFold(name, "t") && !strings.EqualFold(name, "s") {
			return nil
		}
		return &Table{KeyColumn: "id", Kind: KindInteger, Fixed: []string{"u", "v"}, Columns: []string{"id", "u", "v"}}
	}
	return Options{Charset: CharsetUTF8, Tables: tables, Updates: tables}
}

// shownUpdates are what a text assigns to columns that are fixed: - for one that is
// left alone, ! for an expression, # for a literal that only the server understands.
func shownUpdates(p *Plan) string {
	var all []string
	for i := range p.Updates {
		u := &p.Updates[i]
		have := u.Name
		if u.Schema != "" {
			have = u.Schema + "." + have
		}
		for c := range u.Table.Fixed {
			kind, param, value := p.Set(u, c)
			have += " " + [...]string{"#", fmt.Sprint(value), fmt.Sprint("?", param), "!", "-"}[kind]
		}
		all = append(all, have)
	}
	return strings.Join(all, ", ")
}

func TestUpdates_read(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"UPDATE t SET u = 1", "t 1 -"},
		{"UPDATE t SET a = 1 WHERE u = 2", ""},
		{"UPDATE x SET u = 1", ""},
		{"update `t` set `U`=?, a=? where id=?", "t ?0 -"},
		{"UPDATE t SET a=?, v=?, u=? WHERE id=?", "t ?2 ?1"},
		{"UPDATE app.t SET app.t.u = 'x'", "app.t x -"},
		{"UPDATE LOW_PRIORITY IGNORE t PARTITION (p0, p1) AS o SET o.u = NULL, v = (5) ORDER BY id LIMIT 1", "t <nil> 5"},
		{"UPDATE t o SET o.u = o.u, v = t.v", ""},
		{"UPDATE t SET u = (u), v = `t`.`v` WHERE a = 1", ""},
		{"UPDATE t SET u = LAST_INSERT_ID(u)", ""},
		{"UPDATE t SET u = v, v = u + 1", "t ! !"},
		{"UPDATE t SET u = DEFAULT, v = (SELECT MAX(v) FROM s)", "t ! !"},
		{"UPDATE t SET u = -1, v = 0x41", "t -1 #"},
		{"UPDATE t SET u = DATE '2026-02-03', v = TIMESTAMP'2026-02-03 00:00:00'", "t 2026-02-03 2026-02-03 00:00:00"},
		{"UPDATE t SET u = COALESCE(?, u), v = IF(1, 2, 3)", "t ! !"},
		{"UPDATE t SET u := ? WHERE a = 'it''s; UPDATE t'", "t ?0 -"},
		{"UPDATE /* c */ t -- c\nSET u = /* c */ 8 # c", "t 8 -"},
		{"/* trace */ UPDATE t SET u = 8;", "t 8 -"},
		{"/*! UPDATE t SET u = ? */", "t ?0 -"},
		{"UPDATE t, JSON_TABLE('[1]', '$[*]' COLUMNS (u INT PATH '$')) AS j SET t.u = 1, j.u = ?", "t 1 -"},
		// Several tables.
		{"UPDATE t, s SET t.u = 1, s.v = 2", "t 1 -, s - 2"},
		{"UPDATE x JOIN t ON x.id = t.id SET x.u = 1, a = 2", ""},
		{"UPDATE x JOIN t ON x.id = t.id SET u = 1", "t 1 -"},
		{"UPDATE x AS y LEFT JOIN (t AS o) USING (id) SET o.u = y.u, o.v = o.v", "t ! -"},
		{"UPDATE t o INNER JOIN t p ON o.id = p.id AND o.a = ? SET p.u = ?", "t ?1 -"},
		{"UPDATE t, (SELECT u FROM s WHERE v = ?) AS q SET t.u = ?, q.u = 3", "t ?1 -"},
		{"UPDATE t STRAIGHT_JOIN s SET t.u = s.u", "t ! -"},
		{"UPDATE t o, x SET t.u = 1", ""}, // the server knows it by its alias alone
		// In other statements.
		{"WITH q AS (SELECT ? AS n) UPDATE t, q SET t.u = ? WHERE t.id = q.n", "t ?1 -"},
		{"WITH q AS (SELECT 1) SELECT * FROM t, q FOR UPDATE", ""},
		{"SELECT u FROM t FOR UPDATE", ""},
		{"EXPLAIN UPDATE t SET u = 1", ""},
		{"ANALYZE UPDATE t SET u = 1", "t 1 -"},
		{"SET STATEMENT max_statement_time = 1 FOR UPDATE t SET u = 1", "t 1 -"},
		{"SELECT ?; UPDATE t SET u = ?; UPDATE s SET v = ? WHERE a = ?; SELECT 1", "t ?1 -, s - ?2"},
		{"INSERT INTO x VALUES (?); UPDATE t SET u = ?", "t ?1 -"},
		{"INSERT INTO t (u) VALUES (?); UPDATE t SET u = ?", "t ?1 -"},
		{"UPDATE t SET u = ?; INSERT INTO t (u) VALUES (?)", "t ?0 -"},
		{"CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW UPDATE t SET u = 1", ""},
		// ON DUPLICATE KEY UPDATE.
		{"INSERT INTO t (id, u) VALUES (1, 2) ON DUPLICATE KEY UPDATE u = 3", "t 3 -"},
		{"INSERT INTO t (id, u) VALUES (?, ?) ON DUPLICATE KEY UPDATE a = ?, v = ? RETURNING id", "t - ?3"},
		{"INSERT INTO t (id, u) VALUES (1, 2) ON DUPLICATE KEY UPDATE u = VALUES(u), v = VALUES(`t`.`v`), a = 1", ""},
		{"INSERT INTO t (id, u) VALUES (1, 2) ON DUPLICATE KEY UPDATE u = VALUE(u), v = v", ""},
		{"INSERT INTO t (id, u) VALUES (1, 2) ON DUPLICATE KEY UPDATE u = VALUES(v)", "t ! -"},
		{"INSERT INTO t (id, u) VALUES (1, 2) ON DUPLICATE KEY UPDATE u = u + 1", "t ! -"},
		{"INSERT INTO t (id, u) VALUES (1, 2) AS new ON DUPLICATE KEY UPDATE u = new.u, v = new.id", "t - !"},
		{"INSERT INTO t (id, u) VALUES (1, 2) AS new (a, b) ON DUPLICATE KEY UPDATE u = b, v = new.b", "t - !"},
		{"INSERT INTO t VALUES (1, 2, 3) AS n(a, b, c) ON DUPLICATE KEY UPDATE u = n.b, v = c", ""},
		{"INSERT INTO t SET u = 1 ON DUPLICATE KEY UPDATE u = 1 + 1", "t ! -"},
		{"INSERT INTO t (id, u) SELECT 1, 2 ON DUPLICATE KEY UPDATE u = VALUES(u), v = 4", "t - 4"},
		{"INSERT INTO x (id, u) VALUES (1, 2) ON DUPLICATE KEY UPDATE u = 3", ""},
		// No UPDATE that a server takes.
		{"UPDATE", ""}, {"UPDATE t", ""}, {"UPDATE t SET", ""}, {"UPDATE t SET u", ""}, {"UPDATE t SET u =", ""}, {"UPDATE t SET u = 'x", ""}, {"UPDATE t SET u = ; SELECT 1", ""},
		{"UPDATE (t SET u = 1", "t 1 -"},
	} {
		plan, err := Parse(tt.text, updateOptions())
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		if have := shownUpdates(plan); have != tt.want {
			t.Errorf("%s\nhave: %s\nwant: %s", tt.text, have, tt.want)
		}
		if class := Classify(tt.text); len(plan.Updates) > 0 && !class.MustParse() && !MayUpdate(tt.text, class) {
			t.Errorf("%s\nhave: MayUpdate false\nwant: true", tt.text)
		}
	}
}

func TestUpdateTarget_names(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"UPDATE t SET u = 1", " t true"},
		{"/* c */ update `a`.`t`  set u = 1", "a t true"},
		{"UPDATE a.t\nSET u = 1", "a t true"},
		{"UPDATE t o SET u = 1", "false"},
		{"UPDATE IGNORE t SET u = 1", "false"},
		{"UPDATE `a``b` SET u = 1", "false"},
		{"UPDATE t, s SET u = 1", "false"},
		{"UPDATE tä SET u = 1", "false"},
		{"UPDATE", "false"}, {"UPDATE `", "false"}, {"UPDATE t.", "false"}, {"SELECT 1", "false"}, {"", "false"},
	} {
		schema, name, ok := UpdateTarget(tt.text)
		have := fmt.Sprint(schema, " ", name, " ", ok)
		if !ok {
			have = "false"
		}
		if have != tt.want {
			t.Errorf("%s\nhave: %s\nwant: %s", tt.text, have, tt.want)
		}
	}
}

// Random texts, right and wrong, are read to their end, and what UpdateTarget names
// is the table that is read.
func TestUpdates_randomTexts(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 4))
	words := strings.Fields("UPDATE UPDATE t s x app . `t` SET SET u v a = = := ? ? 1 -1 'x' NULL , ; ( ) AS o JOIN ON WHERE AND /*c*/ -- VALUES DUPLICATE KEY WITH SELECT INSERT INTO DEFAULT `")
	for range 20_000 {
		text := "UPDATE"
		for range r.IntN(14) {
			text += " " + words[r.IntN(len(words))]
		}
		plan, err := Parse(text, updateOptions())
		if err != nil {
			continue
		}
		if schema, name, ok := UpdateTarget(text); ok && len(plan.Updates) > 0 && plan.Updates[0].Schema+"."+plan.Updates[0].Name != schema+"."+name {
			t.Fatalf("%s\nhave: %s\nwant: %s.%s", text, shownUpdates(plan), schema, name)
		}
	}
}
