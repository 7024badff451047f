package differential

import (
	"regexp"
	"slices"
	"strings"
)

// known is a class of differences that docs/reference/sql-differences.md lists, or will. A class is as narrow
// as the line there.
type known struct {
	name string
	is   func(*world, *difference) bool
}

// knownClass returns the class of a difference, or "" if it isn't known.
func knownClass(w *world, d *difference) string {
	w = w.with(d.steps)
	for _, k := range slices.Concat(knownKeys, knownInsertIDs, knownReads, knownSelects) {
		if k.is(w, d) {
			return k.name
		}
	}
	return ""
}

// with returns the world with the triggers that steps create. Those of a view's table are named as
// its own.
func (w *world) with(steps []step) *world {
	more := *w
	more.triggers = slices.Clone(w.triggers)
	for _, st := range steps {
		if ddl, ok := strings.CutPrefix(st.text, "CREATE TRIGGER "); ok {
			more.triggers = append(more.triggers, object{"TRIGGER", "later", strings.ReplaceAll(ddl, "{db}.", "")})
		}
	}
	for i := range more.triggers {
		more.triggers[i].ddl = strings.Replace(more.triggers[i].ddl, " ON b ", " ON t ", 1)
	}
	return &more
}

// knownKeys are about which keys rows get.
var knownKeys = []known{
	{"an upsert that changes the key to another row's: 1869", func(_ *world, d *difference) bool {
		return errorNumber(d.plain.err) == 1869
	}},
	{"an explicit key above all others", func(_ *world, d *difference) bool {
		number := errorNumber(d.plain.err)
		return d.last().has("dirty key") && (number == 167 || number == 1467 || d.isSelect() && d.plain.id >= 7*generatedFrom ||
			(d.field != "error" || number == 1062) && (hugeKey.MatchString(d.last().text) || bigColumn.MatchString(d.last().marks)))
	}},
	{"an upsert that changes the key of a row that it has inserted", func(_ *world, d *difference) bool {
		return strings.Contains(d.texts(), "id = 600") && !slices.Contains([]string{"error", "affected", "WithKeys"}, d.field)
	}},
	{"REPLACE with an explicit key that exists, after a generated one", func(w *world, d *difference) bool {
		return errorNumber(d.plain.err) == 1062 && d.ours.err == nil && w.features.mariaDB && d.has("REPLACE")
	}},
	{"DEFAULT under NO_AUTO_VALUE_ON_ZERO", func(_ *world, d *difference) bool {
		return strings.Contains(d.texts(), "ON_ZERO") && d.has("DEFAULT")
	}},
	{"VALUES(id) in an update list", func(_ *world, d *difference) bool {
		return d.field != "error" && strings.Contains(d.texts(), "VALUES(id)") && (d.has("VALUES(id)") || d.isTable("t") || d.field == "rows")
	}},
	{"keys of rows that the same string replaces", func(_ *world, d *difference) bool {
		return d.field == "WithKeys" && isString(d.last().text) && d.has("REPLACE")
	}},
}

var hugeKey = regexp.MustCompile(`-1 AS UNSIGNED|1e30|18446744073709551615|9223372036854775807|-9{20}|LAST_INSERT_ID\(\)|DATE '`)

