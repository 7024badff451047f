package differential

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// known is a class of differences that docs/reference/sql.md lists, or will. A class is as narrow
// as the line there.
type known struct {
	name string
	is   func(*world, *difference) bool
}

// knownClass returns the class of a difference, or "" if it isn't known.
func knownClass(w *world, d *difference) string {
	for _, k := range slices.Concat(knownKeys, knownInsertIDs, knownReads, knownSelects) {
		if k.is(w, d) {
			return k.name
		}
	}
	return ""
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
	{"VALUES(id) in an update list", func(_ *world, d *difference) bool {
		return d.field != "error" && d.has("VALUES(id)")
	}},
	{"keys of rows that the same string replaces", func(_ *world, d *difference) bool {
		return d.field == "WithKeys" && isString(d.last().text) && d.has("REPLACE")
	}},
	{"wrong number of values: 1364 instead of 1136", func(w *world, d *difference) bool {
		return errorNumber(d.plain.err) == 1136 && errorNumber(d.ours.err) == 1364 && !w.features.newer
	}},
}

var hugeKey = regexp.MustCompile(`-1 AS UNSIGNED|1e30|18446744073709551615|9223372036854775807|-9{20}|LAST_INSERT_ID\(\)`)

// knownInsertIDs are about LastInsertId and LAST_INSERT_ID().
var knownInsertIDs = []known{
	{"LastInsertId of an expression, or of a key that the server changes", func(_ *world, d *difference) bool {
		return d.field == "LastInsertId" && (d.ours.id == 0 || d.has("DUPLICATE") && d.ours.id < generatedFrom) && d.last().has("dirty key")
	}},
	{"INSERT … SELECT of explicit keys, with ON DUPLICATE KEY UPDATE, IGNORE or triggers", func(w *world, d *difference) bool {
		return d.field == "LastInsertId" && d.isSelect() && d.plain.id == 0 && (len(w.triggers) > 0 || d.has("DUPLICATE") || d.has("IGNORE"))
	}},
	{"REPLACE of several rows, of which a trigger may skip one", func(w *world, d *difference) bool {
		return (d.field == "LastInsertId" || d.field == "LAST_INSERT_ID()") && d.has("REPLACE") && w.features.skips && w.hasTrigger("BEFORE INSERT ON t", "02TRG", "(", "CALL")
	}},
	{"upsert of several rows, of which a trigger skips one", func(w *world, d *difference) bool {
		return d.field == "LastInsertId" && d.has("DUPLICATE") && w.hasTrigger("INSERT ON t", "02TRG")
	}},
	{"upsert of an existing row that reads LAST_INSERT_ID()", func(_ *world, d *difference) bool {
		return d.field == "LastInsertId" && d.ours.id == 0 && d.has("DUPLICATE") && d.has("LAST_INSERT_ID(")
	}},
	{"upsert of an existing row with an UPDATE trigger: LastInsertId", func(w *world, d *difference) bool {
		return d.field == "LastInsertId" && d.ours.id == 0 && d.has("DUPLICATE") && w.hasTrigger("UPDATE ON t", "")
	}},
	{"LAST_INSERT_ID() after a string of statements that failed", func(_ *world, d *difference) bool {
		return d.field == "LAST_INSERT_ID()" && d.plain.err != nil && isString(d.last().text)
	}},
}

// knownReads are about what reads LAST_INSERT_ID() or counts without naming them.
var knownReads = []known{
	{"a view or function that reads LAST_INSERT_ID()", func(_ *world, d *difference) bool {
		return d.field == "read" && readsInside.MatchString(d.last().read) && (d.onlyIDsDiffer() || strings.Contains(d.last().read, "COUNT")) ||
			readsInside.MatchString(d.last().text) && (d.field == "rows" || d.isTable("t", "child", "free", "log")) && d.onlyIDsDiffer() ||
			whereInside.MatchString(d.last().text) && (d.field == "affected" || d.isTable("t")) || d.has("t.s = fl()") && d.field == "affected"
	}},
	{"a trigger of a table without a rule, or of UPDATE or DELETE, that reads LAST_INSERT_ID()", func(w *world, d *difference) bool {
		return d.isTable("free", "log") && d.onlyIDsDiffer() &&
			(w.hasTrigger("ON free", "LAST_INSERT_ID()", "fl()") || w.hasTrigger("DELETE ON", "LAST_INSERT_ID()", "fl()") || w.hasTrigger("UPDATE ON", "LAST_INSERT_ID()", "fl()"))
	}},
	{"a trigger that reads LAST_INSERT_ID() during an upsert of several rows", func(w *world, d *difference) bool {
		return d.isTable("free", "log") && d.has("DUPLICATE") && w.hasTrigger("ON t", "LAST_INSERT_ID()", "fl()") && d.onlyIDsDiffer()
	}},
	{"a view without tables between SET TRANSACTION and an INSERT", func(_ *world, d *difference) bool {
		return errorNumber(d.plain.err) == 1792 && setThenView.MatchString(d.texts())
	}},
	{"ROW_COUNT() or warnings after a statement for which shardkey asked", func(_ *world, d *difference) bool {
		return d.field == "read" && readsCounts.MatchString(d.last().read)
	}},
	{"SET TRANSACTION after an INSERT … SELECT that was refused, without autocommit", func(_ *world, d *difference) bool {
		return errorNumber(d.ours.err) == 1568 && d.plain.err == nil
	}},
}

