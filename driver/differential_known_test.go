package driver

import (
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
		return d.last().has("dirty key") && (number == 167 || number == 1467 ||
			(d.field != "error" || number == 1062) && hugeKey.MatchString(d.last().text))
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
		return d.field == "LastInsertId" && d.ours.id == 0 && d.last().has("dirty key")
	}},
	{"INSERT … SELECT of explicit keys, with ON DUPLICATE KEY UPDATE, IGNORE or triggers", func(w *world, d *difference) bool {
		return d.field == "LastInsertId" && d.isSelect() && d.plain.id == 0 && (len(w.triggers) > 0 || d.has("DUPLICATE") || d.has("IGNORE"))
	}},
	{"upsert of an existing row that reads LAST_INSERT_ID()", func(_ *world, d *difference) bool {
		return d.field == "LastInsertId" && d.ours.id == 0 && d.has("DUPLICATE") && d.has("LAST_INSERT_ID()")
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
		return d.field == "read" && readsInside.MatchString(d.last().read) || d.field != "error" && readsInside.MatchString(d.last().text)
	}},
	{"a trigger of a table without a rule that reads LAST_INSERT_ID()", func(w *world, d *difference) bool {
		return d.isTable("free", "log") && w.hasTrigger("ON free", "LAST_INSERT_ID()", "fl()")
	}},
	{"a trigger that reads LAST_INSERT_ID() during an upsert of several rows", func(w *world, d *difference) bool {
		return d.isTable("free", "log") && d.has("DUPLICATE") && w.hasTrigger("", "LAST_INSERT_ID()", "fl()")
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
	{"ENUM or SET in a UNION, into a number", func(_ *world, d *difference) bool {
		return d.isTable("d", "t") && (d.last().has("typed st ") || d.last().has("typed en ")) && d.has("UNION")
	}},
	{"dates in a temporary table", func(w *world, d *difference) bool {
		return d.isSelect() && d.has(" OVER (") && (d.isTable("d", "t") || errorNumber(d.plain.err) == 1292)
	}},
	{"invalid UTF-8: 1300", func(_ *world, d *difference) bool { return errorNumber(d.ours.err) == 1300 && d.isSelect() }},
	{"a date with a zero month or day, with parseTime", func(w *world, d *difference) bool {
		return d.isTable("d", "t") && d.last().has("typed dt6 ") && strings.Contains(w.params, "parseTime")
	}},
	{"a bound time in a UNION", func(_ *world, d *difference) bool {
		return errorNumber(d.ours.err) == 1265 && d.plain.err == nil && d.has("UNION") && len(d.last().args) > 0
	}},
	{"UUID, INET4 and INET6 into another type", func(_ *world, d *difference) bool {
		return d.isTable("d", "t") && inetColumn.MatchString(d.last().marks)
	}},
	{"a quotient of DECIMAL", func(w *world, d *difference) bool {
		return d.isTable("d", "t") && !w.features.mySQL8 && d.isSelect() && d.has("/")
	}},
	{"types without a conversion: 4078", func(_ *world, d *difference) bool { return errorNumber(d.plain.err) == 4078 }},
	{"which of several errors", func(_ *world, d *difference) bool {
		return errorNumber(d.plain.err) != 0 && errorNumber(d.ours.err) != 0 && d.isSelect()
	}},
	{"IGNORE … SELECT of an expression that fails", func(_ *world, d *difference) bool {
		return d.plain.err == nil && errorNumber(d.ours.err) != 0 && d.has("IGNORE") && d.isSelect()
	}},
	{"an expression that only warns in a strict INSERT", func(_ *world, d *difference) bool {
		return d.plain.err == nil && d.isSelect() && (slices.Contains([]int{1292, 1411}, errorNumber(d.ours.err)) || d.has("UNION") && slices.Contains([]int{1365, 1441}, errorNumber(d.ours.err)))
	}},
	{"an expression that only fails in a strict INSERT", func(_ *world, d *difference) bool {
		return errorNumber(d.plain.err) == 1292 && d.ours.err == nil && (d.has(" IN ('a'") || d.has("NULLIF("))
	}},
	{"NULL of an aggregate's other column as the key", func(w *world, d *difference) bool {
		return errorNumber(d.plain.err) == 1265 && d.ours.err == nil && w.features.mariaDB && d.last().has("dirty key")
	}},
	{"a bound []byte that is invalid in the character set", func(_ *world, d *difference) bool {
		return d.isSelect() && strings.Contains(fmt.Sprint(d.last().args), "[0 255]")
	}},
	{"unsigned columns on MySQL 5.6", func(w *world, d *difference) bool {
		return !w.features.newer && (d.last().has("typed ubig ") || d.last().has("typed unum "))
	}},
}

var (
	selects    = regexp.MustCompile(`(?i)\b(SELECT|TABLE)\b`)
	inetColumn = regexp.MustCompile(`typed (ui|i4|i6) `)
)

// isSelect reports whether the last statement has a query.
func (d *difference) isSelect() bool { return selects.MatchString(d.last().text) }

// has reports whether the last statement has a text.
func (d *difference) has(text string) bool { return strings.Contains(d.last().text, text) }

// texts returns all statements of the case.
func (d *difference) texts() (all string) {
	for _, st := range d.steps {
		all += st.text + "\n"
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
