package facts

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/test/cases"
	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/rewrite"
)

var errLost = errors.New("the connection is lost")

// scripted is a server that answers queries by their beginning, with rows or an error.
type scripted struct {
	answers map[string]any
	asked   []string
	lists   bool // it has an information_schema
	own     bool // the session may have temporary tables
}

func (s *scripted) Rows(_ context.Context, query string, each func([]driver.Value)) error {
	s.asked = append(s.asked, query)
	for begin, answer := range s.answers {
		if !strings.HasPrefix(query, begin) {
			continue
		}
		if err, ok := answer.(error); ok {
			return err
		}
		for _, row := range answer.([][]driver.Value) {
			each(row)
		}
	}
	return nil
}

func (s *scripted) IsFatal(_ context.Context, err error) bool { return errors.Is(err, errLost) }
func (s *scripted) ShowsTables(context.Context) (bool, error) { return s.lists, nil }
func (s *scripted) HasOwnTables() bool                        { return s.own }
func (s *scripted) Assumes(Name) bool                         { return false }
func (s *scripted) TimeZones() []*time.Location               { return nil }

var errServer = &mysql.MySQLError{Number: 1104}

// rows of a listing
var (
	aTable  = []driver.Value{"1", "BASE TABLE", nil, nil, nil, nil, nil}
	aView   = []driver.Value{"1", "VIEW", nil, nil, nil, nil, nil}
	aKey    = []driver.Value{"2", "id", "bigint(20)", nil, "NO", "PRI", ""}
	aBigKey = []driver.Value{"2", "ID", []byte("bigint unsigned"), nil, "NO", "PRI", "auto_increment"}
	another = []driver.Value{"2", "n", "int", nil, "NO", "UNI", "auto_increment"}
	setsKey = []driver.Value{"3", "BEFORE", "INSERT", "SET NEW.id = 1", nil, nil, nil}
	reads   = []driver.Value{"3", "AFTER", "UPDATE", "DO LAST_INSERT_ID()", nil, nil, nil}
)

func TestLearn_facts(t *testing.T) {
	list := func(rows ...[]driver.Value) map[string]any { return map[string]any{"(SELECT CAST(1": rows} }
	shown := func(row ...driver.Value) map[string]any { return map[string]any{"SHOW FULL": [][]driver.Value{row}} }
	for _, c := range []struct {
		name string
		scripted
		want       string // of the key column
		remembered bool
	}{
		{"plain", scripted{answers: list(aTable, aKey), lists: true}, "1 plain", true},
		{"AUTO_INCREMENT", scripted{answers: list(aTable, aBigKey), lists: true}, "bigint unsigned plain auto", true},
		{"another", scripted{answers: list(aTable, aKey, another), lists: true}, "other", true},
		{"a trigger", scripted{answers: list(aTable, aKey, setsKey), lists: true}, "triggers triggered", true},
		{"a trigger that reads", scripted{answers: list(aTable, aKey, reads), lists: true}, "triggers reads", true},
		{"a view", scripted{answers: list(aView, aKey), lists: true}, "triggers triggered may", true},
		{"no such table", scripted{answers: list(), lists: true}, "triggers triggered may", false},
		{"not answered", scripted{answers: map[string]any{"(SELECT CAST(1": errServer}, lists: true}, "triggers triggered may", false},
		{"without a key", scripted{answers: list(aTable, another), lists: true}, "other", true},
		{"another server", scripted{answers: shown("id", "bigint", nil, "NO")}, "plain", true},
		{"another server's triggers", scripted{answers: map[string]any{
			"SHOW TRIGGERS": [][]driver.Value{{"x", "INSERT", "t", "SET NEW.id = 1", "BEFORE"}},
		}}, "triggers triggered", true},
		{"a server without answers", scripted{answers: map[string]any{"SHOW": errServer}}, "plain", true},
		{"a missing table elsewhere", scripted{answers: map[string]any{"SHOW FULL": &mysql.MySQLError{Number: 1146}}}, "triggers triggered may", false},
		{"an own table", scripted{answers: map[string]any{
			"(SELECT CAST(1": [][]driver.Value{aTable, aKey}, "SHOW FULL": [][]driver.Value{{"id", "int", nil, "NO"}},
		}, lists: true, own: true}, "int may", true},
		{"no own table", scripted{answers: map[string]any{
			"(SELECT CAST(1": [][]driver.Value{aTable, aKey}, "SHOW FULL": [][]driver.Value{{"id", "bigint(20)", nil, "NO"}},
		}, lists: true, own: true}, "1 plain", true},
		{"an unreadable answer", scripted{answers: map[string]any{
			"(SELECT CAST(1": [][]driver.Value{aTable, aKey}, "SHOW FULL": [][]driver.Value{{"id", "bigint@0028", nil, "NO"}},
		}, lists: true, own: true}, "triggers triggered may", false},
	} {
		e := new(Store).Entry(Name{"app", "t"})
		known := must.Get(Learn(t.Context(), &c.scripted, e, "", "t"))(t)
		have := known.Column("id").describe()
		for _, word := range strings.Fields(c.want) {
			if word != "1" && !strings.Contains(" "+have+" ", " "+word+" ") {
				t.Errorf("%s\nhave: %s\nwant: %s", c.name, have, c.want)
			}
		}
		must.Equal(t, len(strings.Fields(strings.ReplaceAll(have, "bigint(20) ", "1 "))) >= len(strings.Fields(c.want)), true, c.name)
		must.Equal(t, e.Table() != nil, c.remembered, c.name, "remembered")
		must.Equal(t, strings.Contains(have, "plain"), strings.Contains(c.want, "plain"), c.name)
	}
}