// knownInsertIDs are about LastInsertId and LAST_INSERT_ID().
var knownInsertIDs = []known{
	{"LastInsertId of an expression, or of a key that the server changes", func(_ *world, d *difference) bool {
		expression := d.last().has("dirty key") || hides.MatchString(d.texts()) && d.has("f1(1)") // by another column's place
		return d.field == "LastInsertId" && (d.ours.id == 0 || d.has("DUPLICATE") && d.ours.id < generatedFrom) && expression
	}},
	{"REPLACE of several rows, of which a trigger may skip one", func(w *world, d *difference) bool {
		return (d.field == "LastInsertId" || d.field == "LAST_INSERT_ID()") && d.has("REPLACE") && w.features.skips && w.hasTrigger("BEFORE INSERT ON t", "02TRG", "(", "CALL")
	}},
	{"upsert of several rows, of which a trigger skips one", func(w *world, d *difference) bool {
		return d.field == "LastInsertId" && d.has("DUPLICATE") && w.hasTrigger("INSERT ON t", "02TRG")
	}},
	{"upsert by an explicit key that changes nothing, with clientFoundRows", func(w *world, d *difference) bool {
		return d.field == "LastInsertId" && d.plain.id == 0 && d.has("DUPLICATE") && strings.Contains(w.params, "clientFoundRows") && (d.ours.id < generatedFrom || severalOrTold.MatchString(d.last().text))
	}},
	{"a view, or a temporary table that hides another", func(w *world, d *difference) bool {
		text := d.texts()
		reported := slices.Contains([]string{"LastInsertId", "LAST_INSERT_ID()", "read"}, d.field) || d.isTable("child", "free", "log")
		used := w.kind == view && (d.isTable("t") || d.field == "rows") && d.has("id = LAST_INSERT_ID()")
		return (w.kind == view || hides.MatchString(text)) && severalOrTold.MatchString(text) && (reported && d.onlyIDsDiffer() || used)
	}},
	{"upsert of an existing row of a system-versioned table", func(w *world, d *difference) bool {
		return w.kind == versioned && d.field == "LastInsertId" && d.ours.id == 0 && d.has("DUPLICATE")
	}},
	{"upsert of an existing row that reads LAST_INSERT_ID()", func(_ *world, d *difference) bool {
		return d.field == "LastInsertId" && d.ours.id == 0 && d.has("DUPLICATE") && d.has("LAST_INSERT_ID(")
	}},
	{"upsert of an existing row with an UPDATE trigger: LastInsertId", func(w *world, d *difference) bool {
		return d.field == "LastInsertId" && d.ours.id == 0 && d.has("DUPLICATE") && w.hasTrigger("UPDATE ON t", "")
	}},
}

var (
	hides = regexp.MustCompile(`CREATE TEMPORARY TABLE t \(s`)
	// severalOrTold matches statements with several rows or a LAST_INSERT_ID(expr).
	severalOrTold = regexp.MustCompile(`RETURNING|DUPLICATE|REPLACE|LAST_INSERT_ID\(\d|\bfs\(|\)\s*,[^()'"]*\(`)
)

