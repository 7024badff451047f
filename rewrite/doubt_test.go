package rewrite

import (
	"errors"
	"strings"
	"testing"
)

// What servers read differently is refused, if it is or may be in an INSERT into a sharded table. t
// is sharded by a, free isn't sharded.
func TestParse_whatServersReadDifferently(t *testing.T) {
	const refused, passes, keys = "refused", "passes", "keys"
	for _, c := range []struct{ query, want string }{
		// A number whose exponent has no digits.
		{"INSERT INTO t (id, s) VALUES (0, 4.5e-- 1), (0, 3\n), (0, 5)", refused},
		{"INSERT INTO t (id, s) VALUES (0, .5E-- 1), (3, 4\n)", refused},
		{"INSERT INTO t (id, s) VALUES (0, 5.e--\t1)\n)", refused},
		{"SELECT 4.5e-- 1; INSERT INTO t (id, s) VALUES (0, 7)\n", refused},
		{"INSERT INTO free (s) VALUES (4.5e-- 1); INSERT INTO t (s) VALUES (6)\n; SELECT 1", refused},
		{"INSERT INTO free (s) VALUES (4.5e-- 1)\n)", passes},
		{"INSERT INTO t (id, s) VALUES (4.5e(1), 1)", refused},
		{"INSERT INTO t (a, s) VALUES (4.5e(1), 1)", refused},
		{"SELECT 4.5e(1); INSERT INTO t (a) VALUES (1)", refused},
		{"INSERT INTO t (a, s) VALUES (4.5e5, 4.5e-3-- 1\n), (1.5, 0x5e-- 1\n)", keys},
		// A string in dollar signs.
		{"CREATE FUNCTION f() RETURNS INT LANGUAGE JAVASCRIPT AS $$ it's $$; INSERT INTO t (a) VALUES (1) -- '", refused},
		{"SELECT $x$ ' $x$; INSERT INTO t (a) VALUES (1) -- '", refused},
		{"CREATE FUNCTION f() RETURNS INT LANGUAGE JAVASCRIPT AS $$ return 't' $$", passes},
		{"INSERT INTO t (a, $b, c$d, `$e$`) VALUES (1, 2, 3, 4)", keys},
		// Names of columns and tables.
		{"INSERT INTO t (İd, a) VALUES (1, 2)", refused},
		{"INSERT INTO t (`ıd`, a) VALUES (1, 2)", refused},
		{"INSERT INTO t SET `İd` = 4, a = 1", refused},
		{"INSERT INTO t (a, ſ) VALUES (1, 2)", keys},
		{"INSERT INTO kt (uſer, a) VALUES (1, 2)", refused},
		{"INSERT INTO `ıkt` (a) VALUES (1)", refused},
		{"INSERT INTO kt (user, a) VALUES (1, 2) ON DUPLICATE KEY UPDATE uſer = 5", refused},
		{"INSERT INTO kt (user, größe) VALUES (1, 2) ON DUPLICATE KEY UPDATE größe = 5", keys},
		{"INSERT INTO kt (uſer) SELECT 1", refused},
		{"INSERT INTO kt (İd) SELECT 1", refused},
		{"INSERT INTO kt (user) SELECT 1", keys},
		{"LOAD DATA INFILE 'f' INTO TABLE t (`İd`, a)", refused},
		{"INSERT INTO t (`id\xc3`, a) VALUES (1, 2)", refused},
	} {
		tables := func(_, name string) *Table {
			switch strings.ToLower(name) {
			case "t":
				return &Table{Key: "id", Recorded: []string{"a"}}
			case "ikt":
				return &Table{Key: "id"}
			case "kt":
				return &Table{Key: "id", Recorded: []string{"user"}, Fixed: []string{"user"}}
			}
			return nil
		}
		p, err := Parse(c.query, Options{Table: tables})
		have := passes
		switch {
		case errors.Is(err, ErrUnsupportedStatement):
			have = refused
		case err != nil:
			have = err.Error()
		case len(p.Inserts) > 0:
			have = keys
		}
		if have != c.want {
			t.Errorf("%q\nhave: %s (%v)\nwant: %s", c.query, have, err, c.want)
		}
	}
}