var (
	readsInside = regexp.MustCompile(`\bfl\(|\bvl\b|\bvf\b`)
	whereInside = regexp.MustCompile(`WHERE id = (fl\(|\(SELECT l FROM vl)`)
	setThenView = regexp.MustCompile(`(?s)SET TRANSACTION.*\bv[lf]\b`)
	readsCounts = regexp.MustCompile(`ROW_COUNT|WARNINGS|warning_count`)
)

// knownSelects are about INSERT … SELECT.
var knownSelects = []known{
	{"ambiguous column of ON DUPLICATE KEY UPDATE", func(_ *world, d *difference) bool {
		return errorNumber(d.plain.err) == 1052 && d.isSelect()
	}},
	{"order of functions and triggers", func(_ *world, d *difference) bool {
		return d.isTable("free", "log") && d.isSelect() && d.has("fi(")
	}},
	{"a trigger changes a table of the query", func(_ *world, d *difference) bool {
		return errorNumber(d.plain.err) == 1442 && d.isSelect()
	}},
	{"no rows in a READ ONLY transaction", func(_ *world, d *difference) bool {
		return errorNumber(d.plain.err) == 1792 && d.ours.err == nil && d.ours.affected == 0 && d.isSelect()
	}},
	{"ZEROFILL into text", func(_ *world, d *difference) bool {
		return (d.isTable("d", "t") || errorNumber(d.plain.err) == 4025) && d.last().has("typed zf ")
	}},
	{"ENUM or SET in a UNION, into a number", func(w *world, d *difference) bool {
		failed := d.plain.err == nil && slices.Contains([]int{1265, 1292, 1366}, errorNumber(d.ours.err))
		return (failed || d.isTable("d", "t")) && (d.last().has("typed st ") || d.last().has("typed en ")) && d.has("UNION")
	}},
	{"zero dates in a window or aggregate", func(w *world, d *difference) bool {
		fails := errorNumber(d.plain.err) == 1292 && (d.ours.err == nil || errorNumber(d.ours.err) == 1265)
		return (d.has(" OVER (") || aggregate.MatchString(d.last().text)) && dateColumn.MatchString(d.last().marks) && (d.isTable("d", "t") || fails)
	}},
	{"the error value of an ENUM, into an ENUM", func(w *world, d *difference) bool {
		return d.plain.err == nil && errorNumber(d.ours.err) == 1265 && w.hasColumn("ENUM") && d.last().has("typed en ")
	}},
	{"CAST(d AS UNSIGNED) of a DECIMAL(10,0) UNSIGNED", func(w *world, d *difference) bool {
		return w.features.mariaDB && d.last().has("typed deci0 ") && d.has("AS UNSIGNED") && (d.isTable("d", "t") || errorNumber(d.plain.err) == 1264)
	}},
	{"LEAST or GREATEST of a time or geometry and a number, on MySQL 5.6", func(w *world, d *difference) bool {
		differs := d.isTable("d", "t") || d.plain.err == nil && errorNumber(d.ours.err) == 1292
		return !w.features.newer && differs && timeColumn.MatchString(d.last().marks) && (d.has("LEAST(") || d.has("GREATEST("))
	}},
	{"a string that can't be converted into a column's character set", func(w *world, d *difference) bool {
		return errorNumber(d.plain.err) == 3988 && len(d.last().args) > 0
	}},
	{"zero dates with parseTime", func(w *world, d *difference) bool {
		return d.isSelect() && strings.Contains(w.params, "parseTime") && (dateColumn.MatchString(d.last().marks) || d.has(" AS DATE")) &&
			(d.isTable("d", "t") || errorNumber(d.ours.err) == 1292 && d.plain.err == nil && (d.has("NULLIF(") || zeroPart.MatchString(d.ours.err.Error())))
	}},
	{"an argument in a UNION", func(_ *world, d *difference) bool {
		differs := d.isTable("d", "t") || (d.plain.err == nil) != (d.ours.err == nil) || errorNumber(d.ours.err) == 3854
		number := max(errorNumber(d.plain.err), errorNumber(d.ours.err))
		return differs && d.has("UNION") && len(d.last().args) > 0 && slices.Contains([]int{0, 1264, 1265, 1366, 1406, 3854}, number)
	}},
	{"an expression of BIT mixed with another type", func(w *world, d *difference) bool {
		failed := slices.Contains([]int{1264, 1406}, errorNumber(d.plain.err)) || slices.Contains([]int{1264, 1406}, errorNumber(d.ours.err))
		return d.isSelect() && (bitColumn.MatchString(d.last().marks) || w.hasColumn("BIT")) && mixes.MatchString(d.last().text) && (failed || d.isTable("d", "t"))
	}},
	{"a negated date into BIT, on MariaDB", func(w *world, d *difference) bool {
		return d.isTable("d") && w.features.mariaDB && w.hasColumn("BIT") && negated.MatchString(d.last().text)
	}},
	{"a number that is too large for a BIT", func(w *world, d *difference) bool {
		return d.isSelect() && w.hasColumn("BIT") && errorNumber(d.plain.err) == 1264 && errorNumber(d.ours.err) == 1406
	}},
	{"a constant next to an aggregate, into BIT or INET", func(w *world, d *difference) bool {
		return d.isTable("d") && (w.hasColumn("BIT") || w.hasColumn("INET")) && w.features.mariaDB && aggregate.MatchString(d.last().text)
	}},
	{"a []byte into JSON, with interpolateParams", func(w *world, d *difference) bool {
		return errorNumber(d.plain.err) == 3144 && d.ours.err == nil && strings.Contains(w.params, "interpolateParams") && len(d.last().args) > 0
	}},
	{"UUID, INET4 and INET6 into another type", func(_ *world, d *difference) bool {
		fails := max(errorNumber(d.plain.err), errorNumber(d.ours.err)) == 1406
		return (d.isTable("d", "t") || fails) && inetColumn.MatchString(d.last().marks)
	}},
	{"a quotient of DECIMAL", func(w *world, d *difference) bool {
		return d.isTable("d", "t") && !w.features.mySQL8 && d.isSelect() && d.has("/")
	}},
	{"types without a conversion: 4078", func(_ *world, d *difference) bool { return errorNumber(d.plain.err) == 4078 }},
	{"another of several errors", func(_ *world, d *difference) bool {
		return slices.Contains(valueErrors, errorNumber(d.plain.err)) && slices.Contains(valueErrors, errorNumber(d.ours.err)) && d.isSelect()
	}},
	{"the query's error in a READ ONLY transaction", func(_ *world, d *difference) bool {
		return errorNumber(d.plain.err) == 1792 && (slices.Contains([]int{1054, 4078, 4079}, errorNumber(d.ours.err)) || slices.Contains(expressionErrors, errorNumber(d.ours.err))) && d.isSelect()
	}},
	{"IGNORE … SELECT of an expression that fails", func(_ *world, d *difference) bool {
		return d.plain.err == nil && d.has("IGNORE") && d.isSelect() &&
			(errorNumber(d.ours.err) == 1690 || errorNumber(d.ours.err) == 1366 && d.has("f1('x')"))
	}},
	{"IGNORE … SELECT into JSON or geometry", func(w *world, d *difference) bool {
		return d.plain.err == nil && d.has("IGNORE") && d.isSelect() &&
			(errorNumber(d.ours.err) == 4025 && w.hasColumn("JSON") || errorNumber(d.ours.err) == 1416 && w.hasColumn("POINT"))
	}},
	{"a string that isn't a number, in a strict INSERT", func(w *world, d *difference) bool {
		number := errorNumber(d.plain.err)
		return (number == 0 || number == 1365) && d.isSelect() && notNumber.MatchString(PlainError(d.ours.err)) && !w.features.mySQL8
	}},
	{"a string that is cut, in a strict INSERT of MariaDB", func(w *world, d *difference) bool {
		return d.plain.err == nil && d.isSelect() && cutString.MatchString(PlainError(d.ours.err)) && w.features.mariaDB
	}},
	{"a warning of a UNION that isn't an error in an INSERT", func(w *world, d *difference) bool {
		return d.plain.err == nil && d.isSelect() && d.has("UNION") && slices.Contains(expressionErrors, errorNumber(d.ours.err)) && !w.features.mySQL8
	}},
	{"an expression that only fails in a strict INSERT", func(w *world, d *difference) bool {
		return errorNumber(d.plain.err) == 1292 && d.ours.err == nil && w.features.mySQL8 && d.has(" IN ('a'")
	}},
	{"NULLIF of a date and a number, in a strict INSERT", func(_ *world, d *difference) bool {
		return d.has("NULLIF(") && dateColumn.MatchString(d.last().marks) && (d.plain.err == nil) != (d.ours.err == nil) && errorNumber(cmp.Or(d.plain.err, d.ours.err)) == 1292
	}},
	{"NULL of an aggregate's other column as the key", func(w *world, d *difference) bool {
		return errorNumber(d.plain.err) == 1265 && !w.features.mySQL8 && d.last().has("dirty key") && aggregate.MatchString(d.last().text)
	}},
	{"bytes as text that is invalid in the character set", func(_ *world, d *difference) bool {
		return d.isSelect() && asText.MatchString(d.last().text) && setsNames.MatchString(d.texts()) &&
			(d.isTable("d", "t") || errorNumber(d.plain.err) == 1406 && d.ours.err == nil)
	}},
	{"a bound []byte that is invalid in the character set", func(_ *world, d *difference) bool {
		return d.isSelect() && strings.Contains(fmt.Sprint(d.last().args), "[0 255]") && setsNames.MatchString(d.texts())
	}},
	{"unsigned columns on MySQL 5.6", func(w *world, d *difference) bool {
		fails := d.plain.err == nil && errorNumber(d.ours.err) == 1264
		return !w.features.newer && (d.isTable("d", "t") || fails) && unsigned.MatchString(d.last().marks)
	}},
}

