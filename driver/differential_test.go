package driver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/internal/testserver"
)

// The differential test runs the same statements through go-sql-driver on a
// table with AUTO_INCREMENT and through shardkey on the same table without, and
// holds rows, rows affected, insert ids, LAST_INSERT_ID() and errors of one
// side against the other's. Generated keys are compared by their order, which
// is what both sides agree on; given keys are below generatedFrom.

// generatedFrom is where both sides' generated keys begin.
const generatedFrom = 1_000_000

// variant is a way to run a case.
type variant struct {
	shape    shape
	params   string
	prepared bool
	tx       bool
}

func (v variant) String() string {
	name := "text"
	if v.prepared {
		name = "prepared"
	}
	if v.params != "" {
		name += "/" + v.params
	}
	if v.tx {
		name += "/tx"
	}
	return v.shape.name + "/" + name
}

// step is one statement with its arguments.
type step struct {
	text string
	args []any
}

func q(text string, args ...any) step { return step{text, args} }

func TestDifferential_cases(t *testing.T) {
	if testserver.Each(t, TestDifferential_cases) {
		return
	}
	t.Parallel()
	groups := map[string][]differentialCase{"": slices.Concat(cases, ormCases, middlewareCases, sessionCases)}
	for params, cs := range casesWithParams {
		groups[params] = cs
	}
	for params, cs := range groups {
		dsns := []string{params}
		if params == "" {
			dsns = append(dsns, "interpolateParams=true")
		}
		for _, sh := range shapes {
			for _, params := range dsns {
				t.Run(sh.name+"/"+params, func(t *testing.T) {
					both := sides(t, params, sh)
					testserver.Ran(t, "statements compared with AUTO_INCREMENT, key column "+sh.name, "all")
					for i, c := range cs {
						c.noteNeeds(t)
						if !sh.can(c) {
							continue
						}
						for _, v := range sh.ways(i, params) {
							t.Run(v.String()+"/"+c.name, func(t *testing.T) { report(t, c.run(t, both, v)) })
						}
					}
				})
			}
		}
	}
}

// onlyOne is what one kind of server alone has. Such cases run on the others
// too: there the server's error must come through.
var onlyOne = []struct {
	has  *regexp.Regexp
	kind testserver.Kind
	what string
}{
	{regexp.MustCompile(`\bRETURNING\b`), testserver.KindMariaDB, "RETURNING"},
	{regexp.MustCompile(`^SET STATEMENT\b`), testserver.KindMariaDB, "SET STATEMENT … FOR"},
	{regexp.MustCompile(`\) AS new\b`), testserver.KindMySQL, "row aliases"},
	{regexp.MustCompile(`\bROW\(`), testserver.KindMySQL, "VALUES ROW(…)"},
}

func (c differentialCase) noteNeeds(t *testing.T) {
	for _, st := range c.steps {
		for _, o := range onlyOne {
			if o.has.MatchString(st.text) {
				testserver.Has(t, o.kind, o.what)
			}
		}
	}
}

// report fails the test by what differs.
func report(t *testing.T, wrong []string) {
	t.Helper()
	for _, w := range wrong {
		t.Error(w)
	}
}

type differentialCase struct {
	name  string
	steps []step
}

// run runs the case on both sides and returns what differs.
func (c differentialCase) run(t *testing.T, both [2]side, v variant) (wrong []string) {
	var have [2][]string
	for i, s := range both {
		var untrue []string
		have[i], untrue = s.observe(t, c, v)
		wrong = append(wrong, untrue...)
	}
	if slices.ContainsFunc(have[0], func(s string) bool { return strings.HasPrefix(s, "error 1869 ") }) {
		return nil // MySQL takes the updated id for a generated one, and refuses; we have none that it generated
	}
	for i := range have[0] {
		if ignored := fmt.Sprintf(" id %d,", ignoredID); strings.Contains(have[0][i], ignored) {
			have[1][i] = insertID.ReplaceAllString(have[1][i], ignored)
		}
		if have[0][i] != have[1][i] {
			wrong = append(wrong, fmt.Sprintf("%s\n  %s\nhave: %s\nwant: %s", c.name, observed(c, i), have[1][i], have[0][i]))
		}
	}
	return wrong
}

