package rewrite_test

import (
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/internal/tidb"
	"github.com/shardkey/shardkey/rewrite"
)

const (
	faultAbsent = "INSERT INTO t (a, s) VALUES (?, ?), (?, ?) ON DUPLICATE KEY UPDATE a = ?"
	faultGiven  = "INSERT INTO t (id, a) VALUES (NULL /* first */, ?), (?, ?), (7, ?)"
	faultOne    = "INSERT INTO t (a) VALUES (?) -- the end"
	faultQuery  = "INSERT INTO t (a) SELECT a FROM s WHERE b = ? ON DUPLICATE KEY UPDATE a = ?"
	faultOther  = "REPLACE INTO k (a) VALUES (?)"
	faultNone   = "INSERT INTO t VALUES (NULL, ?, 'x')"
)

// faultLong has more rows than the grammar reads.
var faultLong = "INSERT INTO t (id, a) VALUES (?, 0)" + strings.Repeat(", (NULL, ?)", 100) + ", (?, NULL), (NULL, ?)"

// faults are possible mistakes in a plan.
var faults = []struct {
	name, text string
	plant      func(p *rewrite.Plan, in *rewrite.Insert)
}{
	{"wrong table", faultOne, func(_ *rewrite.Plan, in *rewrite.Insert) { in.Name = "inv" }},
	{"wrong schema", faultOne, func(_ *rewrite.Plan, in *rewrite.Insert) { in.Schema = "other" }},
	{"wrong column in the rule's table", faultOne, func(_ *rewrite.Plan, in *rewrite.Insert) { in.Table = &rewrite.Table{Key: "uid"} }},
	{"wrong column in the text", faultOne, func(p *rewrite.Plan, in *rewrite.Insert) {
		in.SetHead(strings.Index(faultOne, ")"), ", `uid`")
	}},
	{"no column in the text", faultOne, func(p *rewrite.Plan, in *rewrite.Insert) { in.SetHead(-1, "") }},
	{"the column first", faultOne, func(p *rewrite.Plan, in *rewrite.Insert) {
		in.SetHead(strings.Index(faultOne, "(a")+1, "`id`, ")
	}},
	{"a value too many", faultAbsent, func(_ *rewrite.Plan, in *rewrite.Insert) { in.SetKeyPrefix(", 1, ") }},
	{"a value too few", faultAbsent, func(_ *rewrite.Plan, in *rewrite.Insert) { in.SetKeyPrefix(" + ") }},
	{"wrong number of values", faultAbsent, func(_ *rewrite.Plan, in *rewrite.Insert) { in.Invalid = true }},
	{"the key of a row before its end", faultOne, func(_ *rewrite.Plan, in *rewrite.Insert) {
		at := strings.Index(faultOne, "?")
		in.SetSlot(0, at, at)
		in.SetKeyPrefix("")
	}},
	{"the key in the place of another value", faultGiven, func(_ *rewrite.Plan, in *rewrite.Insert) {
		at := strings.Index(faultGiven, "?")
		in.SetSlot(0, at, at+1)
	}},
	{"the key in the comment", faultOne, func(_ *rewrite.Plan, in *rewrite.Insert) { in.SetSlot(0, len(faultOne), len(faultOne)) }},
	{"a key after the text", faultOne, func(_ *rewrite.Plan, in *rewrite.Insert) { in.SetSlot(0, 1000, 1000) }},
	{"keys in the wrong order", faultAbsent, func(_ *rewrite.Plan, in *rewrite.Insert) {
		first, second := strings.Index(faultAbsent, "),"), strings.LastIndex(faultAbsent, ")")
		in.SetSlot(0, second, second)
		in.SetSlot(1, first, first)
	}},
	{"lost comment", faultGiven, func(_ *rewrite.Plan, in *rewrite.Insert) {
		at := strings.Index(faultGiven, "NULL")
		in.SetSlot(0, at, strings.Index(faultGiven, ", ?"))
	}},
	{"lost comment in the text that is sent", faultOne, func(p *rewrite.Plan, _ *rewrite.Insert) {
		p.SetSent("INSERT INTO t (a, `id`) VALUES (?, ?)")
	}},
	{"another value in the text that is sent", faultNone, func(p *rewrite.Plan, _ *rewrite.Insert) {
		p.SetSent("INSERT INTO t VALUES (?, ?, 'y')")
	}},
	{"a statement more in the text that is sent", faultOne, func(p *rewrite.Plan, _ *rewrite.Insert) {
		p.SetSent("INSERT INTO t (a, `id`) VALUES (?, ?) -- the end\n; DELETE FROM t")
	}},
	{"swapped keys", faultGiven, func(_ *rewrite.Plan, in *rewrite.Insert) { in.Rows[1], in.Rows[2] = in.Rows[2], in.Rows[1] }},
	{"swapped arguments", faultGiven, func(_ *rewrite.Plan, in *rewrite.Insert) { in.Rows[1].Arg = 2 }},
	{"swapped places of arguments", "INSERT INTO t (id, a) VALUES (NULL, ?), (NULL, ?)", func(_ *rewrite.Plan, in *rewrite.Insert) { in.Rows[1].Arg = 0 }},
	{"a row too few", faultAbsent, func(_ *rewrite.Plan, in *rewrite.Insert) { in.DropRow() }},
	{"a row too few of a long text", faultLong, func(_ *rewrite.Plan, in *rewrite.Insert) { in.DropRow() }},
	{"swapped keys of a long text", faultLong, func(_ *rewrite.Plan, in *rewrite.Insert) { in.Rows[101], in.Rows[102] = in.Rows[102], in.Rows[101] }},
	{"swapped arguments of a long text", faultLong, func(_ *rewrite.Plan, in *rewrite.Insert) { in.Rows[101].Arg = 100 }},
	{"a placeholder too few", faultAbsent, func(p *rewrite.Plan, _ *rewrite.Insert) { p.NumArgs = 4 }},
	{"a placeholder too many", faultAbsent, func(p *rewrite.Plan, _ *rewrite.Insert) { p.NumArgs = 6 }},
	{"a lost insert", faultOther, func(p *rewrite.Plan, _ *rewrite.Insert) { p.Insert = nil }},
	{"an insert too many", "INSERT INTO free (a) VALUES (?)", func(p *rewrite.Plan, _ *rewrite.Insert) {
		p.Insert = &rewrite.Insert{Name: "free", Table: &rewrite.Table{Key: "id"}, Invalid: true}
	}},
	{"no REPLACE", faultOther, func(_ *rewrite.Plan, in *rewrite.Insert) { in.Replace = false }},
	{"IGNORE", faultOne, func(_ *rewrite.Plan, in *rewrite.Insert) { in.Ignore = true }},
	{"no ON DUPLICATE KEY UPDATE", faultAbsent, func(_ *rewrite.Plan, in *rewrite.Insert) { in.OnDuplicate = false }},
	{"RETURNING", faultOne, func(_ *rewrite.Plan, in *rewrite.Insert) { in.Returning = true }},
	{"wrong columns of the table", faultNone, func(_ *rewrite.Plan, in *rewrite.Insert) {
		of := *in.Table
		of.Columns, in.Table = []string{"a", "id", "s"}, &of
	}},
	{"another query", faultQuery, func(_ *rewrite.Plan, in *rewrite.Insert) { in.Select = "SELECT b FROM s" }},
	{"the key of a query at another place", faultQuery, func(p *rewrite.Plan, in *rewrite.Insert) { in.MoveKey(-len(" FROM s")) }},
	{"the key of a query behind its tables", faultQuery, func(p *rewrite.Plan, in *rewrite.Insert) { in.MoveKey(len(" FROM s")) }},
	{"a query of one row", faultQuery, func(p *rewrite.Plan, in *rewrite.Insert) {
		in.Rows, in.SelectKey = []rewrite.Row{{Key: rewrite.Generated}}, ""
	}},
	{"a query that ends late", faultQuery, func(_ *rewrite.Plan, in *rewrite.Insert) { in.SelectArgs = 2 }},
	{"a query whose keys aren't generated", faultQuery, func(_ *rewrite.Plan, in *rewrite.Insert) { in.SelectKey = rewrite.Expression }},
}

