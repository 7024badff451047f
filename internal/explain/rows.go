// Package explain says in words what becomes of the rows of a statement, for the tool
// and the debug page.
package explain

import (
	"fmt"

	"github.com/shardkey/shardkey/rewrite"
)

// Rows says what becomes of the key of each row, "rows 1 to 3: a key is generated".
// Adjacent rows of one kind are one. Of more than most kinds, if most is above 0, the rest
// is a number.
func Rows(in *rewrite.Insert, most int) (fates []string) {
	for first := 0; first < in.Rows(); {
		fate, last := Row(in, first), first
		for last+1 < in.Rows() && Row(in, last+1) == fate {
			last++
		}
		if most > 0 && len(fates) == most {
			return append(fates, fmt.Sprintf("… and %d more rows", in.Rows()-first))
		}
		rows := fmt.Sprintf("row %d", first+1)
		if last > first {
			rows = fmt.Sprintf("rows %d to %d", first+1, last+1)
		}
		fates = append(fates, rows+": "+fate)
		first = last + 1
	}
	return fates
}

// Row says what becomes of the key of a row, by its place from 0.
func Row(in *rewrite.Insert, row int) string {
	switch kind, param := in.Slot(row); kind {
	case rewrite.SlotFill:
		return "a key is generated"
	case rewrite.SlotParam:
		if in.Table.KeepExplicit {
			return fmt.Sprintf("argument %d is the key", param+1)
		}
		empty := "nil or 0"
		if in.Table.Kind == rewrite.KindText {
			empty = `nil or ""`
		}
		return fmt.Sprintf("argument %d is the key; for %s one is generated", param+1, empty)
	case rewrite.SlotKept:
		return "the key is kept as it is written"
	case rewrite.SlotExpression:
		return "the key is what the expression comes to; where that is nothing, the server takes a generated one"
	}
	return "what is written is left to the server, and the key is not reported"
}
