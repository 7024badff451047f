package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// table prints rows in columns. It may be printed in parts: a column keeps the
// width that it had.
type table struct {
	header []string
	rows   [][]string
	widths []int
	begun  bool
}

func newTable(header ...string) *table {
	t := &table{header: header, widths: make([]int, len(header))}
	t.widen(header)
	return t
}

func (t *table) widen(row []string) {
	for i, cell := range row {
		t.widths[i] = max(t.widths[i], shownWidth(cell))
	}
}

// shownWidth is how many characters a terminal shows, without colours.
func shownWidth(cell string) int {
	n := utf8.RuneCountInString(cell)
	for rest := cell; ; {
		_, after, found := strings.Cut(rest, "\x1b[")
		if !found {
			return n
		}
		sequence, after, _ := strings.Cut(after, "m")
		n -= len("\x1b[") + len(sequence) + len("m")
		rest = after
	}
}

func (t *table) add(row ...string) {
	t.widen(row)
	t.rows = append(t.rows, row)
}

// print prints the rows that were added since the last time, the header before
// the first one.
func (t *table) print(w io.Writer) {
	if len(t.rows) == 0 {
		return
	}
	if !t.begun {
		t.begun = true
		t.printRow(w, t.header)
	}
	for _, row := range t.rows {
		t.printRow(w, row)
	}
	t.rows = t.rows[:0]
}

func (t *table) printRow(w io.Writer, row []string) {
	var b strings.Builder
	for i, cell := range row {
		b.WriteString(cell)
		if i < len(row)-1 {
			b.WriteString(strings.Repeat(" ", t.widths[i]-shownWidth(cell)+2))
		}
	}
	fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
}
