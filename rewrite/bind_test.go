package rewrite

import (
	"database/sql/driver"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/sqltoken"
	"github.com/shardkey/shardkey/internal/test/must"
)

// TestBind_sendsWhatTheTextHas compares the arguments with the places of placeholders and keys in the
// text, for the golden statements and random ones: each value is where it was, and each key in its row.
func TestBind_sendsWhatTheTextHas(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	cases := GoldenCases(t)
	for range 3000 {
		cases = append(cases, GoldenCase{"random", randomInsert(r), Options{Table: shardedByA}})
	}
	bound := 0
	for _, c := range cases {
		c.Options.ReportKeys = r.IntN(2) == 0
		plan, err := Parse(c.Text, c.Options)
		if err != nil || plan.Insert == nil {
			continue
		}
		for _, literal := range []bool{false, true} {
			keys := randomKeys(r, plan.Insert)
			query, args, err := plan.Bind(nil, numbers(plan.NumArgs), keys, literal)
			must.Do(t, err, c.Text)
			have, want := named(args), naiveArgs(plan, keys, literal)
			if !slices.Equal(have, want) || CountPlaceholders(query, c.Options) != len(have) {
				t.Fatalf("%s\n%s\nasked: %v, literal: %v\nsent: %s\nhave: %v\nwant: %v", c.Title, c.Text, keys.Asked, literal, query, have, want)
			}
			bound += len(want) - plan.NumArgs
		}
	}
	must.Equal(t, bound > 3000, true, "bound keys:", bound)
}

// numbers are arguments from 1.
func numbers(n int) []driver.NamedValue {
	args := make([]driver.NamedValue, n)
	for i := range args {
		args[i] = driver.NamedValue{Ordinal: i + 1, Value: i + 1}
	}
	return args
}

// named returns the program's arguments as a1 and so on, and keys as k with their values.
func named(args []driver.NamedValue) (names []string) {
	for _, arg := range args {
		name := "a"
		if arg.Ordinal == isKey {
			name = "k"
		}
		names = append(names, fmt.Sprint(name, arg.Value))
	}
	return names
}

// randomKeys returns keys for a plan, with random rows that ask for one.
func randomKeys(r *rand.Rand, in *Insert) *Keys {
	k := &Keys{Counted: 2}
	for _, row := range in.Rows {
		k.Asked = append(k.Asked, row.Key == Argument && !in.Invalid && r.IntN(2) == 0)
	}
	for i := range len(in.Rows) + 2 {
		k.Ints = append(k.Ints, 101+int64(i))
	}
	return k
}

// naiveArgs returns the arguments of a plan's statement by the positions of its placeholders, the
// splices and the rows' keys.
func naiveArgs(p *Plan, keys *Keys, literal bool) (args []string) {
	isKey := map[int]bool{} // by position: a placeholder whose argument asks for a key
	for row, at := range p.Insert.places {
		if keys.Asked[row] {
			for pos := at.at; pos < at.end; pos++ {
				isKey[int(pos)] = true
			}
		}
	}
	ours := func(s Splice) int {
		if s.HasKey {
			return 1
		}
		return strings.Count(s.Before, "?")
	}
	var splices []Splice
	for s := range p.Splices() {
		if p.Insert.counts() || s.HasKey {
			splices = append(splices, s)
		}
	}
	values := p.naiveValues(keys)
	lx := sqltoken.NewLexer(p.text, p.mode, p.charset)
	program := 0
	for t := lx.Next(); ; t = lx.Next() {
		for len(splices) > 0 && (splices[0].At <= t.Start || t.Kind == sqltoken.EOF) {
			n := ours(splices[0])
			if splices = splices[1:]; !literal {
				args = append(args, values[:n]...)
			}
			values = values[n:]
		}
		switch {
		case t.Kind == sqltoken.EOF:
			return args
		case t.Kind != sqltoken.Param:
			continue
		}
		program++
		if isKey[t.Start] {
			args, values = append(args, values[0]), values[1:]
		} else {
			args = append(args, fmt.Sprint("a", program))
		}
	}
}

// naiveValues returns the keys in the order of their rows, or the values that count those of a query.
func (plan *Plan) naiveValues(keys *Keys) (values []string) {
	if plan.Insert.counts() {
		_, all, _ := plan.counted(keys, false)
		for _, v := range all {
			values = append(values, fmt.Sprint("k", v))
		}
		return values
	}
	for _, k := range keys.Ints {
		values = append(values, fmt.Sprint("k", k))
	}
	return values
}

// randomInsert returns an INSERT with arguments, comments and strings in any place.
func randomInsert(r *rand.Rand) string {
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	value := func() string {
		return pick("?", "?", "1", "'?'", "/* ? */ ?", "(?)", "IF(?, ?, 'x')", "\"?\"", "? -- ?\n", "`?` + ?")
	}
	key := func() string { return pick("?", "?", "NULL", "DEFAULT", "5", "(?)", "? /* ? */", "0", "? + 1", "@k") }
	update := pick("", "", " ON DUPLICATE KEY UPDATE a = ?, b = VALUES(b)", " ON DUPLICATE KEY UPDATE b = IF(?, '?', ?)")
	at := r.IntN(3) // the key's column; 2 for none
	columns := [][]string{{"id", "a", "b"}, {"a", "id", "b"}, {"a", "b"}}[at]
	row := func() (values []string) {
		for _, column := range columns {
			if column == "id" {
				values = append(values, key())
			} else {
				values = append(values, value())
			}
		}
		return values
	}
	verb := pick("INSERT INTO t", "INSERT IGNORE t", "/* ? */ INSERT INTO t")
	switch r.IntN(4) {
	case 0:
		var set []string
		for i, v := range row() {
			set = append(set, columns[i]+" = "+v)
		}
		return verb + " SET " + strings.Join(set, ", ") + update
	case 1:
		from := pick("", " FROM u WHERE c = ?", " FROM u WHERE c IN (?, '?') LIMIT ?", " FROM u LIMIT 1")
		return verb + " (" + strings.Join(columns, ", ") + ") SELECT " + strings.Join(row(), ", ") + from
	}
	var rows []string
	for range 1 + r.IntN(4) {
		rows = append(rows, "("+strings.Join(row(), ", ")+")")
	}
	return verb + " (" + strings.Join(columns, ", ") + ") VALUES " + strings.Join(rows, pick(", ", " , /* ? */ ")) + update
}
