// Package explain describes in English how an INSERT gets its keys, for the command-line tool and the
// debug page.
package explain

import (
	"fmt"
	"strings"

	"github.com/shardkey/shardkey/rewrite"
)

// Rows describes how the key of each row is handled, for example "rows 1 to 3: a key is generated".
// Adjacent rows of one kind share a line. If most is above 0, Rows returns at most that many lines
// and the number of other rows.
func Rows(in *rewrite.Insert, most int) (lines []string) {
	switch {
	case in.Invalid:
		return []string{"sent unchanged: the server will refuse it, because a row has the wrong number of values"}
	case in.SelectKey != "":
		return []string{query(in)}
	}
	for first := 0; first < len(in.Rows); {
		key, last := row(in, in.Rows[first]), first
		for last+1 < len(in.Rows) && row(in, in.Rows[last+1]) == key {
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

func row(in *rewrite.Insert, r rewrite.Row) string {
	switch r.Key {
	case rewrite.Generated:
		return "a key is generated"
	case rewrite.Argument:
		if in.Table.KeepExplicit {
			return fmt.Sprintf("argument %d is the key", r.Arg+1)
		}
		empty := "nil or 0"
		if in.Table.Strings {
			empty = `nil or ""`
		}
		return fmt.Sprintf("argument %d is the key; for %s one is generated", r.Arg+1, empty)
	case rewrite.Literal:
		return "the key is kept as it is written"
	case rewrite.Expression:
		return "the value of the expression is the key, and is not reported; NULL and 0 are an error"
	}
	return "the value is left to the server, and the key is not reported"
}

// query describes the keys of an INSERT … SELECT.
func query(in *rewrite.Insert) string {
	switch in.SelectKey {
	case rewrite.Generated:
		return "the rows of the query are counted, and each gets a generated key"
	case rewrite.Literal:
		return "sent unchanged: the query has the keys, and explicitKeys is keep"
	case rewrite.Expression:
		return "the query has the keys, which are not reported; NULL and 0 are an error"
	}
	return "the query has the keys, which are left to the server and not reported"
}

// Fills reports whether a row can get a generated key.
func Fills(in *rewrite.Insert) bool {
	if in.SelectKey != "" {
		return in.SelectKey == rewrite.Generated
	}
	for _, r := range in.Rows {
		if r.Key == rewrite.Generated || r.Key == rewrite.Argument && !in.Table.KeepExplicit {
			return true
		}
	}
	return false
}

// Summary describes all rows in one phrase, for example "a key is generated in 2 of 3 rows, the key is
// explicit in 1 of 3 rows".
func Summary(in *rewrite.Insert) string {
	switch {
	case in.Invalid:
		return "a row has the wrong number of values, so the server will refuse it"
	case in.SelectKey == rewrite.Literal:
		return "the query returns the keys, and explicitKeys is keep"
	case in.SelectKey == rewrite.Generated:
		return "a key is generated for each row of the query"
	case in.SelectKey == rewrite.Expression:
		return "the query has the keys; NULL and 0 are an error"
	case in.SelectKey != "":
		return summaries[in.SelectKey]
	}
	n := map[rewrite.KeySource]int{}
	for _, r := range in.Rows {
		n[r.Key]++
	}
	var parts []string
	for _, key := range []rewrite.KeySource{rewrite.Generated, rewrite.Argument, rewrite.Literal, rewrite.Unknown, rewrite.Expression} {
		switch {
		case n[key] == 0:
		case len(in.Rows) == 1:
			return summaries[key]
		default:
			parts = append(parts, fmt.Sprintf("%s in %d of %d rows", summaries[key], n[key], len(in.Rows)))
		}
	}
	return strings.Join(parts, ", ")
}

var summaries = map[rewrite.KeySource]string{
	rewrite.Generated:  "a key is generated",
	rewrite.Argument:   "an argument is the key",
	rewrite.Literal:    "the key is explicit",
	rewrite.Unknown:    "the server chooses the key",
	rewrite.Expression: "an expression is the key; NULL and 0 are an error",
}
