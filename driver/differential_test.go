package driver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

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

// step is a statement with its arguments.
type step struct {
	text string
	args []any
}

func q(text string, args ...any) step { return step{text, args} }

func TestDifferential_cases(t *testing.T) { onEachAndOldest(t, testDifferential_cases) }

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
			if !sh.runs(t) {
				continue
			}
			for _, params := range dsns {
				t.Run(sh.name+"/"+params, func(t *testing.T) {
					both := sides(t, params, sh)
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

// onlyOne lists features of only one kind of server. Their cases also run on the others, where
// the server's error must be returned.
var onlyOne = []struct {
	has  *regexp.Regexp
	on   testserver.Servers
	what string
}{
	{regexp.MustCompile(`\bRETURNING\b`), testserver.MariaDB, "RETURNING"},
	{regexp.MustCompile(`^SET STATEMENT\b`), testserver.MariaDB, "SET STATEMENT … FOR"},
	{regexp.MustCompile(`\) AS new\b`), testserver.MySQL8, "row aliases"},
	{regexp.MustCompile(`\bROW\(`), testserver.MySQL8, "VALUES ROW(…)"},
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

// report fails the test with the list of differences.
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

// run runs the case on both sides and returns the differences.
func (c differentialCase) run(t *testing.T, both [2]side, v variant) (wrong []string) {
	var have [2][]string
	for i, s := range both {
		var untrue []string
		have[i], untrue = s.observe(t, c, v)
		wrong = append(wrong, untrue...)
	}
	if slices.ContainsFunc(have[0], func(s string) bool { return strings.HasPrefix(s, "error 1869 ") }) {
		return nil // MySQL treats the updated ID as generated and refuses; shardkey has no key from the server there
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

// ignoredID stands for the insert ID of an ignored row.
const ignoredID = -1

var insertID = regexp.MustCompile(` id [g0-9]+,`)

// observe runs a case on one side and records everything that a client can see. It replaces
// generated keys with their rank. untrue are the reported keys that are in no table.
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
	session := firstInsertID // LAST_INSERT_ID() after the latest statement
	for _, st := range c.steps {
		step, keys := s.observeStep(t, run, st, v)
		untrue = append(untrue, keys...)
		if !s.shape.noID && !strings.HasPrefix(step, "prepare: ") {
			read := "SELECT LAST_INSERT_ID()"
			if s.plain && strings.HasPrefix(step, "error") {
				// By MySQL's manual, LAST_INSERT_ID() is undefined after an error. With shardkey
				// it doesn't change.
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

// firstInsertID is LAST_INSERT_ID() before the first statement, in the format of readAll.
const firstInsertID = "[77]"

// emptyTables resets the session and the tables, but not AUTO_INCREMENT. It is faster than
// creating the tables.
func (s side) emptyTables(t *testing.T, conn *sql.Conn) {
	t.Helper()
	for _, query := range []string{"SET SESSION sql_mode = DEFAULT", "DELETE FROM t", "DELETE FROM child", "DELETE FROM `we``ird`", "DELETE FROM free", "DO LAST_INSERT_ID(" + strings.Trim(firstInsertID, "[]") + ")"} {
		mustExec(t, conn, query)
	}
}

// runner is implemented by *sql.Conn and *sql.Tx.
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
			// The server reports the key of an ignored row if it is the last row and another row
			// was inserted. shardkey never reports such a generated key.
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

// untrue returns the keys that WithKeys reported but that are in no table.
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

// ownDatabase matches the name of a side's database.
var ownDatabase = regexp.MustCompile(`shardkey_test_[a-z0-9]+`)

// nearText matches the quotation in a syntax error, which differs by the key.
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

// generatedKey matches an integer key, or a string key: k and an integer with leading zeros.
var generatedKey = regexp.MustCompile(`\b(k0*)?\d{7,19}\b`)

func keyNumber(key string) (int64, error) {
	return strconv.ParseInt(strings.TrimLeft(key, "k0"), 10, 64)
}

// rank replaces each generated key with its rank.
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

// shape describes the sharded key column. The plain side's column is always BIGINT AUTO_INCREMENT
// PRIMARY KEY.
type shape struct {
	name        string
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
	{name: "INT", column: "INT NOT NULL PRIMARY KEY", keys: "narrow"},
	{name: "VARCHAR", column: "VARCHAR(40) NOT NULL PRIMARY KEY", keys: "text", noID: true},
	{name: "CHAR(36)", column: "CHAR(36) NOT NULL PRIMARY KEY", keys: "long text", noID: true},
	{name: "BINARY(16)", column: "BINARY(16) NOT NULL PRIMARY KEY", keys: "bytes", noID: true},
	{name: "next to AUTO_INCREMENT", column: "BIGINT NOT NULL UNIQUE", moreColumns: ", n BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY INVISIBLE", keys: "wide", noID: true},
}

// runs reports whether the server supports the shape's columns.
func (sh shape) runs(t *testing.T) bool {
	t.Helper()
	return !strings.HasSuffix(sh.moreColumns, "INVISIBLE") || testserver.Has(t, testserver.Newest, "invisible columns")
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
var tableRange = map[string]int64{"t": 1, "child": 2, "we`ird": 3}

func (g *ascending) GenerateKeys(_ context.Context, c spi.Column, n int) ([]any, error) {
	keys := make([]any, n)
	for i, first := 0, g.n.Add(int64(n))-int64(n); i < n; i++ {
		at := first + int64(i)
		switch wide := tableRange[c.Table]*1_000_000_000_000 + at; g.kind {
		case "wide":
			keys[i] = wide
		case "narrow":
			keys[i] = tableRange[c.Table]*500_000_000 + at
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
    child: {keyGenerateStrategy: {column: id, keyGeneratorName: asc}}
    "we` + "`" + `ird": {keyGenerateStrategy: {column: "k` + "`" + `ey", keyGeneratorName: asc}}
  keyGenerators:
    asc: {type: ASCENDING, props: {keys: %s}}
`

// side is one of the two ways to the server.
type side struct {
	name  string
	db    *sql.DB
	shape shape
	plain bool
}

// sides opens both ways, each with its own database, with more DSN parameters.
func sides(t testing.TB, params string, sh shape) [2]side {
	t.Helper()
	r := must(rule.Parse("differential.yaml", fmt.Appendf(nil, differentialRule, sh.keys)))(t)
	name := "differential-" + strings.ReplaceAll(sh.keys, " ", "-")
	noError(t, RegisterRule(name, r))
	open := func(name, dsn string) *sql.DB {
		db := must(sql.Open(name, dsn))(t)
		t.Cleanup(func() { db.Close() })
		return db
	}
	plain := testserver.Database(t) + "?" + params
	ours := testserver.Database(t) + "?" + strings.TrimPrefix(params+"&shardkeyRule="+name, "&")
	both := [2]side{
		{"plain", open("mysql", strings.TrimSuffix(plain, "?")), sh, true},
		{"shardkey", open("shardkey", ours), sh, false},
	}
	for _, s := range both {
		s.createTables(t)
	}
	return both
}

func (s side) createTables(t testing.TB) {
	t.Helper()
	column, moreColumns := "BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY", ""
	if !s.plain {
		column, moreColumns = s.shape.column, s.shape.moreColumns
	}
	for _, ddl := range []string{
		"CREATE TABLE t (id " + column + ", a INT, u INT UNIQUE, s VARCHAR(60)" + moreColumns + ") AUTO_INCREMENT = 1000000",
		"CREATE TABLE child (id " + column + ", t_id BIGINT, a INT" + moreColumns + ") AUTO_INCREMENT = 2000000",
		"CREATE TABLE `we``ird` (`k``ey` " + column + ", `select` INT" + moreColumns + ") AUTO_INCREMENT = 3000000",
		"CREATE TABLE free (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, a INT) AUTO_INCREMENT = 500",
		"CREATE TABLE src (id BIGINT, a INT, s VARCHAR(60))",
		"INSERT INTO src VALUES (1, 10, 'x'), (NULL, 20, 'y'), (3, 30, NULL), (0, 40, '')",
	} {
		mustExec(t, s.db, ddl)
	}
}

// seeds are the seeds of every run: the first ones, and those that once found a bug. make soak
// uses others.
var seeds = []uint64{1, 2, 3, 4}

// randomStatements is the number of statements per server in every run.
const randomStatements = 8_000

// randomVariants are the ways to run generated statements.
var randomVariants = []variant{
	{shape: shapes[0]},
	{shape: shapes[0], prepared: true},
	{shape: shapes[0], params: "clientFoundRows=true"},
	{shape: shapes[1], params: "interpolateParams=true"},
	{shape: shapes[1], tx: true},
	{shape: shapes[1], prepared: true, params: "clientFoundRows=true"},
	{shape: shapes[2], prepared: true, tx: true},
	{shape: shapes[3]},
	{shape: shapes[4], prepared: true},
	{shape: shapes[5], params: "interpolateParams=true"},
	{shape: shapes[6]},
	{shape: shapes[3], prepared: true, params: "parseTime=true"},
}

// TestDifferential_random runs random statements on both sides. A failure reports the seed that
// reproduces it.
func TestDifferential_random(t *testing.T) { onEachAndOldest(t, testDifferential_random) }

func testDifferential_random(t *testing.T) {
	variants := slices.DeleteFunc(slices.Clone(randomVariants), func(v variant) bool { return !v.shape.runs(t) })
	each, seeds := randomStatements/len(seeds)/len(randomVariants), seeds
	if testserver.IsOldest(t) {
		seeds = seeds[:1]
	}
	t.Logf("%d generated statements compared with AUTO_INCREMENT", each*len(variants)*len(seeds))
	for i, v := range variants {
		t.Run(v.String(), func(t *testing.T) {
			both := sides(t, v.params, v.shape)
			for _, seed := range seeds {
				runRandom(t, both, v, i, seed, each)
			}
		})
	}
}

// TestDifferential_soak runs TestDifferential_random with new seeds for the duration of
// SHARDKEY_SOAK, or once with the seed of SHARDKEY_SEED.
func TestDifferential_soak(t *testing.T) {
	text, seed := os.Getenv("SHARDKEY_SOAK"), os.Getenv("SHARDKEY_SEED")
	if text == "" && seed == "" {
		t.Skip("SHARDKEY_SOAK is not set: make soak runs this")
	}
	if testserver.Each(t, TestDifferential_soak) {
		return
	}
	var soak time.Duration
	if text != "" {
		var err error
		if soak, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	for round := 0; ; round++ {
		next := rand.Uint64() >> 1
		if seed != "" {
			var err error
			if next, err = strconv.ParseUint(seed, 10, 64); err != nil {
				t.Fatal(err)
			}
		}
		for i, v := range randomVariants {
			if !v.shape.runs(t) {
				continue
			}
			t.Run(fmt.Sprintf("%d/%s", next, v), func(t *testing.T) {
				runRandom(t, sides(t, v.params, v.shape), v, i, next, 500)
			})
		}
		if seed != "" || t.Failed() || time.Since(began) > soak {
			return
		}
	}
}

// runRandom runs statements of a seed.
func runRandom(t *testing.T, both [2]side, v variant, i int, seed uint64, statements int) {
	t.Helper()
	g := &generator{Rand: rand.New(rand.NewPCG(seed, uint64(i))), shape: v.shape,
		returning: testserver.Has(t, testserver.MariaDB, "RETURNING"), aliases: testserver.Has(t, testserver.MySQL8, "row aliases")}
	for n := 0; n < statements; {
		c := g.statements()
		n += len(c.steps)
		if wrong := c.run(t, both, v); wrong != nil {
			report(t, append(wrong, fmt.Sprintf("seed %d", seed)))
			return
		}
	}
}

// generator generates random statements.
type generator struct {
	*rand.Rand
	shape     shape
	returning bool   // features of the server
	aliases   bool   // also VALUES ROW, which came with aliases
	modes     string // sql_mode that earlier statements have set
	// keys selects the keys of the current statement. MariaDB confuses an existing key with a
	// generated one in a REPLACE that has both, and refuses it. So a REPLACE has either explicit
	// or generated keys.
	keys givenKeys
}

type givenKeys int

const (
	anyKeys givenKeys = iota
	missingKeys
	explicitKeys
)

func (g *generator) statements() differentialCase {
	c := differentialCase{name: "generated"}
	g.modes = ""
	for range 4 + g.IntN(5) {
		c.steps = append(c.steps, g.statement())
	}
	return c
}

func (g *generator) pick(words ...string) string { return words[g.IntN(len(words))] }

// one returns true with probability 1/n.
func (g *generator) one(n int) bool { return g.IntN(n) == 0 }

func (g *generator) statement() step {
	if st, ok := g.around(); ok {
		return st
	}
	return g.insert()
}

// insert returns an INSERT or REPLACE into table t.
func (g *generator) insert() step {
	st := step{}
	verb := g.pick("INSERT", "INSERT", "insert", "INSERT", "REPLACE")
	insert := strings.EqualFold(verb, "INSERT")
	if g.keys = anyKeys; !insert {
		g.keys = missingKeys + givenKeys(g.IntN(2))
	}
	if g.shape.noID {
		g.keys = missingKeys
	}
	b := &strings.Builder{}
	b.WriteString(g.comment())
	b.WriteString(verb + " ")
	if insert {
		b.WriteString(g.pick("", "", "", "IGNORE ", "IGNORE "))
	}
	b.WriteString(g.pick("INTO ", "INTO ", "into/**/", ""))
	b.WriteString(g.pick("t", "`t`", "t ") + g.comment())
	form := g.source(b, &st)
	if insert && g.one(3) {
		g.onDuplicate(b, &st, form)
	}
	if g.returning && g.one(12) {
		b.WriteString(" RETURNING " + g.pick("id, a", "a", "*"))
	}
	b.WriteString(g.pick("", "", "", ";", " -- end", " # end ?", "/* ) */"))
	st.text = b.String()
	return st
}

// around returns a statement between a table's INSERTs.
func (g *generator) around() (step, bool) {
	switch g.IntN(24) {
	case 0:
		return q("SELECT COUNT(*) FROM t" + g.ifID(" WHERE id > LAST_INSERT_ID()")), true
	case 1, 2:
		return q("INSERT INTO child (t_id, a) VALUES (" + g.ifID("LAST_INSERT_ID() + ") + "0, " + strconv.Itoa(g.IntN(9)) + ")"), true
	case 3:
		return q("INSERT INTO free (a) VALUES (1)"), true
	case 4:
		return q("UPDATE t SET a = a + 1 WHERE u = " + g.unique() + g.ifID(" OR id = LAST_INSERT_ID()")), true
	case 5:
		return q("DELETE FROM t WHERE u = " + g.unique()), true
	case 6:
		g.modes = g.pick("", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "STRICT_ALL_TABLES", "STRICT_ALL_TABLES,ANSI_QUOTES")
		if !g.shape.noID && g.one(5) {
			g.modes = "NO_AUTO_VALUE_ON_ZERO"
		}
		return q("SET " + g.pick("", "SESSION ", "@@session.") + "sql_mode = '" + g.modes + "'"), true
	case 7:
		return q("SET NAMES " + g.pick("utf8mb4", "latin1", "gbk")), true
	case 8: // it fails, and the next statement may read LAST_INSERT_ID()
		return q(g.pick(
			"INSERT INTO t (a, u) VALUES (1, 7), (2, 7)",
			"INSERT INTO t (nope) VALUES (1)",
			"INSERT INTO t (a) SELECT nope FROM src",
			"INSERT INTO t (a, u) SELECT 1, 8 UNION ALL SELECT 2, 8",
			"INSERT INTO t (a) VALUES (1), ((SELECT a FROM src))",
			"INSERT INTO t (s) VALUES ('x'), (REPEAT('x', 70))")), true
	}
	return step{}, false
}

// ifID returns text if insert IDs are compared.
func (g *generator) ifID(text string) string {
	if g.shape.noID {
		return ""
	}
	return text
}

// form is the source of an INSERT's rows.
type form int

const (
	fromValues form = iota
	fromRows        // VALUES with all columns listed; an alias may follow
	fromQuery
)

// source writes the columns and the source of their values.
func (g *generator) source(b *strings.Builder, st *step) form {
	switch {
	case g.one(6):
		b.WriteString(" SET ")
		for i, column := range g.columns() {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(column + " = " + g.value(column, st))
		}
		return fromValues
	case g.one(8):
		b.WriteString(" VALUES ")
		g.rows(b, st, []string{"id", "a", "u", "s"}, "")
		return fromValues
	case g.one(15):
		b.WriteString(g.pick(" () VALUES ()", " VALUES ()", " () VALUES (), ()"))
		return fromValues
	case g.one(8):
		b.WriteString(" (a, u, s) SELECT a, " + g.unique() + " + a, s FROM src WHERE a > " + strconv.Itoa(10*g.IntN(5)) + " ORDER BY a")
		return fromQuery
	case !g.shape.noID && !strings.Contains(g.modes, "ZERO") && g.keys == anyKeys && g.one(8): // keys NULL and 0 together with explicit ones
		b.WriteString(" (id, a, u) SELECT id, a, " + g.unique() + " + a / 10 FROM src WHERE a > " + strconv.Itoa(10*g.IntN(4)) + " ORDER BY a")
		return fromQuery
	case g.one(12):
		b.WriteString(" (a, u) " + g.pick("(SELECT 5, ?)", "SELECT ?, 9 UNION ALL SELECT 6, 10", "WITH c AS (SELECT ? AS x) SELECT x, x FROM c"))
		st.args = append(st.args, g.IntN(6))
		return fromQuery
	}
	columns := g.columns()
	row := ""
	verb := g.pick("VALUES ", "VALUE", "values")
	if g.aliases && g.one(6) {
		verb, row = "VALUES ", "ROW"
	}
	b.WriteString(g.pick(" (", "(") + strings.Join(columns, g.pick(",", ", ", " /*c*/,")) + ") " + verb)
	g.rows(b, st, columns, row)
	return fromRows
}

func (g *generator) onDuplicate(b *strings.Builder, st *step, from form) {
	if from == fromRows && g.aliases && g.one(3) {
		b.WriteString(g.pick(" AS new ON DUPLICATE KEY UPDATE a = 5 + COALESCE(t.a, 0)", " AS `new` ON DUPLICATE KEY UPDATE t.s = 'dup', a = t.u"))
		return
	}
	b.WriteString(" ON DUPLICATE KEY UPDATE ")
	forms := 4
	if from == fromQuery {
		forms = 2 // an unqualified column would be ambiguous
	} else if g.shape.noID {
		forms = 3
	}
	switch g.IntN(forms) {
	case 0:
		b.WriteString("t.a = VALUES(a)")
	case 1:
		b.WriteString("t.a = COALESCE(t.a, 0) + 1")
	case 2:
		b.WriteString("a = ?, s = 'on dup?'")
		st.args = append(st.args, g.IntN(5))
	case 3:
		b.WriteString("id = LAST_INSERT_ID(id), a = 5")
	}
}

func (g *generator) comment() string {
	return g.pick("", "", "", " ", "/* c */", "/* ( ' */ ", "-- x\n", "# y '\n", "/*+ hint */ ")
}

func (g *generator) columns() []string {
	all := []string{"a", "u", "s"}
	if g.one(2) {
		all = append(all, g.pick("id", "`id`", "ID", "t.id"))
	}
	g.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:1+g.IntN(len(all))]
}

func (g *generator) rows(b *strings.Builder, st *step, columns []string, row string) {
	for i := range 1 + g.IntN(4) {
		if i > 0 {
			b.WriteString(g.pick(",", ", ", " ,/* , */"))
		}
		b.WriteString(row + g.pick("(", "( ", "(/**/"))
		for j, column := range columns {
			if j > 0 {
				b.WriteString(g.pick(",", ", "))
			}
			b.WriteString(g.value(column, st))
		}
		if g.one(60) {
			b.WriteString(", 1") // wrong number of values
		}
		b.WriteString(g.pick(")", " )"))
	}
}

func (g *generator) value(column string, st *step) string {
	bind := func(v any) string { st.args = append(st.args, v); return "?" }
	switch column {
	case "a":
		if g.one(2) {
			return bind(g.IntN(100))
		}
		return g.pick("1", "1 + 1", "NULL", "DEFAULT", "ABS(-3)", "(2)", "'7'", "LENGTH('a,b)')")
	case "u":
		if g.one(3) {
			return bind(g.IntN(6))
		}
		return g.pick(g.unique(), "NULL")
	case "s":
		if g.one(2) {
			return bind(g.pick("it's", "a\\b", "?", "", `"`, "ключ"))
		}
		texts := []string{`'it''s'`, `'),('`, "NULL", "CONCAT('a', ',')", "_utf8mb4'z'", "'?'", "X'41'"}
		if !strings.Contains(g.modes, "ANSI_QUOTES") {
			texts = append(texts, `"x'y"`)
		}
		if strings.Contains(g.modes, "NO_BACKSLASH_ESCAPES") {
			return g.pick(append(texts, `'\'`)...)
		}
		return g.pick(append(texts, `'a\'b'`, `'\\'`)...)
	}
	if g.shape.noID {
		if g.one(2) {
			return bind(nil)
		}
		return g.pick("NULL", "DEFAULT")
	}
	form := g.IntN(12)
	switch g.keys {
	case missingKeys:
		form = g.IntN(8)
	case explicitKeys:
		form = 8 + g.IntN(4)
	}
	switch form {
	case 0, 1:
		return "NULL"
	case 2, 3:
		if strings.Contains(g.modes, "ZERO") {
			return "NULL" // the servers store 0 for DEFAULT
		}
		return "DEFAULT"
	case 4:
		return g.pick("0", "'0'", "00", "(0)", "(NULL)")
	case 5, 6:
		return bind(nil)
	case 7:
		return bind(g.zero())
	case 8:
		return bind(g.given())
	case 9:
		return bind(strconv.Itoa(g.given()))
	}
	return g.pick(strconv.Itoa(g.given()), fmt.Sprintf("'%d'", g.given()))
}

func (g *generator) zero() any {
	return []any{0, int64(0), uint64(0), "0", false, 0.0}[g.IntN(6)]
}

func (g *generator) given() int     { return 100 + g.IntN(400) }
func (g *generator) unique() string { return strconv.Itoa(g.IntN(6)) }
