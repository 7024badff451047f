package session

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// The names of columns are used for a while.
func TestTables_namesReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c tables
		of := Table{schema: "app", name: "t"}
		c.putNames(of, []string{"id", "a"})
		time.Sleep(maxNamesAge)
		if c.names(of) == nil {
			t.Error("have: too old\nwant: the names")
		}
		if time.Sleep(time.Nanosecond); c.names(of) != nil {
			t.Error("have: the names\nwant: too old")
		}
		if c.putNames(of, []string{"id", "b"}); c.names(of)[1] != "b" {
			t.Errorf("have: %q", c.names(of))
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
