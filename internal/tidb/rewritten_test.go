package tidb

import (
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/rewrite"
)

// TestRun_refusesOtherArguments: the arguments that [rewrite.Plan.Bind] returned are compared with the trees.
func TestRun_refusesOtherArguments(t *testing.T) {
	opts := rewrite.Options{ReportKeys: true, Table: func(_, name string) *rewrite.Table { return &rewrite.Table{Key: "id"} }}
	const (
		added = "INSERT INTO t (a, b) VALUES (?, ?), (?, ?)"
		bound = "INSERT INTO t (a, id) VALUES (?, ?), (?, NULL)"
		none  = "INSERT INTO t (id, a) VALUES (?, ?), (?, ?)"
		one   = "INSERT INTO t (a, id) SELECT ?, ?"
		query = "INSERT INTO t (a) SELECT ? FROM u WHERE b = ?"
		limit = "INSERT INTO t (a) SELECT a FROM u WHERE b = ? LIMIT ?"
	)
	args := func(c *check) []int { return c.args }
	asked := func(c *check) []int { return c.asked }
	swap := func(i, j int, of func(*check) []int) func(*check) {
		return func(c *check) { of(c)[i], of(c)[j] = of(c)[j], of(c)[i] }
	}
	for name, tt := range map[string]struct {
		text  string
		plant func(*check)
	}{
		"a key before its row":                      {added, func(c *check) { c.args = []int{key, 1, 2, key, 3, 4} }},
		"swapped arguments of a row":                {added, swap(0, 1, args)},
		"swapped arguments of two rows":             {added, swap(0, 3, args)},
		"a lost key":                                {added, func(c *check) { c.args = []int{1, 2, 3, 4, key} }},
		"a lost argument":                           {added, func(c *check) { c.args = c.args[:5] }},
		"an argument too many":                      {added, func(c *check) { c.args = append(c.args, 5) }},
		"a key instead of an argument":              {bound, func(c *check) { c.args[1] = key }},
		"an argument that keeps its place":          {bound, func(c *check) { c.asked[1] = 2 }},
		"a key instead of the wrong argument":       {bound, swap(0, 1, asked)},
		"swapped arguments without added keys":      {none, swap(1, 3, args)},
		"a key for another row":                     {none, func(c *check) { c.asked[1], c.asked[2] = key, 3 }},
		"a key that doesn't replace its argument":   {none, func(c *check) { c.asked = []int{key, 1, 2, key, 3, 4} }},
		"swapped arguments of a query of one row":   {one, swap(0, 1, args)},
		"the wrong argument of a query of one row":  {one, swap(0, 1, asked)},
		"swapped arguments of a query":              {query, func(c *check) { swap(0, len(c.args)-1, args)(c) }},
		"swapped arguments with LIMIT":              {limit, func(c *check) { swap(len(c.args)-2, len(c.args)-1, args)(c) }},
		"an argument of a query in front of a key":  {query, func(c *check) { swap(1, len(c.args)-1, args)(c) }},
		"an argument of a query behind another key": {query, func(c *check) { swap(0, 1, args)(c) }},
	} {
		t.Run(name, func(t *testing.T) {
			plan := must.Get(rewrite.Parse(tt.text, opts))(t)
			c := newCheck(tt.text, opts, plan, nil)
			defer c.release()
			c.bind()
			must.Do(t, c.run())
			c = newCheck(tt.text, opts, plan, nil)
			defer c.release()
			c.bind()
			tt.plant(c)
			err := c.run()
			must.Is(t, err, rewrite.ErrUnsupportedStatement)
			must.FailWith(t, err, "table t:")
		})
	}
}
