// Package printed prints what examples show.
package printed

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Table prints lines of cells in columns, each as wide as its widest cell, the first
// line as their heads.
func Table(out io.Writer, lines [][]any) {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	for i, line := range lines {
		cells := make([]string, len(line))
		for j, cell := range line {
			cells[j] = fmt.Sprint(cell)
		}
		fmt.Fprintln(w, "  "+strings.Join(cells, "\t"))
		if i == 0 {
			for j, cell := range cells {
				cells[j] = strings.Repeat("-", len([]rune(cell)))
			}
			fmt.Fprintln(w, "  "+strings.Join(cells, "\t"))
		}
	}
	_ = w.Flush() // a writer that fails has nothing to show
}
