// Package differential compares shardkey with AUTO_INCREMENT: its tests run the same statements
// through both. Other tests use its random INSERTs and its format of results.
package differential

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// step is a statement with its arguments.
type step struct {
	text string
	args []any
	// read is a query that runs right after the statement, instead of SELECT LAST_INSERT_ID().
	read string
	// marks are words for what the statement has, for knownClass.
	marks string
	// parts are the statements of a string of several.
	parts []step
	// kept: the program prepares the statement once, and executes it again in later steps.
	kept bool
	// by is the session that executes the statement.
	by session
}

// session is who executes a step.
type session int

const (
	own    session = iota
	other          // another connection of the same connector
	unseen         // a connection that shardkey doesn't see, as that of another process
)

// Inserts generates random INSERTs and REPLACEs into table t (id, a, u, s).
type Inserts struct {
	*rand.Rand
	Returning bool   // features of the server
	Aliases   bool   // also VALUES ROW, which came with aliases
	modes     string // sql_mode that earlier statements have set
	isView    bool   // t is a view: MySQL crashes or inserts no rows in an upsert of a query's rows
	noID      bool   // there are no explicit keys, and no insert IDs
	// keys selects the keys of the current statement. MariaDB confuses an existing key with a
	// generated one in a REPLACE that has both, and refuses it. So a REPLACE has either explicit
	// or generated keys.
	keys givenKeys
	// objects adds functions and other tables; nil: none.
	objects interface {
		worldValue(column string, st *step, bind func(any) string) string
		updateList(b *strings.Builder, from form)
	}
}

// Insert returns the next statement and its arguments.
func (g *Inserts) Insert() (query string, args []any) {
	st := g.insert()
	return st.text, st.args
}

type givenKeys int

const (
	anyKeys givenKeys = iota
	missingKeys
	explicitKeys
)

func (g *Inserts) pick(words ...string) string { return words[g.IntN(len(words))] }

// one returns true with probability 1/n.
func (g *Inserts) one(n int) bool { return g.IntN(n) == 0 }

// insert returns an INSERT or REPLACE into table t.
func (g *Inserts) insert() step {
	st := step{}
	verb := g.pick("INSERT", "INSERT", "insert", "INSERT", "REPLACE")
	insert := strings.EqualFold(verb, "INSERT")
	if g.keys = anyKeys; !insert {
		g.keys = missingKeys + givenKeys(g.IntN(2))
	}
	if g.noID {
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
	if insert && !(form == fromQuery && g.isView) && g.one(3) {
		g.onDuplicate(b, &st, form)
	}
	if g.Returning && g.one(12) {
		b.WriteString(" RETURNING " + g.pick("id, a", "a", "*"))
	}
	b.WriteString(g.pick("", "", "", ";", " -- end", " # end ?", "/* ) */"))
	st.text = b.String()
	return st
}

// ifID returns text if insert IDs are compared.
func (g *Inserts) ifID(text string) string {
	if g.noID {
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
func (g *Inserts) source(b *strings.Builder, st *step) form {
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
	case g.one(15) && !(g.isView && g.Returning): // MariaDB refuses it for a view
		b.WriteString(g.pick(" () VALUES ()", " VALUES ()", " () VALUES (), ()"))
		return fromValues
	case g.one(8):
		b.WriteString(" (a, u, s) SELECT a, " + g.unique() + " + a, s FROM src WHERE a > " + strconv.Itoa(10*g.IntN(5)) + " ORDER BY a")
		return fromQuery
	case !g.noID && !strings.Contains(g.modes, "ZERO") && g.keys == anyKeys && g.one(8): // keys NULL and 0 together with explicit ones
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
	if g.Aliases && g.one(6) {
		verb, row = "VALUES ", "ROW"
	}
	b.WriteString(g.pick(" (", "(") + strings.Join(columns, g.pick(",", ", ", " /*c*/,")) + ") " + verb)
	g.rows(b, st, columns, row)
	return fromRows
}

func (g *Inserts) onDuplicate(b *strings.Builder, st *step, from form) {
	if from == fromRows && g.Aliases && g.one(3) {
		b.WriteString(g.pick(" AS new ON DUPLICATE KEY UPDATE a = 5 + COALESCE(t.a, 0)", " AS `new` ON DUPLICATE KEY UPDATE t.s = 'dup', a = t.u",
			" AS new ON DUPLICATE KEY UPDATE a = id IS NULL", " AS new ON DUPLICATE KEY UPDATE t.a = NULL", g.ifID(" AS new ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)")))
		return
	}
	b.WriteString(" ON DUPLICATE KEY UPDATE ")
	if g.objects != nil && g.one(2) {
		g.objects.updateList(b, from)
		return
	}
	forms := 4
	if from == fromQuery {
		forms = 2 // an unqualified column would be ambiguous
	} else if g.noID {
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

func (g *Inserts) comment() string {
	return g.pick("", "", "", " ", "/* c */", "/* ( ' */ ", "-- x\n", "# y '\n", "/*+ hint */ ")
}

func (g *Inserts) columns() []string {
	all := []string{"a", "u", "s"}
	if g.one(2) {
		all = append(all, g.pick("id", "`id`", "ID", "t.id"))
	}
	g.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:1+g.IntN(len(all))]
}

func (g *Inserts) rows(b *strings.Builder, st *step, columns []string, row string) {
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

func (g *Inserts) value(column string, st *step) string {
	bind := func(v any) string { st.args = append(st.args, v); return "?" }
	if g.objects != nil {
		if text := g.objects.worldValue(column, st, bind); text != "" {
			return text
		}
	}
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
	if g.noID {
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

func (g *Inserts) zero() any {
	return []any{0, int64(0), uint64(0), "0", false, 0.0}[g.IntN(6)]
}

func (g *Inserts) given() int     { return 100 + g.IntN(400) }
func (g *Inserts) unique() string { return strconv.Itoa(g.IntN(6)) }