// TestCheck_agreesWithCommentsBefore: a statement begins after the comments.
func TestCheck_agreesWithCommentsBefore(t *testing.T) {
	opts := rewrite.GoldenCases(t)[0].Options
	opts.SQLMode, opts.ReportKeys = "", true
	for _, before := range []string{"# y '\n", "/* c */ ", "-- x\n\n/* */"} {
		for _, statement := range []string{"INSERT t/* c */ (a) SELECT a FROM s WHERE a > ? # end ?", "INSERT INTO t (a) VALUES (?)"} {
			text := before + statement
			plan := must.Get(rewrite.Parse(text, opts))(t)
			if known, err := tidb.Check(text, opts, plan); !known || err != nil {
				t.Errorf("%s\nhave: known %v, %v\nwant: agreed", text, known, err)
			}
		}
	}
}

// TestCheck_agreesWithMarksInStrings: a comment mark in a string that asks for a key isn't a comment.
func TestCheck_agreesWithMarksInStrings(t *testing.T) {
	opts := rewrite.GoldenCases(t)[0].Options
	opts.SQLMode = "" // lax: the server would store 0
	for _, key := range []string{`'-- 0'`, `'a# '`, `'x/*'`, `'*/'`, `'# '`, `' '`, `"it's -- "`, `'it''s #'`, `'\'# '`, `'a' '-- b'`, `N'#'`, `_latin1'-- '`, `('-- 0')`} {
		text := "INSERT INTO t (id, a) VALUES (" + key + ", 1)"
		plan, err := rewrite.Parse(text, opts)
		if err != nil || plan.NumKeys != 1 {
			t.Errorf("%s\nhave: %v\nwant: a generated key", text, err)
			continue
		}
		must.Get(tidb.Check(text, opts, plan))(t, text)
	}
}

func TestCheck_refusesFaults(t *testing.T) {
	opts := rewrite.GoldenCases(t)[0].Options
	opts.SQLMode = ""
	opts.Server, opts.ReportKeys = "mysql", true
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			plan, err := rewrite.Parse(f.text, opts)
			must.Do(t, err)
			if known, err := tidb.Check(f.text, opts, plan); err != nil || !known {
				t.Fatalf("without the fault\nhave: known %v, %v\nwant: agreed", known, err)
			}
			f.plant(plan, plan.Insert)
			_, err = tidb.Check(f.text, opts, plan)
			rewrite.CheckStatementError(t, f.text, err)
			t.Log(err)
		})
	}
}

// TestCheckKeys_seesSwappedKeys: each row has the key that was made for it.
func TestCheckKeys_seesSwappedKeys(t *testing.T) {
	opts := rewrite.GoldenCases(t)[0].Options
	text := "INSERT INTO t (a) VALUES (1), (2)"
	plan := must.Get(rewrite.Parse(text, opts))(t)
	keys := &rewrite.Keys{Ints: []int64{5, 6}}
	plan.Query()
	must.Get(tidb.CheckKeys(text, opts, plan, keys))(t)
	first, second := strings.Index(text, "),"), strings.LastIndex(text, ")")
	plan.Insert.SetSlot(0, second, second)
	plan.Insert.SetSlot(1, first, first)
	_, err := tidb.CheckKeys(text, opts, plan, keys)
	rewrite.CheckStatementError(t, text, err)
}
