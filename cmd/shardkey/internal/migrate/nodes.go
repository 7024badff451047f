package migrate

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// part is a number in a table's name and what stands before it.
type part struct{ before, digits string }

var (
	partForm = regexp.MustCompile(`([_-]?)(\d+)`)
	digits   = regexp.MustCompile(`\d+`)
)

// nodes writes the family's data nodes. Sources with the same tables share an item.
func (f *family) nodes() string {
	var sources []string
	var all [][]part
	suffixes := map[string][][]part{}
	for _, m := range f.members {
		if suffixes[m.source] == nil {
			sources = append(sources, m.source)
		}
		all, suffixes[m.source] = append(all, m.parts), append(suffixes[m.source], m.parts)
	}
	date := dateOf(all)
	same := map[string][]string{} // sources by their tables
	var order []string
	for _, source := range sources {
		expr := f.common + date
		if date == "" {
			expr = f.tables(suffixes[source])
		}
		if same[expr] == nil {
			order = append(order, expr)
		}
		same[expr] = append(same[expr], source)
	}
	var items []string
	for _, expr := range order {
		for item := range strings.SplitSeq(expr, "\x00") {
			if of := sourceExpr(same[expr]); of != "" {
				item = of + "." + item
			}
			items = append(items, item)
		}
	}
	return strings.Join(items, ", ")
}

// tables writes the names of a source's tables, separated by NUL where one expression
// does not hold them all.
func (f *family) tables(suffixes [][]part) string {
	expr, product := f.common, 1
	for i := range suffixes[0] {
		var digits []string
		for _, parts := range suffixes {
			if !slices.Contains(digits, parts[i].digits) {
				digits = append(digits, parts[i].digits)
			}
		}
		product *= len(digits)
		expr += suffixes[0][i].before + numbers(digits)
	}
	if product == len(suffixes) {
		return expr
	}
	var names []string
	for _, parts := range suffixes {
		name := f.common
		for _, p := range parts {
			name += p.before + p.digits
		}
		names = append(names, name)
	}
	return strings.Join(names, "\x00")
}

// numbers writes numbers as a range or a list.
func numbers(digits []string) string {
	if len(digits) == 1 {
		return digits[0]
	}
	sorted, padded, widths := slices.Clone(digits), false, map[int]bool{}
	for _, d := range digits {
		padded = padded || len(d) > 1 && d[0] == '0'
		widths[len(d)] = true
	}
	slices.SortFunc(sorted, func(a, b string) int {
		x, _ := strconv.ParseUint(a, 10, 64)
		y, _ := strconv.ParseUint(b, 10, 64)
		return cmp.Compare(x, y)
	})
	first, last := sorted[0], sorted[len(sorted)-1]
	low, errLow := strconv.ParseUint(first, 10, 32)
	high, errHigh := strconv.ParseUint(last, 10, 32)
	if errLow == nil && errHigh == nil && int(high-low) == len(sorted)-1 && (!padded || len(widths) == 1) {
		if padded {
			return fmt.Sprintf("${(%d..%d).collect{it.toString().padLeft(%d, '0')}}", low, high, len(first))
		}
		return "${" + first + ".." + last + "}"
	}
	for i, d := range sorted {
		if padded {
			sorted[i] = "'" + d + "'"
		}
	}
	return "${[" + strings.Join(sorted, ", ") + "]}"
}

// dateOf returns what follows the logical name when all suffixes are dates of one
// form; empty when they are not.
func dateOf(suffixes [][]part) string {
	forms := []struct{ letters, layout string }{
		{"yyyyMMdd", "20060102"}, {"yyyyMM", "200601"}, {"yyyy", "2006"}, {"yyyy?MM", "2006?01"},
		{"yyyy?MM?dd", "2006?01?02"},
	}
	for _, form := range forms {
		between := ""
		ok := !slices.ContainsFunc(suffixes, func(parts []part) bool {
			text := ""
			for i, p := range parts {
				if i > 0 {
					between = p.before
					text += "?"
				}
				text += p.digits
			}
			at, err := time.Parse(form.layout, text)
			return err != nil || at.Year() < 1990 || at.Year() > 2099
		})
		if ok && len(suffixes) > 1 {
			return suffixes[0][0].before + "${" + strings.ReplaceAll(form.letters, "?", between) + "}"
		}
	}
	return ""
}

// sourceExpr writes the names of data sources.
func sourceExpr(names []string) string {
	if len(names) == 1 {
		return names[0]
	}
	var prefixes, digits []string
	for _, name := range names {
		prefix := strings.TrimRight(name, "0123456789")
		prefixes, digits = append(prefixes, prefix), append(digits, name[len(prefix):])
	}
	if len(slices.Compact(slices.Clone(prefixes))) == 1 && !slices.Contains(digits, "") {
		return prefixes[0] + numbers(digits)
	}
	return "${['" + strings.Join(names, "', '") + "']}"
}
