package driver_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/testserver"
)

// TestDifferentialRandom runs generated statements on both sides. A failure is
// run again with the seed that it prints: SHARDKEY_DIFFERENTIAL_SEED; more
// statements than the default come with SHARDKEY_DIFFERENTIAL_STATEMENTS.
func TestDifferentialRandom(t *testing.T) {
	if testserver.Each(t, TestDifferentialRandom) {
		return
	}
	seed := envInt(t, "SHARDKEY_DIFFERENTIAL_SEED", 1)
	total := envInt(t, "SHARDKEY_DIFFERENTIAL_STATEMENTS", 3000)
	t.Logf("seed %d, %d statements", seed, total)
	known := newKnown(t)
	defer known.checkAllFail(t)
	variants := []variant{{}, {prepared: true}, {params: "interpolateParams=true"}, {tx: true}, {params: "clientFoundRows=true"}}
	for i, v := range variants {
		t.Run(v.String(), func(t *testing.T) {
			g := &generator{Rand: rand.New(rand.NewPCG(uint64(seed), uint64(i)))}
			both := sides(t, v.params)
			for n := int64(0); n < total/int64(len(variants)); {
				c := g.statements()
				n += int64(len(c.steps))
				if wrong := c.run(t, both, v); wrong != nil {
					known.judge(t, "random", append(wrong, fmt.Sprintf("seed %d", seed)))
					return
				}
			}
			known.judge(t, "random", nil)
		})
	}
}

func envInt(t *testing.T, name string, def int64) int64 {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return def
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// generator makes statements at random.
type generator struct {
	*rand.Rand
	// keys says which keys the present statement gives. MariaDB refuses a
	// REPLACE of an existing key behind a generated one (it takes the one for
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
	for range 4 + g.IntN(5) {
		c.steps = append(c.steps, g.statement())
	}
	return c
}

func (g *generator) pick(words ...string) string { return words[g.IntN(len(words))] }

// one tells yes once in n times.
func (g *generator) one(n int) bool { return g.IntN(n) == 0 }

func (g *generator) statement() step {
	switch g.IntN(20) {
	case 0:
		return q("SELECT LAST_INSERT_ID(), COUNT(*) FROM t")
	case 1:
		return q("INSERT INTO child (t_id, a) VALUES (LAST_INSERT_ID(), " + strconv.Itoa(g.IntN(9)) + ")")
	case 2:
		return q("INSERT INTO free (a) VALUES (1)")
	case 3:
		return q("UPDATE t SET a = a + 1 WHERE id = LAST_INSERT_ID()")
	case 4:
		return q("DELETE FROM t WHERE u = " + g.unique())
	}
	st := step{}
	verb := g.pick("INSERT", "INSERT", "insert", "INSERT", "REPLACE")
	insert := strings.EqualFold(verb, "INSERT")
	if g.keys = anyKeys; !insert {
		g.keys = missingKeys + givenKeys(g.IntN(2))
	}
	b := &strings.Builder{}
	b.WriteString(g.comment())
	b.WriteString(verb + " ")
	if insert {
		b.WriteString(g.pick("", "", "", "IGNORE ", "/*! IGNORE */ "))
	}
	b.WriteString(g.pick("INTO ", "INTO ", "into/**/", ""))
	b.WriteString(g.pick("t", "`t`", "t ") + g.comment())
	switch {
	case g.one(6):
		b.WriteString(" SET ")
		columns := g.columns()
		for i, column := range columns {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(column + " = " + g.value(column, &st))
		}
	case g.one(8):
		b.WriteString(" VALUES ")
		g.rows(b, &st, []string{"id", "a", "u", "s"})
	case g.one(15):
		b.WriteString(g.pick(" () VALUES ()", " VALUES ()", " () VALUES (), ()"))
	case g.one(10):
		b.WriteString(" (a, u, s) SELECT a, " + g.unique() + " + a, s FROM src WHERE a > " + strconv.Itoa(10*g.IntN(5)) + " ORDER BY a")
	default:
		columns := g.columns()
		b.WriteString(g.pick(" (", "(") + strings.Join(columns, g.pick(",", ", ", " /*c*/,")) + ") " + g.pick("VALUES ", "VALUE", "values"))
		g.rows(b, &st, columns)
	}
	if insert && g.one(3) {
		b.WriteString(" ON DUPLICATE KEY UPDATE ")
		forms := 4
		if strings.Contains(b.String(), "SELECT") {
			forms = 2 // an unqualified column would be ambiguous
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
	b.WriteString(g.pick("", "", "", ";", " -- end", " # end ?", "/* ) */"))
	st.text = b.String()
	return st
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

func (g *generator) rows(b *strings.Builder, st *step, columns []string) {
	for i := range 1 + g.IntN(4) {
		if i > 0 {
			b.WriteString(g.pick(",", ", ", " ,/* , */"))
		}
		b.WriteString(g.pick("(", "( ", "(/**/"))
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
		return g.pick(`'it''s'`, `"x'y"`, `'a\'b'`, `'),('`, "NULL", "CONCAT('a', ',')", `'\\'`, "_utf8mb4'z'", "'?'", "X'41'")
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
