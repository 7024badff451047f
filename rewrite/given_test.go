package rewrite

import (
	"fmt"
	"strings"
	"testing"
)

func TestGiven_values(t *testing.T) {
	for _, tt := range []struct {
		text string
		want string // of each row, of the columns u and v
	}{
		{"INSERT INTO t (u, a, v) VALUES (1, 2, 'x'), (?, ?, ?)", "[1 x] [?0 ?2]"},
		{"INSERT INTO t (a, id, u) VALUES (f(?, 1), ?, (?)), ('(', 2, -5)", "[?2 -] [-5 -]"},
		{"INSERT INTO t (u, id) VALUES (NULL, 1), (DEFAULT, 1), (\\N, 1), (1 + 1, 1), (@u, 1), (?, 1)", "[<nil> -] [- -] [<nil> -] [- -] [- -] [?0 -]"},
		{"INSERT INTO t (U, `V`) VALUES ('a' 'b', 'it''s'), (18446744073709551615, 99999999999999999999999)", "[ab it's] [18446744073709551615 99999999999999999999999]"},
		{"INSERT INTO t (u, v) VALUES (TRUE, 0x41), (x'41', b'1'), (1.5, 1e3), (_latin1'a', DATE'2026-01-01')", "[1 -] [- -] [- -] [a -]"},
		{"INSERT INTO t (u, v) VALUES (" + strings.Repeat("9", 80) + ", -" + strings.Repeat("9", 80) + ")", "[" + strings.Repeat("9", 80) + " -]"},
		{"INSERT INTO t VALUES (1, 2, 3)", "[2 3]"},
		{"INSERT INTO t SET v = ?, a = ?, u = 5 ON DUPLICATE KEY UPDATE v = 1", "[5 ?0]"},
		{"INSERT INTO t (a) VALUES (1)", "[- -]"},
		{"INSERT INTO t () VALUES (), ()", "[- -] [- -]"},
		{"INSERT INTO t (u, a, v) VALUES (1, MATCH b, c AGAINST ('x'), 3), (1, 2, 3)", "[- -] [1 3]"},
		{"INSERT INTO t (u, id) VALUES (1)", ""}, // the server refuses the row
		{"INSERT INTO t (u, v) VALUES (1, 2) /* c */, (-- c\n3, /* c */ 4)", "[1 2] [3 4]"},
	} {
		plan, err := Parse(tt.text, Options{Table: func(_, _ string) *Table {
			return &Table{Key: "id", Recorded: []string{"u", "v"}, Columns: []string{"id", "u", "v"}}
		}})
		if err != nil {
			t.Errorf("%s: %v", tt.text, err)
			continue
		}
		have := ""
		in := &plan.Inserts[0]
		for row := range in.Rows {
			var cells [2]string
			for i := range cells {
				v := plan.Value(in, i, row)
				cells[i] = map[KeySource]string{Unknown: "-", Literal: fmt.Sprint(v.Literal), Argument: fmt.Sprint("?", v.Arg)}[v.From]
			}
			if row > 0 {
				have += " "
			}
			have += fmt.Sprint(cells)
		}
		if have != tt.want {
			t.Errorf("%s\nhave: %s\nwant: %s", tt.text, have, tt.want)
		}
	}
}
