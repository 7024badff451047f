package driver

import (
	"fmt"
	"strings"
)

// Describe describes how the key of each row is handled, for example "rows 1 to 3: a key is generated".
// Adjacent rows of one kind share a line. If most is above 0, Describe returns at most that many lines
// and the number of other rows.
func (in *PlannedInsert) Describe(most int) (lines []string) {
	switch {
	case in.Invalid:
		return []string{"sent unchanged: the server will refuse it, because a row has the wrong number of values"}
	case in.Select != "":
		return []string{in.describeSelect()}
	}
	for first := 0; first < len(in.Rows); {
		key, last := in.describeRow(first), first
		for last+1 < len(in.Rows) && in.Rows[last+1] == in.Rows[first] {
			last++
		}
		if most > 0 && len(lines) == most {
			return append(lines, fmt.Sprintf("… and %d more rows", len(in.Rows)-first))
		}
		rows := fmt.Sprintf("row %d", first+1)
		if last > first {
			rows = fmt.Sprintf("rows %d to %d", first+1, last+1)
		}
		lines = append(lines, rows+": "+key)
		first = last + 1
	}
	return lines
}

// describeRow describes how the key of a row is handled. Rows count from 0.
func (in *PlannedInsert) describeRow(row int) string {
	switch r := in.Rows[row]; r.Key {
	case "generated":
		return "a key is generated"
	case "argument":
		empty := "nil or 0"
		if in.Text {
			empty = `nil or ""`
		}
		return fmt.Sprintf("argument %d is the key; for %s one is generated", r.Argument, empty)
	case "statement":
		if r.Argument > 0 {
			return fmt.Sprintf("argument %d is the key", r.Argument)
		}
		return "the key is kept as it is written"
	case "expression":
		return "the value of the expression is the key; if it is NULL or 0, the server takes a generated one"
	}
	return "the value is left to the server, and the key is not reported"
}

// describeSelect describes an INSERT … SELECT.
func (in *PlannedInsert) describeSelect() string {
	query := strings.TrimSpace(in.Select)
	switch in.Rows[0].Key {
	case "generated":
		return "the query is read to its end, and each of its rows is inserted with a key: " + query
	case "statement":
		return "sent unchanged: the query gives the keys, and explicitKeys is keep: " + query
	}
	return "the query is read to its end, and its rows are inserted, " +
		"with a key where the query returns NULL or 0: " + query
}
