package rewrite

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// updateOptions read upserts of the tables t and s, whose columns u and v are fixed.
func updateOptions() Options {
	tables := func(_, name string) *Table {
		if !strings.EqualFold(name, "t") && !strings.EqualFold(name, "s") {
			return nil
		}
		return &Table{Key: "id", Fixed: []string{"u", "v"}, Columns: []string{"id", "u", "v"}}
	}
	return Options{Table: tables}
}

// shownUpdates shows the assignments to fixed columns: - for an unchanged column, ! for an
// expression, and # for a literal that only the server understands.
func shownUpdates(p *Plan) string {
	var all []string
	for i := range p.Updates {
		u := &p.Updates[i]
		have := u.Name
		if u.Schema != "" {
			have = u.Schema + "." + have
		}
		for c := range u.Table.Fixed {
			v, ok := p.Assigned(u, c)
			if !ok {
				have += " -"
				continue
			}
			have += " " + map[KeySource]string{Unknown: "#", Literal: fmt.Sprint(v.Literal), Argument: fmt.Sprint("?", v.Arg), Expression: "!"}[v.From]
		}
		all = append(all, have)
	}
	return strings.Join(all, ", ")
}

func TestUpdates_read(t *testing.T) {
	const set = "INSERT INTO t (id, u) VALUES (1, 2) ON DUPLICATE KEY UPDATE "
	for _, tt := range []struct{ text, want string }{
		{"UPDATE t SET u = 1", ""},
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
		{set + "u = NULL, v = (5)", "t <nil> 5"},
		{set + "u = 'x', v = ?", "t x ?0"},
		{set + "u = (u), v = `t`.`v`", ""},
		{set + "u = LAST_INSERT_ID(u)", ""},
		{set + "u = DEFAULT, v = (SELECT MAX(v) FROM s)", "t ! !"},
		{set + "u = -1, v = 0x41", "t -1 #"},
		{set + "u = DATE '2026-02-03', v = TIMESTAMP'2026-02-03 00:00:00'", "t # #"},
		{set + "u = COALESCE(?, u), v = IF(1, 2, 3)", "t ! !"},
		{set + "/* c */ U = /* c */ 8 # c", "t 8 -"},
		{set + "a = 'u = 1'", ""},
		{set + "u = `u`, v = t + v", "t - !"},
		{set + "u = t.u.u, v = .v", "t ! !"},
		{"INSERT INTO t (id) VALUES (1) AS new (a, b) ON DUPLICATE KEY UPDATE u = b", "t ! -"},
		{"INSERT INTO t (id, u) VALUES (1, 2) AS new (a, b) ON DUPLICATE KEY UPDATE u = new.u", "t ! -"},
		{"INSERT INTO t (id, u) VALUES (1, 2) AS new ON DUPLICATE KEY UPDATE u = u, v = new.v", ""},
		{"INSERT INTO t (id, u) VALUES (1, 2) AS new ON DUPLICATE KEY UPDATE u = other.u", "t ! -"},
	} {
		plan, err := Parse(tt.text, updateOptions())
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		if have := shownUpdates(plan); have != tt.want {
			t.Errorf("%s\nhave: %s\nwant: %s", tt.text, have, tt.want)
		}
	}
}

// Random upserts, right and wrong, are read to their end.
func TestUpdates_randomTexts(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 4))
	words := strings.Fields("t s x app . `t` SET u v a = = := ? ? 1 -1 'x' NULL , ; ( ) AS o /*c*/ -- VALUES LAST_INSERT_ID SELECT INSERT INTO DEFAULT `")
	read := 0
	for range 20_000 {
		text := "INSERT INTO t (u) VALUES (1) ON DUPLICATE KEY UPDATE u ="
		for range r.IntN(14) {
			text += " " + words[r.IntN(len(words))]
		}
		if plan, err := Parse(text, updateOptions()); err == nil {
			read += len(plan.Updates)
			_ = shownUpdates(plan)
		}
	}
	if read < 1000 {
		t.Errorf("have: %d upserts read\nwant: more", read)
	}
}
