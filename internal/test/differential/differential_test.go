package differential

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/shardkey/shardkey/driver"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/rule"
	"github.com/shardkey/shardkey/spi"
)

// The differential test runs the same statements twice: through go-sql-driver on a table with
// AUTO_INCREMENT, and through shardkey on the same table without it. It compares rows, rows
// affected, insert IDs, LAST_INSERT_ID() and errors. Generated keys are compared by their order.
// Explicit keys are below generatedFrom.

// generatedFrom is the first generated key on both sides.
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

func q(text string, args ...any) step { return step{text: text, args: args} }

func TestDifferential_cases(t *testing.T) { onEach(t, testDifferential_cases) }

func testDifferential_cases(t *testing.T) {
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
					for i, c := range cs {
						c.noteNeeds(t)
						if !sh.can(c) {
							continue
						}
						for _, v := range sh.ways(i, params) {
							t.Run(v.String()+"/"+c.name, func(t *testing.T) { c.run(t, both, v) })
						}
					}
				})
			}
		}
	}
}

// onlyOne lists features of only one kind of server. Their cases also run on the others, where
// the server's error must be returned.
var onlyOne = []struct {
	has  *regexp.Regexp
	on   testserver.Servers
	what string
}{
	{regexp.MustCompile(`\bRETURNING\b`), testserver.MariaDB, "RETURNING"},
	{regexp.MustCompile(`^SET STATEMENT\b`), testserver.MariaDB, "SET STATEMENT … FOR"},
	{regexp.MustCompile(`\) AS new\b`), testserver.MySQL, "row aliases"},
	{regexp.MustCompile(`\bROW\(`), testserver.MySQL, "VALUES ROW(…)"},
}

func (c differentialCase) noteNeeds(t *testing.T) {
	for _, st := range c.steps {
		for _, o := range onlyOne {
			if o.has.MatchString(st.text) {
				testserver.Has(t, o.on, o.what)
			}
		}
	}
}

type differentialCase struct {
	name  string
	steps []step
}

// run runs the case on both sides and compares them.
func (c differentialCase) run(t *testing.T, both [2]side, v variant) {
	t.Helper()
	d := &duel{t: t, sides: both, variant: v}
	d.open()
	defer d.close()
	// (1869: MySQL takes the updated key for a generated one and refuses. shardkey has no key of the server there.)
	if diff := d.run(c.steps); diff != nil && errorNumber(diff.plain.err) != 1869 {
		t.Errorf("%s\n%s", c.name, diff)
	}
}

// duel runs statements on both sides, one by one, and compares everything that a client sees.
type duel struct {
	t       *testing.T
	sides   [2]side
	variant variant
	conns   [2]*sql.Conn
	runs    [2]runner
	txs     [2]*sql.Tx
	pairs   keyPairs
	session [2]string // LAST_INSERT_ID()
	tally   *tally    // nil: a refused statement is a difference, and so are known ones
	// each compares the tables after each statement.
	each bool
	// dirty: a statement had an explicit key after which AUTO_INCREMENT may be at its end.
	dirty bool
	// void: shardkey has refused a part of a string, and the parts before it have run.
	void bool
	// temporary: a temporary table may hide a table.
	temporary bool
	// named: a statement has changed the session's character set, which is names at the beginning.
	named bool
	names string
	// varied: a statement has changed variables of the session, moved: its database, altered: the tables
	// of a world have changed, lost: the connections are.
	varied, moved, altered, lost bool
	// world is what random statements find; nil: they aren't random.
	world *world
	// kept are the program's prepared statements.
	kept [2]map[string]*sql.Stmt
	// control is a connection that empties and reads the tables of both sides at once.
	control *sql.Conn
}

// The indexes of the sides.
const (
	plainSide = iota
	shardkeySide
)

// open gets a connection for each side, and one for both.
func (d *duel) open() {
	d.control = must(d.sides[0].control.Conn(d.t.Context()))(d.t)
	d.connect()
}

func (d *duel) connect() {
	for i, s := range d.sides {
		d.conns[i] = must(s.db.Conn(d.t.Context()))(d.t)
	}
}

func (d *duel) close() {
	for _, conn := range append(d.conns[:], d.control) {
		_ = conn.Close()
	}
}