// describe returns the facts in words.
func (c *Column) describe() string {
	words := []string{c.Text}
	for _, f := range []struct {
		is   bool
		word string
	}{
		{c.Plain, "plain"}, {c.AutoIncrement, "auto"}, {c.OtherHasAutoIncrement, "other"}, {c.MayHaveOther, "may"},
		{c.HasTriggers, "triggers"}, {c.Triggered, "triggered"}, {c.ReadsLastID, "reads"},
	} {
		if f.is {
			words = append(words, f.word)
		}
	}
	return strings.Join(words, " ")
}

// A lost connection is an error, and nothing is remembered.
func TestLearn_lostConnection(t *testing.T) {
	for _, lists := range []bool{true, false} {
		e := new(Store).Entry(Name{"app", "t"})
		s := &scripted{answers: map[string]any{"": errLost}, lists: lists}
		_, err := Learn(t.Context(), s, e, "", "t")
		must.Is(t, err, errLost)
		if e.Table() != nil {
			t.Error("have: facts")
		}
	}
}

// Facts are used for ten seconds. From eight on, one caller asks again while the others use them.
func TestEntry_age(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := new(Store).Entry(Name{"app", "t"})
		put := func() {
			e.Put(&Table{Reading: e.Begin()})
			e.PutNames([]string{"id"}, e.Begin())
		}
		put()
		known := func() (n int) {
			for range 3 {
				if e.Table() != nil {
					n++
				}
				if e.Names() != nil {
					n++
				}
			}
			return n
		}
		for _, c := range []struct {
			after time.Duration
			want  int
		}{{0, 6}, {dueAge - 1, 6}, {1, 4}, {0, 6}, {MaxAge - dueAge - 1, 6}, {1, 0}, {time.Hour, 0}} {
			time.Sleep(c.after)
			synctest.Wait()
			must.Equal(t, known(), c.want, c.after)
		}
		put()
		must.Equal(t, known(), 6)
		e.Forget()
		must.Equal(t, known(), 0, "forgotten")
	})
}

// Facts that were queried before a statement altered the table aren't stored after it.
func TestStore_alteredMeanwhile(t *testing.T) {
	shared := new(Store)
	own := shared.Own()
	for _, c := range []struct {
		in     *Store
		forget func()
		stored bool
	}{
		{shared, shared.Forget, false}, {shared, own.ForgetShared, false}, {own, shared.Forget, false}, {own, own.Forget, false},
		{shared, own.Forget, true},
	} {
		e := c.in.Entry(Name{"app", "t"})
		table := &Table{Reading: e.Begin()}
		c.forget()
		e.Put(table)
		must.Equal(t, e.Table() != nil, c.stored)
	}
}

// A copy has old facts too, but none of altered tables.
func TestStore_copy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(Store)
		e := s.Entry(Name{"app", "t"})
		e.Put(&Table{Reading: e.Begin(), Versioned: true})
		e.PutNames([]string{"id"}, e.Begin())
		time.Sleep(time.Hour)
		var to, none Store
		s.CopyTo(&to)
		if own := to.Entry(Name{"app", "t"}); own.Table() == nil || !own.Table().Versioned || own.Names() == nil {
			t.Error("have: no facts")
		}
		s.Forget()
		s.CopyTo(&none)
		if own := none.Entry(Name{"app", "t"}); own.Table() != nil || own.Names() != nil {
			t.Error("have: facts of an altered table")
		}
	})
}

func TestStore_limit(t *testing.T) {
	var s Store
	for i := range 2 * maxTables {
		s.Entry(Name{"app", fmt.Sprint("t_", i)})
		if len(s.tables) > maxTables {
			t.Fatalf("%d tables", len(s.tables))
		}
	}
}

func TestColumn_unfit(t *testing.T) {
	for typ, want := range map[string]int{"tinyint": 1, "bigint": -1, "varchar(2)": 1, "enum('x')": 0, "": -1} {
		c := &Column{}
		c.setType(typ)
		must.Equal(t, c.Unfit(&rewrite.Keys{Ints: []int64{1, 128}}), want, typ)
		must.Equal(t, c.Unfit(&rewrite.Keys{Values: []any{"1", "128"}}), want, typ)
	}
}

func TestStoredTime_formsOfMySQL(t *testing.T) {
	for _, c := range cases.Read(t, "testdata/times.txt", 2) {
		have := ""
		if at, ok := storedTime(c[1]); ok {
			have = at.Format(time.RFC3339Nano)
		}
		must.Equal(t, have, c[0], c[1])
	}
}