// The errors of a query's expressions in strict mode, and of the columns that get their values.
var (
	expressionErrors = []int{1264, 1292, 1300, 1365, 1366, 1411, 1416, 1441, 1690, 3020, 3156}
	valueErrors      = slices.Concat(expressionErrors, []int{1062, 1265, 1406, 1916, 1977, 3140, 4025, 4078})
)

var (
	notNumber  = regexp.MustCompile(`^error 1292 Truncated incorrect (DOUBLE|DECIMAL|INTEGER) value`)
	cutString  = regexp.MustCompile(`^error 1292 Truncated incorrect CHAR\(\d\) value`)
	zeroPart   = regexp.MustCompile(`value: '\d{4}-(00|\d\d-00)`)
	selects    = regexp.MustCompile(`(?i)\b(SELECT|TABLE)\b`)
	inetColumn = regexp.MustCompile(`typed (ui|i4|i6) `)
	dateColumn = regexp.MustCompile(`typed (dat|dt|dt6|ts) `)
	timeColumn = regexp.MustCompile(`typed (tim6?|ts3?|dat|dt6?|yr|pt) `)
	negated    = regexp.MustCompile(`-\s*(dat|dt6?|ts)\b`)
	unsigned   = regexp.MustCompile(`typed (ubig|unum|utiny|medium) `)
	bitColumn  = regexp.MustCompile(`typed bit\d+ `)
	bigColumn  = regexp.MustCompile(`typed (medium|unum|ubig|big|num|deci|dbl|flt|bit16|bit64) `)
	mixes      = regexp.MustCompile(`\b(IF|IFNULL|GREATEST|LEAST|ELT)\(|\bUNION\b`)
	aggregate  = regexp.MustCompile(`\b(SUM|MIN|MAX|GROUP_CONCAT)\(`)
	setsNames  = regexp.MustCompile(`NAMES (latin1|gbk)`)
	asText     = regexp.MustCompile(`AS CHAR|CONVERT\(\w+ USING`)
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

// hasColumn reports whether table d has a column of the type.
func (w *world) hasColumn(typ string) bool {
	return strings.HasPrefix(w.columns[0], typ) || strings.HasPrefix(w.columns[1], typ)
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
	return plainTable(number) > 0 || ourTable(number) > 0 || keyNumber(number) <= 600 // an explicit key
}