// knownReads are about what reads LAST_INSERT_ID() or counts without naming them.
var knownReads = []known{
	{"a view or function that reads LAST_INSERT_ID()", func(_ *world, d *difference) bool {
		return d.field == "error" && errorNumber(d.ours.err) == 1264 && (readsInside.MatchString(d.last().text) || d.has("LAST_INSERT_ID()")) || d.field == "rows" && readsInside.MatchString(d.texts()) && d.onlyIDsDiffer() || d.field == "read" && readsInside.MatchString(d.last().read) && (d.onlyIDsDiffer() || strings.Contains(d.last().read, "COUNT")) ||
			readsInside.MatchString(d.last().text) && (d.field == "rows" || d.isTable("t", "child", "free", "log")) && d.onlyIDsDiffer() ||
			whereInside.MatchString(d.last().text) && (d.field == "affected" || d.isTable("t")) || (d.has("t.s = fl()") || d.has("DUPLICATE") && readsInside.MatchString(d.last().text)) && d.field == "affected"
	}},
	{"a trigger of a table without a rule, or of UPDATE or DELETE, that reads LAST_INSERT_ID()", func(w *world, d *difference) bool {
		return d.isTable("free", "log") && d.onlyIDsDiffer() &&
			(w.hasTrigger("ON free", "LAST_INSERT_ID()", "fl()") || w.hasTrigger("DELETE ON", "LAST_INSERT_ID()", "fl()") || w.hasTrigger("UPDATE ON", "LAST_INSERT_ID()", "fl()"))
	}},
	{"a trigger that reads LAST_INSERT_ID() during an upsert of several rows, or INSERT … SELECT", func(w *world, d *difference) bool {
		return d.isTable("free", "log") && d.onlyIDsDiffer() &&
			((d.has("DUPLICATE") || d.isSelect()) && w.hasTrigger("ON t", "LAST_INSERT_ID()", "fl()") || d.isSelect() && w.hasTrigger("INSERT ON d", "LAST_INSERT_ID()", "fl()"))
	}},
	{"within 10 seconds of another process's ALTER or CREATE TRIGGER", func(w *world, d *difference) bool {
		reports := slices.Contains([]string{"LastInsertId", "LAST_INSERT_ID()", "WithKeys", "read"}, d.field) || d.isTable("child", "free", "log") && d.onlyIDsDiffer()
		return slices.ContainsFunc(d.steps, func(st step) bool { return st.by == unseen && alters.MatchString(st.text) }) && (reports || !listsColumns.MatchString(d.last().text))
	}},
	{"a view without tables between SET TRANSACTION and an INSERT", func(w *world, d *difference) bool {
		return errorNumber(d.plain.err) == 1792 && (setThenView.MatchString(d.texts()) || w.kind == myISAM && strings.Contains(d.texts(), "SET TRANSACTION"))
	}},
	{"ROW_COUNT() or warnings after a statement for which shardkey asked", func(_ *world, d *difference) bool {
		return d.field == "read" && readsCounts.MatchString(d.last().read)
	}},
}

var (
	alters       = regexp.MustCompile(`ALTER TABLE|TRIGGER`)
	listsColumns = regexp.MustCompile(`(?i)\b(t|d)[^(]*\((\s|[a-z` + "`" + `.,]|/\*c\*/)+\)\s*(VALUE|SELECT|WITH|TABLE|\()|\bSET\b`)
	readsInside  = regexp.MustCompile(`\bfl\(|\bvl\b|\bvf\b`)
	whereInside  = regexp.MustCompile(`WHERE id = (fl\(|\(SELECT l FROM vl)`)
	setThenView  = regexp.MustCompile(`(?s)SET TRANSACTION.*\bv[lf]\b`)
	readsCounts  = regexp.MustCompile(`ROW_COUNT|WARNINGS|warning_count`)
)

// knownSelects are about INSERT … SELECT, and about expressions as keys.
var knownSelects = []known{
	{"an expression or a column of a query as the key: NULL or 0", func(_ *world, d *difference) bool {
		return errorNumber(d.ours.err) == 1690 && (d.isSelect() || d.last().has("dirty key"))
	}},
	{"the value of an expression as the key", func(_ *world, d *difference) bool {
		number := errorNumber(d.plain.err)
		return d.last().has("dirty key") && (d.isTable("t") || slices.Contains(valueErrors, errorNumber(d.ours.err)) || slices.Contains(valueErrors, number))
	}},
	{"LastInsertId of explicit keys of a query", func(_ *world, d *difference) bool {
		return d.field == "LastInsertId" && d.isSelect() && (d.ours.id == 0 || d.plain.id == 0 && d.last().has("dirty key"))
	}},
	{"a UNION with a warning", func(w *world, d *difference) bool {
		number := errorNumber(d.ours.err)
		return (w.features.mariaDB && slices.Contains(expressionErrors, number) || w.features.mySQL && number == 3854) && d.plain.err == nil && (d.has(" UNION ") || number == 3854)
	}},
	{"a query whose columns have one name twice", func(w *world, d *difference) bool {
		return errorNumber(d.ours.err) == 1060 && d.isSelect() && (w.features.mariaDB && united.MatchString(d.last().text) || d.has("LAST_INSERT_ID()"))
	}},
	{"as in a common table expression", func(w *world, d *difference) bool {
		rollup := d.isTable("t", "{second}.t") && d.has("ROLLUP")
		order := w.features.mySQL && errorNumber(d.ours.err) == 1054 && d.has("WITH ") && d.has("ORDER BY 1")
		bits := w.features.mySQL && errorNumber(d.ours.err) == 1054 && strings.Contains(d.ours.err.Error(), "'c") && d.has("bit") && d.has("(SELECT")
		return d.isSelect() && (rollup || order || bits)
	}},
	{"a function that runs twice", func(_ *world, d *difference) bool {
		killed := errorNumber(d.plain.err) == 1792 && errorNumber(d.ours.err) == 1317 && d.has("fk(")
		return d.isSelect() && (d.isTable("free", "log") && d.has("fi(") || killed)
	}},
	{"a UNION of an argument and text", func(w *world, d *difference) bool {
		return w.features.mySQL && errorNumber(d.plain.err) == 1271 && errorNumber(d.ours.err) != 1271 && d.isSelect() && d.has("?") && united.MatchString(d.last().text)
	}},
	{"columns of a query that is in another one, in ON DUPLICATE KEY UPDATE", func(_ *world, d *difference) bool {
		return errorNumber(d.ours.err) == 1054 && d.plain.err == nil && d.isSelect() && d.has("DUPLICATE")
	}},
}