// begin resets the sessions and the tables.
func (d *duel) begin() {
	d.pairs, d.void = keyPairs{map[string]string{}, map[string]string{}}, false
	if d.altered {
		d.restore()
	}
	mustExec(d.t, d.control, d.ofBoth(side.empty))
	if d.dirty {
		d.restart()
	}
	for i, s := range d.sides {
		if d.named && d.names != "" {
			mustExec(d.t, d.conns[i], "SET NAMES "+d.names)
		}
		d.session[i] = firstInsertID
		if d.moved {
			mustExec(d.t, d.conns[i], "USE "+s.database)
		}
		if d.temporary {
			tables := "t"
			if s.second != "" {
				tables += ", " + s.second + ".t"
			}
			mustExec(d.t, d.conns[i], "DROP TEMPORARY TABLE IF EXISTS "+tables)
		}
		if d.varied {
			mustExec(d.t, d.conns[i], d.world.defaults())
		}
		mustExec(d.t, d.conns[i], "SET SESSION sql_mode = "+cmp.Or(s.mode, "DEFAULT")+", autocommit = "+cmp.Or(s.autocommit, "1")+
			", last_insert_id = "+strings.Trim(firstInsertID, "[]")+", @n = NULL")
		if d.runs[i], d.txs[i] = d.conns[i], nil; d.variant.tx {
			d.txs[i] = must(d.conns[i].BeginTx(d.t.Context(), nil))(d.t)
			d.runs[i] = d.txs[i]
		}
	}
	d.named, d.temporary, d.moved, d.varied, d.altered = false, false, false, false, false
}

// note records what a step may change.
func (d *duel) note(st step) {
	has := func(word string) bool { return strings.Contains(st.text, word) }
	d.dirty, d.named = d.dirty || st.has("dirty"), d.named || has("NAMES")
	d.temporary, d.moved = d.temporary || has("TEMPORARY"), d.moved || has("USE {")
	d.varied, d.altered = d.varied || st.has("variable"), d.altered || st.by != own || st.has("alters")
}

// run runs statements until the first difference, and returns it.
func (d *duel) run(steps []step) *difference {
	d.begin()
	diff := d.runSteps(steps)
	d.closeKept()
	for i := range d.conns {
		d.finish(i, diff == nil && !d.void)
		if !d.lost && slices.ContainsFunc(steps, func(st step) bool { return strings.Contains(st.text, "SET TRANSACTION") }) {
			mustExec(d.t, d.conns[i], "BEGIN") // uses it up
			mustExec(d.t, d.conns[i], "COMMIT")
		}
	}
	if d.lost {
		d.reconnect()
	}
	if diff == nil && !d.void {
		diff = d.compareTables(steps, [2]runner{d.conns[0], d.conns[1]})
	}
	return diff
}

// finish ends the transaction of a side.
func (d *duel) finish(i int, commit bool) {
	end := func(query string) (err error) { _, err = d.conns[i].ExecContext(d.t.Context(), query); return err }
	var err error
	switch tx := d.txs[i]; {
	case tx != nil && commit:
		err = tx.Commit()
	case tx != nil:
		_ = tx.Rollback()
	case commit:
		err = end("COMMIT")
	default:
		err = end("ROLLBACK")
	}
	if d.lost = d.lost || isLost(err); !d.lost {
		noError(d.t, err)
	}
}

func (d *duel) runSteps(steps []step) *difference {
	for i, st := range steps {
		d.note(st)
		if st.by != own {
			d.elsewhere(st)
			continue
		}
		ours := d.observe(shardkeySide, st)
		if ours.refused && d.tally != nil {
			d.tally.refuse(ours.err)
			if d.void = st.parts != nil; d.void {
				return nil
			}
			continue
		}
		plain := d.observe(plainSide, st)
		if d.tally != nil {
			d.tally.compared++
		}
		if d.lost = d.lost || isLost(plain.err) || isLost(ours.err); d.lost && isLost(plain.err) == isLost(ours.err) {
			return nil
		}
		if d.each && d.sameErrors(plain.err, ours.err) {
			if diff := d.compareTables(steps[:i+1], d.runs); diff != nil {
				return diff
			}
		}
		if d.sameErrors(plain.err, ours.err) && ours.err != nil && (setsLastID.MatchString(st.text) || passed.MatchString(st.text) || st.parts != nil) {
			return nil // LAST_INSERT_ID() is undefined
		}
		if field := d.compare(st, &plain, &ours); field != "" {
			return &difference{steps: steps[:i+1], field: field, plain: plain, ours: ours, variant: d.variant}
		}
	}
	return nil
}

