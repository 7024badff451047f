package rewrite

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/cases"
	"github.com/shardkey/shardkey/internal/test/must"
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
	for _, c := range cases.Read(t, "testdata/updates.txt", 2) {
		want, text := c[0], c[1]
		plan := must.Get(Parse(text, updateOptions()))(t, text)
		must.Equal(t, shownUpdates(plan), want, text)
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