// The errors of a query's expressions in strict mode, and of the columns that get their values.
var (
	expressionErrors = []int{1210, 1264, 1292, 1300, 1365, 1366, 1411, 1416, 1441, 1690, 3020, 3156}
	valueErrors      = slices.Concat(expressionErrors, []int{1062, 1265, 1406, 1916, 1977, 3140, 3854, 4025, 4078, 4079})
)

var (
	selects   = regexp.MustCompile(`(?i)\b(SELECT|TABLE)\b`)
	united    = regexp.MustCompile(`UNION|EXCEPT|INTERSECT`)
	bigColumn = regexp.MustCompile(`typed (medium|unum|ubig|big|num|deci|dbl|flt|bit16|bit64) `)
)

// isSelect reports whether the last statement has a query.
func (d *difference) isSelect() bool { return selects.MatchString(d.last().text) }

// has reports whether the last statement has a text.
func (d *difference) has(text string) bool { return strings.Contains(d.last().text, text) }

// texts returns all statements of the case.
func (d *difference) texts() (all string) {
	for _, st := range d.steps {
		all += st.text + "\n" + st.read + "\n"
	}
	return all
}

func (d *difference) isTable(names ...string) bool {
	return slices.Contains(names, strings.TrimPrefix(d.field, "table "))
}

// has reports whether the generator has marked the step so.
func (st step) has(mark string) bool { return strings.Contains(st.marks, mark) }

// hasTrigger reports whether there is a trigger with on in its definition, and one of the words.
func (w *world) hasTrigger(on string, words ...string) bool {
	return slices.ContainsFunc(w.triggers, func(o object) bool {
		return strings.Contains(o.ddl, on) && slices.ContainsFunc(words, func(word string) bool { return strings.Contains(o.ddl, word) })
	})
}

// onlyIDsDiffer reports whether the sides differ only in numbers that LAST_INSERT_ID() may return.
func (d *difference) onlyIDsDiffer() bool {
	plain, ours := d.plain.of(d.field), d.ours.of(d.field)
	if !slices.Equal(anyNumber.Split(plain, -1), anyNumber.Split(ours, -1)) {
		return false
	}
	other := anyNumber.FindAllString(ours, -1)
	for i, number := range anyNumber.FindAllString(plain, -1) {
		if number != other[i] && !(isInsertID(number) && isInsertID(other[i])) {
			return false
		}
	}
	return true
}

// isInsertID reports whether a number is a key, or a value that the statements set.
func isInsertID(number string) bool {
	return plainTable(number) > 0 || ourTable(number) > 0 || keyNumber(number) <= 600 || number == "20260102" // an explicit key
}