// compareTables compares the rows at the end.
func (d *duel) compareTables(steps []step, runs [2]runner) *difference {
	var both [2][]string
	if !d.each {
		all := readResults(d.t, d.control, d.ofBoth(side.read))
		both[0], both[1] = all[:len(all)/2], all[len(all)/2:]
	} else {
		both[0], both[1] = d.sides[0].readTables(d.t, runs[0]), d.sides[1].readTables(d.t, runs[1])
	}
	for i, table := range d.sides[0].tables {
		if !d.pairs.equal(both[0][i], both[1][i]) && !(d.dirty && rowsWithoutKeys(both[0][i]) == rowsWithoutKeys(both[1][i])) {
			return &difference{steps: steps, field: "table " + table, plain: seen{rows: both[0][i]}, ours: seen{rows: both[1][i]}, variant: d.variant}
		}
	}
	return nil
}

// rowsWithoutKeys returns the rows in another order, without their keys: explicit keys may stand
// before the generated keys of one side and behind those of the other.
func rowsWithoutKeys(rows string) string {
	all := strings.Split(anyNumber.ReplaceAllStringFunc(rows, func(number string) string {
		if plainTable(number) > 0 || ourTable(number) > 0 {
			return "key"
		}
		return number
	}), "] [")
	for i, row := range all {
		_, all[i], _ = strings.Cut(strings.Trim(row, "[]"), "|")
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// ofBoth returns a string of statements, with those for each table of each side.
func (d *duel) ofBoth(statement func(s side, table string) string) string {
	var b strings.Builder
	for _, s := range d.sides {
		for _, table := range s.tables {
			b.WriteString(statement(s, table) + ";")
		}
	}
	return b.String()
}

// read returns a query for the rows of a table.
func (s side) read(table string) string {
	if s.history && table == "t" {
		return "SELECT id, a, u, s FROM " + s.qualified(table) + " FOR SYSTEM_TIME ALL ORDER BY 1, 2, 3, 4"
	}
	return "SELECT * FROM " + s.qualified(table) + " ORDER BY 1 LIMIT 100000"
}

// empty returns the statements that empty a table.
func (s side) empty(table string) string {
	query := "DELETE FROM " + s.qualified(table)
	if s.history && table == "t" {
		query += "; DELETE HISTORY FROM " + s.qualified(table)
	}
	return query
}

// readResults returns the rows of each result of a string of queries.
func readResults(t *testing.T, run runner, queries string) (all []string) {
	t.Helper()
	rows := must(run.QueryContext(context.Background(), queries))(t)
	defer rows.Close()
	for next := true; next; next = rows.NextResultSet() {
		text, err := showResult(t, rows)
		noError(t, err)
		all = append(all, text)
	}
	return all
}

// readTables returns the rows of each table.
func (s side) readTables(t *testing.T, run runner) (all []string) {
	t.Helper()
	for _, table := range s.tables {
		all = append(all, ReadAll(t, run, s.read(table)))
	}
	return all
}

// qualified returns the name of a table with its database.
func (s side) qualified(table string) string {
	if strings.HasPrefix(table, "{") {
		return s.expand(table)
	}
	return s.database + "." + table
}

// difference is the first difference of a case: in what the last of its steps showed, or in a
// table.
type difference struct {
	steps       []step
	field       string
	plain, ours seen
	variant     variant
	ddl         []string
}

func (d *difference) last() step { return d.steps[len(d.steps)-1] }

func (d *difference) String() string {
	var b strings.Builder
	for _, ddl := range d.ddl {
		b.WriteString("  " + ddl + "\n")
	}
	for _, st := range d.steps {
		fmt.Fprintf(&b, "  %s", st.text)
		for _, arg := range st.args {
			fmt.Fprintf(&b, " [%T %[1]v]", arg)
		}
		if st.read != "" {
			b.WriteString(" -- then " + st.read)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "%s\nhave: %s\nwant: %s", d.field, d.ours.of(d.field), d.plain.of(d.field))
	return b.String()
}

// seen is everything that a client sees of a statement.
type seen struct {
	err          error
	refused      bool // by shardkey
	affected, id int64
	rows         string
	read         string   // result of the step's query
	session      string   // LAST_INSERT_ID() afterwards
	wrongKeys    []string // what is wrong in WithKeys
}

// of returns a field's value.
func (s *seen) of(field string) string {
	switch field {
	case "LAST_INSERT_ID()":
		return s.session + " after " + s.short()
	case "WithKeys":
		return strings.Join(s.wrongKeys, "; ")
	case "read":
		return s.read + " after " + s.short()
	}
	return s.short()
}

func (s *seen) short() string {
	if s.err != nil {
		return PlainError(s.err)
	}
	return fmt.Sprintf("affected %d, id %d, rows %s", s.affected, s.id, s.rows)
}

// compare compares what the sides showed. It returns the field that differs.
func (d *duel) compare(st step, plain, ours *seen) string {
	noID := d.variant.shape.noID
	switch {
	case !d.sameErrors(plain.err, ours.err):
		return "error"
	case len(ours.wrongKeys) > 0:
		return "WithKeys"
	case plain.affected != ours.affected:
		return "affected"
	case !noID && !d.sameIDs(st, plain.id, ours.id):
		return "LastInsertId"
	case !d.pairs.equal(plain.rows, ours.rows):
		return "rows"
	case !noID && !d.pairs.equal(plain.read, ours.read):
		return "read"
	case !noID && !d.pairs.equal(plain.session, ours.session):
		return "LAST_INSERT_ID()"
	}
	return ""
}

// sameErrors compares two errors: by their numbers for random statements, otherwise by their
// messages too. For a statement that isn't SQL, shardkey may report the number of arguments.
func (d *duel) sameErrors(plain, ours error) bool {
	if d.tally != nil && plain != nil && ours != nil {
		number := errorNumber(plain)
		return number == errorNumber(ours) || otherError[errorNumber(ours)] == number || number == 1064 && strings.Contains(ours.Error(), "arguments, got")
	}
	return PlainError(plain) == PlainError(ours)
}

// otherError has errors of MariaDB for a query in a common table expression, with that for the query alone:
// it has another number of columns than the INSERT, or a table is missing and a name is ambiguous.
var otherError = map[int]int{4002: 1136, 1146: 1052}

// sameIDs compares two insert IDs. The server reports the key of an ignored row if it is the last
// row and another row was inserted. shardkey never reports such a generated key.
func (d *duel) sameIDs(st step, plain, ours int64) bool {
	if d.pairs.equal(strconv.FormatInt(plain, 10), strconv.FormatInt(ours, 10)) {
		return true
	}
	return strings.Contains(st.text, "IGNORE") && !d.inTable(plainSide, plain) && (ours < generatedFrom || d.inTable(shardkeySide, ours))
}

// firstInsertID is LAST_INSERT_ID() before the first statement, in the format of ReadAll.
const firstInsertID = "[77]"

// passed matches an INSERT into a table without a rule.
var passed = regexp.MustCompile(`(?i)^(INSERT|REPLACE)\b.*\b(free|log) \(`)

// runner is implemented by *sql.Conn and *sql.Tx.
type runner interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
}

// observe executes a step on one side.
func (d *duel) observe(i int, st step) seen {
	s := d.execute(i, st)
	if s.refused || d.variant.shape.noID {
		return s
	}
	run := d.runs[i]
	if s.err != nil && i == plainSide && !isString(st.text) {
		// By MySQL's manual, LAST_INSERT_ID() is undefined after an error. With shardkey it
		// doesn't change.
		if _, err := run.ExecContext(d.t.Context(), "DO LAST_INSERT_ID("+strings.Trim(d.session[i], "[]")+")"); !isLost(err) {
			noError(d.t, err)
		}
	}
	if errorNumber(s.err) == interrupted || isLost(s.err) {
		return s // there may be no connection
	}
	if st.read != "" && (s.err == nil || !readsCounts.MatchString(st.read)) {
		s.read = ReadAll(d.t, run, st.read)
	}
	if st.read == "" || i == plainSide {
		s.session = ReadAll(d.t, run, "SELECT LAST_INSERT_ID()")
		d.session[i] = s.session
	}
	if st.read != "" {
		s.session = "" // shardkey isn't asked, since this query could correct it
	}
	return s
}

// interrupted is the server's error for a statement that was killed.
const interrupted = 1317

// isString reports whether a text may be a string of several statements.
func isString(text string) bool { return strings.Contains(strings.TrimRight(text, "; "), ";") }

// setsLastID matches a statement that may call LAST_INSERT_ID(expr).
var setsLastID = regexp.MustCompile(`(?i)LAST_INSERT_ID\s*\(\s*[^) ]|\bfs\(`)

var returnsRows = regexp.MustCompile(`(?is)^\s*(SELECT|SHOW|WITH|TABLE|HANDLER \w+ READ)\b|\bRETURNING\b`)

func (d *duel) execute(i int, st step) (s seen) {
	defer func() {
		if p := recover(); p != nil {
			s.err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	st.text = d.sides[i].expand(st.text)
	if i == plainSide && len(st.args) > 0 && st.parts != nil {
		return d.executeParts(st)
	}
	var keys driver.Keys
	run, t := d.runs[i], d.t
	ctx := context.Background()
	if i == shardkeySide {
		ctx = driver.WithKeys(t.Context(), &keys)
	}
	exec := func() (sql.Result, error) { return run.ExecContext(ctx, st.text, st.args...) }
	query := func() (*sql.Rows, error) { return run.QueryContext(ctx, st.text, st.args...) }
	fail := func(err error) seen {
		s.err, s.refused = err, i == shardkeySide && errors.As(err, new(*driver.StatementError))
		return s
	}
	if (d.variant.prepared || st.kept) && !isString(st.text) {
		stmt, err := d.prepare(ctx, i, st)
		if err != nil {
			return fail(err)
		}
		if !st.kept {
			defer stmt.Close()
		}
		exec = func() (sql.Result, error) { return stmt.ExecContext(ctx, st.args...) }
		query = func() (*sql.Rows, error) { return stmt.QueryContext(ctx, st.args...) }
	}
	if returnsRows.MatchString(st.text) {
		rows, err := query()
		if err == nil {
			s.rows, err = show(t, rows)
		}
		if err != nil {
			return fail(err)
		}
	} else {
		res, err := exec()
		if err != nil {
			return fail(err)
		}
		s.affected, _ = res.RowsAffected()
		s.id, _ = res.LastInsertId()
	}
	if i == shardkeySide {
		s.wrongKeys = d.wrongKeys(st, keys.Values())
	}
	return s
}

// prepare prepares a statement, unless the program has kept it.
func (d *duel) prepare(ctx context.Context, i int, st step) (*sql.Stmt, error) {
	if kept := d.kept[i][st.text]; st.kept && kept != nil {
		return kept, nil
	}
	stmt, err := d.runs[i].PrepareContext(ctx, st.text)
	if err == nil && st.kept {
		if d.kept[i] == nil {
			d.kept[i] = map[string]*sql.Stmt{}
		}
		d.kept[i][st.text] = stmt
	}
	return stmt, err
}

func (d *duel) closeKept() {
	for i := range d.kept {
		for _, stmt := range d.kept[i] {
			_ = stmt.Close()
		}
		clear(d.kept[i])
	}
}

// executeParts executes a string of several statements with arguments one by one, as shardkey does.
// The server doesn't prepare such a string, and go-sql-driver interpolates it as if no statement of it
// set NO_BACKSLASH_ESCAPES.
func (d *duel) executeParts(st step) (s seen) {
	defer func(prepared bool) { d.variant.prepared = prepared }(d.variant.prepared)
	d.variant.prepared = false
	rows := ""
	for _, part := range st.parts {
		if s = d.execute(plainSide, part); rows == "" {
			rows = s.rows
		}
		if s.err != nil {
			return s
		}
	}
	if returnsRows.MatchString(st.text) {
		return seen{rows: rows}
	}
	s.rows = ""
	return s
}

func (d *duel) inTable(i int, id int64) bool {
	return ReadAll(d.t, d.runs[i], d.sides[i].expand(fmt.Sprintf("SELECT id FROM {db}.t WHERE id = %d UNION SELECT id FROM {db}.child WHERE id = %[1]d", id))) != ""
}

// wrongKeys returns what is wrong in the keys that WithKeys reported: a key that is in no table, or
// is another row's.
func (d *duel) wrongKeys(st step, reported []any) (wrong []string) {
	if !slices.ContainsFunc(reported, func(key any) bool { return key != nil }) {
		return nil
	}
	tags := rowTag.FindAllStringSubmatch(st.text, -1)
	in := ReadAll(d.t, d.runs[shardkeySide], d.sides[shardkeySide].expand(d.sides[shardkeySide].allKeys)+" LIMIT 100000")
	for i, key := range reported {
		if b, ok := key.([]byte); ok {
			key = string(b)
		}
		if key != nil && !strings.Contains(in, fmt.Sprintf("[%v|", key)) {
			wrong = append(wrong, fmt.Sprintf("key %d of %v is in no table: %v", i, reported, in))
		}
		if key != nil && len(tags) == len(reported) && !st.has("again") {
			tag := "|" + tags[i][1] + "]"
			if strings.Count(in, tag) == 1 && !strings.Contains(in, fmt.Sprintf("[%v%s", key, tag)) {
				wrong = append(wrong, fmt.Sprintf("key %d of %v is another row's: %v", i, reported, in))
			}
		}
	}
	return wrong
}

// rowTag matches a value of column s that only one row has.
var rowTag = regexp.MustCompile(`'(r\d+)'`)

func errorNumber(err error) int {
	var my *mysql.MySQLError
	if errors.As(err, &my) {
		return int(my.Number)
	}
	return 0
}

// keyPairs has the generated keys of the two sides that were seen in the same place.
type keyPairs struct{ ours, plain map[string]string }

// anyNumber matches a number, which may be an integer key, or a string key: k and an integer with
// leading zeros.
var anyNumber = regexp.MustCompile(`(\bk0*)?\d+`)

// equal reports whether two texts are the same but for generated keys, and each key of one side
// always stands where the same key of the other side does.
func (p keyPairs) equal(plain, ours string) (equal bool) {
	if plain == ours {
		return true
	}
	before, beforeOurs := maps.Clone(p.plain), maps.Clone(p.ours)
	defer func() {
		if !equal { // these pairs may be wrong
			clear(p.plain)
			clear(p.ours)
			maps.Copy(p.plain, before)
			maps.Copy(p.ours, beforeOurs)
		}
	}()
	inPlain, inOurs := anyNumber.FindAllStringIndex(plain, -1), anyNumber.FindAllStringIndex(ours, -1)
	if len(inPlain) != len(inOurs) {
		return false
	}
	endPlain, endOurs := 0, 0
	for i := range inPlain {
		a, b := inPlain[i], inOurs[i]
		if plain[endPlain:a[0]] != ours[endOurs:b[0]] || !p.match(plain[a[0]:a[1]], ours[b[0]:b[1]]) {
			return false
		}
		endPlain, endOurs = a[1], b[1]
	}
	return plain[endPlain:] == ours[endOurs:]
}

// match reports whether two numbers are equal, or a pair of generated keys.
func (p keyPairs) match(plain, ours string) bool {
	table := plainTable(plain)
	switch {
	case table > 0 && ours == "2147483647": // in an INT
		return true
	case table == 0 || table != ourTable(ours):
		return plain == ours
	case p.ours[plain] == "" && p.plain[ours] == "":
		p.ours[plain], p.plain[ours] = ours, plain
	}
	return p.ours[plain] == ours && p.plain[ours] == plain
}

// plainTable returns the number in tableRange of the table whose AUTO_INCREMENT generated a key; 0
// for another number.
func plainTable(key string) int64 {
	if n := keyNumber(key); n < 7*generatedFrom {
		return n / generatedFrom
	}
	return 0
}

// ourTable is plainTable for keys of type ascending. Tables without a rule have AUTO_INCREMENT.
func ourTable(key string) int64 {
	n := keyNumber(key)
	for _, first := range []int64{wideRange, narrowRange} {
		if n >= first {
			return n / first
		}
	}
	return plainTable(key)
}

func keyNumber(key string) int64 {
	n, _ := strconv.ParseInt(strings.TrimLeft(key, "k0"), 10, 64)
	return n
}

// shape describes the sharded key column.
type shape struct {
	name        string
	plain       string // type of the plain side's column, which has AUTO_INCREMENT; BIGINT if empty
	column      string // type and attributes of the key column
	moreColumns string // more columns
	keys        string // kind of the generator's keys
	// noID means that insert IDs can't be compared, because keys are no integers or the server
	// has another AUTO_INCREMENT column.
	noID bool
	// twice and once mean that each case runs with each DSN, in two ways or in one. Other shapes
	// run with one of the DSNs.
	twice, once bool
}

var shapes = []shape{
	{name: "BIGINT", column: "BIGINT NOT NULL PRIMARY KEY", keys: "wide", twice: true},
	{name: "AUTO_INCREMENT", column: "BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY", keys: "wide", once: true},
	{name: "INT", plain: "INT", column: "INT NOT NULL PRIMARY KEY", keys: "narrow"},
	{name: "VARCHAR", column: "VARCHAR(40) NOT NULL PRIMARY KEY", keys: "text", noID: true},
	{name: "CHAR(36)", column: "CHAR(36) NOT NULL PRIMARY KEY", keys: "long text", noID: true},
	{name: "BINARY(16)", column: "BINARY(16) NOT NULL PRIMARY KEY", keys: "bytes", noID: true},
	{name: "next to AUTO_INCREMENT", column: "BIGINT NOT NULL UNIQUE", moreColumns: ", n BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY INVISIBLE", keys: "wide", noID: true},
}

// can reports whether a case has the same result for keys of the shape as for integers. A key
// that is no integer can't be 0 or 100.
func (sh shape) can(c differentialCase) bool {
	return !sh.noID || !slices.ContainsFunc(c.steps, func(st step) bool { return namesKey.MatchString(st.text) })
}

// ways returns the ways to run the case at index i with a DSN's parameters. Cases alternate
// between prepared and not prepared, and between inside and outside of a transaction.
func (sh shape) ways(i int, params string) []variant {
	interpolated := params == "interpolateParams=true"
	switch {
	case sh.twice || sh.once:
		if interpolated {
			i++ // the two DSNs run a case in different ways
		}
	case params == "" || interpolated:
		if interpolated == (i%2 == 0) {
			return nil
		}
		i /= 2
	}
	v := variant{shape: sh, params: params, prepared: i%2 == 1, tx: i/2%2 == 1}
	if !sh.twice {
		return []variant{v}
	}
	other := v
	other.prepared, other.tx = !v.prepared, !v.tx
	return []variant{v, other}
}

var namesKey = regexp.MustCompile("(?i)\\bid\\b|k``ey|LAST_INSERT_ID|identity|INTO t VALUES|INTO t \\(\\) VALUES \\(\\d|INTO t SELECT|RETURNING")

// ascending is a generator of keys far above those of AUTO_INCREMENT. Each table has its own
// range, in the order of the AUTO_INCREMENT ranges.
type ascending struct {
	n    atomic.Int64
	kind string
}

// tableRange is the order of the tables' key ranges.
var tableRange = map[string]int64{"t": 1, "child": 2, "we`ird": 3, "d": 4}

// The number of keys in a range, of BIGINT and of INT.
const (
	wideRange   = 1_000_000_000_000
	narrowRange = 500_000_000
)

func (g *ascending) GenerateKeys(_ context.Context, c spi.Column, n int) ([]any, error) {
	keys := make([]any, n)
	for i, first := 0, g.n.Add(int64(n))-int64(n); i < n; i++ {
		at := first + int64(i)
		switch wide := tableRange[c.Table]*wideRange + at; g.kind {
		case "wide":
			keys[i] = wide
		case "narrow":
			keys[i] = tableRange[c.Table]*narrowRange + at
		case "text":
			keys[i] = fmt.Sprintf("k%013d", wide)
		case "long text":
			keys[i] = fmt.Sprintf("k%035d", wide)
		case "bytes":
			keys[i] = fmt.Appendf(nil, "k%015d", wide)
		}
	}
	return keys, nil
}

// ascending64 also implements spi.Int64KeyGenerator.
type ascending64 struct{ ascending }

func (g *ascending64) GenerateInt64Keys(ctx context.Context, c spi.Column, keys []int64) error {
	boxed, err := g.GenerateKeys(ctx, c, len(keys))
	for i, key := range boxed {
		keys[i] = key.(int64)
	}
	return err
}

func init() {
	spi.RegisterKeyGenerator("ASCENDING", func(p spi.Props) (spi.KeyGenerator, error) {
		kind := p.String("keys", "wide")
		if kind == "wide" || kind == "narrow" {
			return &ascending64{ascending{kind: kind}}, nil
		}
		return &ascending{kind: kind}, nil
	})
}

const differentialRule = `
rules:
- !SHARDING
  tables:
    t: {keyGenerateStrategy: {column: id, keyGeneratorName: asc}}
    d: {keyGenerateStrategy: {column: id, keyGeneratorName: asc}}
    child: {keyGenerateStrategy: {column: id, keyGeneratorName: asc}}
    "we` + "`" + `ird": {keyGenerateStrategy: {column: "k` + "`" + `ey", keyGeneratorName: asc}}
  keyGenerators:
    asc: {type: ASCENDING, props: {keys: %s}}
`

// side is one of the two ways to the server.
type side struct {
	db       *sql.DB
	control  *sql.DB // for both sides
	database string
	// second is a database with another table t; "": there is none.
	second string
	shape  shape
	plain  bool
	// tables are compared and emptied. allKeys is a query for the keys of the sharded ones, with the
	// tags of the rows of table t.
	tables  []string
	allKeys string
	history bool // of the rows of t
	// sql_mode at the beginning, if it isn't the server's, and autocommit, if it isn't 1
	mode, autocommit string
}

// sides opens both ways, each with its own database, with more DSN parameters.
func sides(t *testing.T, params string, sh shape) [2]side {
	t.Helper()
	both := newPlace(t).open(t, params, sh)
	for _, s := range both {
		s.createTables(t)
	}
	return both
}

// place is two databases, and the way to use both at once.
type place struct {
	dsns    [2]string
	seconds [2]string // databases of random statements
	control *sql.DB
}

func newPlace(t *testing.T) *place {
	t.Helper()
	p := &place{dsns: [2]string{testserver.Database(t), testserver.Database(t)}}
	p.control = must(sql.Open("mysql", p.dsns[0]+"?multiStatements=true"))(t)
	t.Cleanup(func() { p.control.Close() })
	return p
}

// open opens both ways to the databases, until the end of the test.
func (p *place) open(t *testing.T, params string, sh shape) [2]side {
	t.Helper()
	r := must(rule.Parse("differential.yaml", fmt.Appendf(nil, differentialRule, sh.keys)))(t)
	name := "differential-" + strings.ReplaceAll(sh.keys, " ", "-")
	noError(t, driver.RegisterRule(name, r))
	plain := strings.TrimSuffix(p.dsns[0]+"?"+params, "?")
	ours := p.dsns[1] + "?" + strings.TrimPrefix(params+"&shardkeyRule="+name, "&")
	s := side{control: p.control, shape: sh, tables: []string{"t", "child", "`we``ird`", "free"},
		allKeys: "SELECT id, s FROM {db}.t UNION ALL SELECT id, NULL FROM {db}.child UNION ALL SELECT `k``ey`, NULL FROM {db}.`we``ird`"}
	both := [2]side{s, s}
	both[0].plain, both[0].db = true, must(sql.Open("mysql", plain))(t)
	both[1].db = must(sql.Open("shardkey", ours))(t)
	for i := range both {
		both[i].database, both[i].second = must(mysql.ParseDSN(p.dsns[i]))(t).DBName, p.seconds[i]
		t.Cleanup(func() { both[i].db.Close() })
	}
	return both
}

// keyColumn returns the type and attributes of the key column.
func (s side) keyColumn() string {
	if s.plain {
		return cmp.Or(s.shape.plain, "BIGINT") + " NOT NULL AUTO_INCREMENT PRIMARY KEY"
	}
	return s.shape.column
}

// expand replaces the names in braces.
func (s side) expand(text string) string {
	if !strings.Contains(text, "{") {
		return text
	}
	key := s.keyColumn()
	return strings.NewReplacer("{key}", key, "{type}", strings.TrimSuffix(key, " PRIMARY KEY"), "{db}", s.database, "{second}", s.second).Replace(text)
}

func (s side) createTables(t testing.TB) {
	t.Helper()
	column, moreColumns := s.keyColumn(), ""
	if !s.plain {
		moreColumns = s.shape.moreColumns
	}
	for _, ddl := range []string{
		"CREATE TABLE t (id " + column + ", a INT, u INT UNIQUE, s VARCHAR(60)" + moreColumns + ") AUTO_INCREMENT = 1000000",
		"CREATE TABLE child (id " + column + ", t_id BIGINT, a INT" + moreColumns + ") AUTO_INCREMENT = 2000000",
		"CREATE TABLE `we``ird` (`k``ey` " + column + ", `select` INT" + moreColumns + ") AUTO_INCREMENT = 3000000",
		"CREATE TABLE free (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, a BIGINT) AUTO_INCREMENT = 5000000",
		"CREATE TABLE src (id BIGINT, a INT, s VARCHAR(60))",
		"INSERT INTO src VALUES (1, 10, 'x'), (NULL, 20, 'y'), (3, 30, NULL), (0, 40, '')",
	} {
		mustExec(t, s.db, ddl)
	}
}
