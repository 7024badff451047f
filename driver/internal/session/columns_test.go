package session

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The names of columns are bounded in bytes, all together.
func TestTables_bytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := slices.Repeat([]string{strings.Repeat("0", 60)}, 300)
		var c tables
		for i := range 2000 {
			c.putNames(Table{name: fmt.Sprint("t_", i)}, names)
			if c.bytes > maxNamesBytes+100_000 {
				t.Fatalf("%d bytes after %d tables", c.bytes, i)
			}
		}
		last := Table{name: "t_1999"}
		if have := c.names(last); !slices.Equal(have, names) {
			t.Errorf("the last table's columns\nhave: %d\nwant: 300", len(have))
		}
		if c.clear(); c.names(last) != nil || c.bytes != 0 {
			t.Error("something is left")
		}
	})
}

// Names that were read again and are the same share their memory with the plans that have
// them.
func TestTables_namesReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c tables
		of := Table{schema: "app", name: "t"}
		first := c.putNames(of, []string{"id", "a"})
		time.Sleep(maxNamesAge)
		if c.names(of) == nil {
			t.Error("have: too old\nwant: the names")
		}
		if time.Sleep(time.Nanosecond); c.names(of) != nil {
			t.Error("have: the names\nwant: too old")
		}
		if again := c.putNames(of, []string{"id", "a"}); &again[0] != &first[0] {
			t.Error("have: other memory\nwant: the same")
		}
		changed := c.putNames(of, []string{"id", "b"})
		if changed[1] != "b" || c.names(of)[1] != "b" || c.bytes != sizeOf(changed) {
			t.Errorf("have: %q, %d bytes", c.names(of), c.bytes)
		}
		if c.expire(of); c.names(of) != nil {
			t.Error("have: the names\nwant: expired")
		}
	})
}

// A column is one for all sessions, until there are too many tables.
func TestTables_columns(t *testing.T) {
	var c tables
	id := c.column("", "t", "id")
	for _, table := range []string{"t", "u"} {
		for _, name := range []string{"id", "user_id"} {
			for _, schema := range []string{"", "app"} {
				same := table == "t" && name == "id" && schema == ""
				have := c.column(schema, table, name)
				if have != c.column(schema, table, name) || (have == id) != same {
					t.Errorf("%s.%s.%s\nhave: another column", schema, table, name)
				}
			}
		}
	}
	id.known.Store(&ColumnFacts{})
	if c.clear(); id.Known() != nil || c.column("", "t", "id") != id {
		t.Error("have: still known\nwant: the same column, to be asked again")
	}
	for i := range 2 * maxTables {
		c.column("", fmt.Sprint("t_", i), "id")
		if len(c.known) > maxTables {
			t.Fatalf("%d tables", len(c.known))
		}
	}
}
