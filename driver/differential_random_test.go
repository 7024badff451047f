package driver

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/testserver"
)

// seeds are those of every run: the first, and each that ever found something.
// Others come with make soak.
var seeds = []uint64{1, 2, 3, 4}

// randomStatements is how many a server gets in every run.
const randomStatements = 8_000

// randomVariants are the ways that generated statements run.
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

// TestDifferential_random runs generated statements on both sides. A failure says
// its seed and is found again by it.
func TestDifferential_random(t *testing.T) {
	if testserver.Each(t, TestDifferential_random) {
		return
	}
	t.Parallel()
	each := randomStatements / len(seeds) / len(randomVariants)
	testserver.Ran(t, "generated statements compared with AUTO_INCREMENT", fmt.Sprint(each*len(randomVariants)*len(seeds)))
	for i, v := range randomVariants {
		t.Run(v.String(), func(t *testing.T) {
			both := sides(t, v.params, v.shape)
			for _, seed := range seeds {
				runRandom(t, both, v, i, seed, each)
			}
		})
	}
}

// TestDifferential_soak is TestDifferential_random with fresh seeds for as long as
// SHARDKEY_SOAK says, or with the seed that SHARDKEY_SEED says, once.
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
			t.Run(fmt.Sprintf("%d/%s", next, v), func(t *testing.T) {
				runRandom(t, sides(t, v.params, v.shape), v, i, next, 500)
			})
		}
		if seed != "" || t.Failed() || time.Since(began) > soak {
			return
		}
	}
}

// runRandom runs so many statements of a seed.
func runRandom(t *testing.T, both [2]side, v variant, i int, seed uint64, statements int) {
	t.Helper()
	g := &generator{Rand: rand.New(rand.NewPCG(seed, uint64(i))), shape: v.shape,
		returning: testserver.Has(t, testserver.KindMariaDB, "RETURNING"), aliases: testserver.Has(t, testserver.KindMySQL, "row aliases")}
	for n := 0; n < statements; {
		c := g.statements()
		n += len(c.steps)
		if wrong := c.run(t, both, v); wrong != nil {
			report(t, append(wrong, fmt.Sprintf("seed %d", seed)))
			return
		}
	}
}

// generator makes statements at random.
type generator struct {
	*rand.Rand
	shape     shape
	returning bool   // what the server has
	aliases   bool   // and VALUES ROW, which came with them
	modes     string // the sql_mode that the statements before have set
	// keys says which keys the present statement has. MariaDB refuses a
	// REPLACE of an existing key after a generated one (it takes the one for
	// the other), so that a REPLACE has either.
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

// one returns true once in n times.
func (g *generator) one(n int) bool { return g.IntN(n) == 0 }

func (g *generator) statement() step {
	if st, ok := g.around(); ok {
		return st
	}
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

// around makes what stands between a table's INSERTs.
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
	case 8: // fails, and the next may read LAST_INSERT_ID()
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

// ifID is a text for keys whose insert ids are compared.
func (g *generator) ifID(text string) string {
	if g.shape.noID {
		return ""
	}
	return text
}

// form is where an INSERT's rows come from.
type form int

const (
	fromValues form = iota
	fromRows        // VALUES with all columns named, which an alias may follow
	fromQuery
)

// source writes the columns and where their values come from.
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
	case !g.shape.noID && !strings.Contains(g.modes, "ZERO") && g.keys == anyKeys && g.one(8): // keys NULL and 0 among given ones
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
			b.WriteString(", 1") // the wrong number of values
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
