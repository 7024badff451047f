package rewrite

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/test/digest"
)

// TestParse_queriesAsRecorded: a change of the code changes the plan of no INSERT … SELECT, unless
// testdata/queries.txt changes with it. The file has a digest of the plans of random statements for each server and
// kind of key.
func TestParse_queriesAsRecorded(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	all := digest.Digests{}
	for range 80_000 {
		text := randomQuery(r)
		opts := Options{Server: goldenServers[r.IntN(len(goldenServers))], ReportKeys: r.IntN(2) == 0}
		table := Table{Key: "id", Columns: []string{"id", "a", "b"}, Recorded: []string{"a"}, Fixed: []string{"a"}, KeepExplicit: r.IntN(8) == 0, Strings: r.IntN(8) == 0}
		opts.Table = func(_, name string) *Table {
			if name == "t" {
				return &table
			}
			return nil
		}
		kind, plan := describePlan(text, opts)
		all.Add(opts.Server+", "+kind, fmt.Sprintf("%s %v %v %v %s\n%s", opts.Server, opts.ReportKeys, table.KeepExplicit, table.Strings, text, plan))
	}
	all.Compare(t, "testdata/queries.txt", *update)
}

// describePlan returns the kind of a plan's keys, and all of the plan that its users see.
func describePlan(text string, opts Options) (kind, plan string) {
	p, err := Parse(text, opts)
	if refused := (*StatementError)(nil); errors.As(err, &refused) {
		return "refused", fmt.Sprintln(refused.Reason, refused.Line, refused.Char)
	}
	if err != nil {
		return "error", ""
	}
	in := p.Insert
	if in == nil {
		return "passed", ""
	}
	keys := &Keys{Ints: []int64{101, 102, 103, 104, 105}, Counted: 3, LastInsertID: 50}
	if in.SelectKey == "" {
		keys.Asked = make([]bool, len(in.Rows))
	}
	literal, bound, err := p.Bind(nil, numbers(p.NumArgs), keys, true)
	plan = fmt.Sprintln(p.Query(), literal, bound, err != nil, p.Count(), p.NumArgs, p.NumKeys, in.SelectArgs, in.Rows, in.AllGenerated, in.Ignore,
		in.OnDuplicate, in.Returning, in.ReturnsKey, in.ReadsLastID, in.ReportsFirstKey, in.ReportsExistingKey, in.UpdatesFixed, in.Invalid,
		p.Value(0, 0), p.AssignsArgs(), p.InAnySession())
	if in.SelectKey == "" {
		return "one row", plan
	}
	return string(in.SelectKey), plan
}

// randomQuery returns an INSERT with a query, perhaps one that no server accepts.
func randomQuery(r *rand.Rand) string {
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	some := func(all ...string) string { // often nothing
		if r.IntN(3) > 0 {
			return ""
		}
		return pick(all...)
	}
	item := func() string {
		return pick("1", "1", "NULL", "0", "?", "'x'", "b", "u.b", "*", "u.*", "f(a)", "LAST_INSERT_ID()", "@@last_insert_id", "@@session.identity", "(SELECT 1)",
			"(SELECT b INTO @x)", "a + ?", "COUNT(*)", "CASE WHEN a THEN 1 END", "@v", "-5", "NEXT VALUE FOR s", "1 COLLATE utf8mb4_bin", "offset") +
			some(" AS x", " x", " AS 'x'", " 'x'", " AS `x`")
	}
	items := func() string {
		all := make([]string, 1+r.IntN(3))
		for i := range all {
			all[i] = item()
		}
		return strings.Join(all, ", ")
	}
	selects := func() string {
		return "SELECT" + some(" DISTINCT", " ALL", " HIGH_PRIORITY", " SQL_CALC_FOUND_ROWS", " SQL_NO_CACHE STRAIGHT_JOIN", " /*+ NO_ICP(u) */", " DISTINCTROW") + " " + items() +
			pick("", " FROM u", " FROM u", " FROM DUAL", " FROM u, v", " FROM DUAL, u", " FROM DUAL JOIN u", " FROM (SELECT ? ORDER BY 1 LIMIT 2) d", " FROM u FOR SYSTEM_TIME ALL") +
			some(" WHERE b = ?", " WHERE b IN (SELECT 1 UNION SELECT 2)") + some(" GROUP BY a", " GROUP BY a WITH ROLLUP", " GROUP BY ROLLUP(a)") + some(" HAVING b > ?")
	}
	bracketed := func(query string) string {
		if r.IntN(6) == 0 {
			return "(" + query + some(" ORDER BY a", " LIMIT 1", " ORDER BY f(a), b", " ORDER BY a FOR UPDATE", " ORDER BY a LIMIT 3") + ")"
		}
		return query
	}
	query := bracketed(selects())
	if r.IntN(4) == 0 {
		query += pick(" UNION ", " UNION ALL ", " UNION DISTINCT ", " INTERSECT ", " EXCEPT ALL ", " MINUS ") + bracketed(selects())
	}
	switch r.IntN(16) {
	case 0:
		query = "WITH c AS (SELECT 1) " + query
	case 1:
		query = pick("TABLE u", "VALUES ROW(1, 2)", "(TABLE u)", "(VALUES (1, ?))")
	case 2:
		query = "(" + query + ")"
	}
	query += some(" ORDER BY a", " ORDER BY 1, ?") + some(" LIMIT 1", " LIMIT ?", " LIMIT 1, 2", " LIMIT 1 OFFSET 2", " FETCH FIRST 1 ROWS ONLY", " LIMIT 2") +
		some(" FOR UPDATE", " LOCK IN SHARE MODE", " FOR SHARE SKIP LOCKED", " PROCEDURE ANALYSE()")
	return pick("INSERT INTO t", "INSERT INTO t", "INSERT IGNORE t", "REPLACE INTO t", "INSERT INTO d.t") +
		pick(" (a, b)", " (a, b)", " (id, a)", " (a, id)", "", " ()", " (a, id, b)") + " " + query +
		some(" ON DUPLICATE KEY UPDATE b = 2", " ON DUPLICATE KEY UPDATE a = ?", " RETURNING id", " RETURNING id, a", ";", " -- end")
}