func observed(c differentialCase, i int) string {
	if i < len(c.steps) {
		return fmt.Sprint(c.steps[i].text, " ", c.steps[i].args)
	}
	return "rows at the end"
}

// ignoredID stands for the insert id of an ignored row.
const ignoredID = -1

var insertID = regexp.MustCompile(` id [g0-9]+,`)

// observe runs a case on one side and records all that a client can see,
// with generated keys replaced by their rank, and which keys were reported that are
// in no table.
func (s side) observe(t *testing.T, c differentialCase, v variant) (seen, untrue []string) {
	t.Helper()
	conn, err := s.db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s.emptyTables(t, conn)
	var run runner = conn
	var tx *sql.Tx
	if v.tx {
		if tx, err = conn.BeginTx(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		run = tx
	}
	session := firstInsertID // LAST_INSERT_ID() after the latest step
	for _, st := range c.steps {
		step, keys := s.observeStep(t, run, st, v)
		untrue = append(untrue, keys...)
		if !s.shape.noID && !strings.HasPrefix(step, "prepare: ") {
			read := "SELECT LAST_INSERT_ID()"
			if s.plain && strings.HasPrefix(step, "error") {
				// LAST_INSERT_ID() is undefined after an error (MySQL's manual).
				// With shardkey it stays as it was.
				read = "SELECT LAST_INSERT_ID(" + strings.Trim(session, "[]") + ")"
			}
			session = readAll(t, run, read)
			step += ", session " + session
		}
		seen = append(seen, step)
	}
	if tx != nil {
		if err := tx.Commit(); err != nil {
			seen = append(seen, "commit: "+err.Error())
		}
	}
	for _, table := range []string{"t", "child", "`we``ird`"} {
		seen = append(seen, readAll(t, conn, "SELECT * FROM "+table+" ORDER BY 1"))
	}
	return rank(seen), untrue
}

// firstInsertID is LAST_INSERT_ID() before the first step, as readAll shows it.
const firstInsertID = "[77]"

// emptyTables makes the session and the tables new but for AUTO_INCREMENT,
// which goes on: emptying is quicker than creating.
func (s side) emptyTables(t *testing.T, conn *sql.Conn) {
	t.Helper()
	for _, query := range []string{"SET SESSION sql_mode = DEFAULT", "DELETE FROM t", "DELETE FROM child", "DELETE FROM `we``ird`", "DELETE FROM free", "DO LAST_INSERT_ID(" + strings.Trim(firstInsertID, "[]") + ")"} {
		mustExec(t, conn, query)
	}
}

// runner is what *sql.Conn and *sql.Tx have in common.
type runner interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

var returnsRows = regexp.MustCompile(`(?is)^\s*(SELECT|SHOW)|\bRETURNING\b`)

func (s side) observeStep(t *testing.T, run runner, st step, v variant) (seen string, untrue []string) {
	var keys Keys
	ctx := WithKeys(t.Context(), &keys)
	exec := func() (sql.Result, error) { return run.ExecContext(ctx, st.text, st.args...) }
	query := func() (*sql.Rows, error) { return run.QueryContext(ctx, st.text, st.args...) }
	if v.prepared && !strings.Contains(strings.TrimRight(st.text, "; "), ";") {
		stmt, err := run.PrepareContext(ctx, st.text)
		if err != nil {
			return "prepare: " + plainError(err), nil
		}
		defer stmt.Close()
		exec = func() (sql.Result, error) { return stmt.ExecContext(ctx, st.args...) }
		query = func() (*sql.Rows, error) { return stmt.QueryContext(ctx, st.args...) }
	}
	var out strings.Builder
	if returnsRows.MatchString(st.text) {
		rows, err := query()
		if err != nil {
			return plainError(err), nil
		}
		out.WriteString(show(t, rows))
		if strings.HasPrefix(out.String(), "error") {
			return out.String(), s.untrue(t, run, st, &keys)
		}
	} else {
		res, err := exec()
		if err != nil {
			return plainError(err), nil
		}
		affected, _ := res.RowsAffected()
		id, err := res.LastInsertId()
		if strings.Contains(st.text, "IGNORE") && !s.inTable(t, run, id) {
			// The server reports the key of an ignored row if it is the last
			// and another row was inserted. We never report such a generated key.
			if s.plain {
				id = ignoredID
			} else if id >= generatedFrom && !s.shape.noID {
				untrue = append(untrue, fmt.Sprintf("%s %v\nid %d is in no table", st.text, st.args, id))
			}
		}
		if s.shape.noID {
			id = 0
		}
		fmt.Fprintf(&out, "affected %d, id %d, %v", affected, id, err)
	}
	return out.String(), append(untrue, s.untrue(t, run, st, &keys)...)
}

func (s side) inTable(t *testing.T, run runner, id int64) bool {
	t.Helper()
	return readAll(t, run, fmt.Sprintf("SELECT id FROM t WHERE id = %d UNION SELECT id FROM child WHERE id = %[1]d", id)) != ""
}

// untrue returns the keys that WithKeys reported and that are in no table.
func (s side) untrue(t *testing.T, run runner, st step, keys *Keys) (untrue []string) {
	t.Helper()
	reported := keys.Values()
	if !slices.ContainsFunc(reported, func(key any) bool { return key != nil }) {
		return nil
	}
	in := strings.Fields(readAll(t, run, "SELECT id FROM t UNION ALL SELECT id FROM child UNION ALL SELECT `k``ey` FROM `we``ird`"))
	for i, key := range reported {
		if b, ok := key.([]byte); ok {
			key = string(b)
		}
		if key != nil && !slices.Contains(in, fmt.Sprintf("[%v]", key)) {
			untrue = append(untrue, fmt.Sprintf("%s %v\nkey %d of %v is in no table: %v", st.text, st.args, i, reported, in))
		}
	}
	return untrue
}

func plainError(err error) string {
	var my *mysql.MySQLError
	if errors.As(err, &my) {
		return fmt.Sprintf("error %d %s", my.Number, ownDatabase.ReplaceAllString(nearText.ReplaceAllString(my.Message, "near …"), "db"))
	}
	return "error " + err.Error()
}

// ownDatabase is a side's own.
var ownDatabase = regexp.MustCompile(`shardkey_test_[a-z0-9]+`)

// nearText is where a syntax error quotes a text that differs by the key.
var nearText = regexp.MustCompile(`(?s)near '.*' at line \d+`)

func readAll(t *testing.T, run runner, query string) string {
	t.Helper()
	rows, err := run.QueryContext(t.Context(), query)
	if err != nil {
		return plainError(err)
	}
	return show(t, rows)
}

func show(t *testing.T, rows *sql.Rows) string {
	t.Helper()
	defer rows.Close()
	columns := must(rows.Columns())(t)
	var lines []string
	for rows.Next() {
		values := make([]sql.NullString, len(columns))
		dest := make([]any, len(columns))
		for i := range values {
			dest[i] = &values[i]
		}
		noError(t, rows.Scan(dest...))
		var cells []string
		for _, v := range values {
			if !v.Valid {
				v.String = "NULL"
			}
			cells = append(cells, v.String)
		}
		lines = append(lines, "["+strings.Join(cells, "|")+"]")
	}
	if err := rows.Err(); err != nil {
		return plainError(err)
	}
	return strings.Join(lines, " ")
}

// generatedKey is an integer, or k and one with leading zeros.
var generatedKey = regexp.MustCompile(`\b(k0*)?\d{7,19}\b`)

func keyNumber(key string) (int64, error) {
	return strconv.ParseInt(strings.TrimLeft(key, "k0"), 10, 64)
}

// rank replaces each generated key by its place among all of them.
func rank(seen []string) []string {
	all := map[int64]bool{}
	for _, s := range seen {
		for _, k := range generatedKey.FindAllString(s, -1) {
			if n, err := keyNumber(k); err == nil && n >= generatedFrom {
				all[n] = true
			}
		}
	}
	var keys []int64
	for k := range all {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	ranked := make([]string, len(seen))
	for i, s := range seen {
		ranked[i] = generatedKey.ReplaceAllStringFunc(s, func(k string) string {
			n, err := keyNumber(k)
			if err != nil || n < generatedFrom {
				return k
			}
			at, _ := slices.BinarySearch(keys, n)
			return fmt.Sprintf("g%d", at+1)
		})
	}
	return ranked
}
