package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/shardkey/shardkey/keygen/snowflake"
)

// printOrders shows each row, what its key is made of, and what the program was
// told. It returns an error when it was told a key that the row does not have.
func printOrders(out io.Writer, orders []order) error {
	t := table{heads: []string{"table", "insert", "row", "key", "time (UTC)", "worker", "seq", "LastInsertId", "WithKeys"}}
	var wrong error
	for i, o := range orders {
		parts, err := snowflake.Decode(snowflake.Classic, snowflake.DefaultEpoch, o.key)
		if err != nil {
			return err
		}
		if o.withKeys != o.key || o.row == 1 && o.lastInsert != o.key {
			wrong = fmt.Errorf("row %d of %s has key %d, but LastInsertId said %d and WithKeys %v",
				i+1, o.table, o.key, o.lastInsert, o.withKeys)
		}
		t.add(o.table, o.how, o.row, o.key, parts.Time.UTC().Format("2006-01-02 15:04:05.000"),
			parts.WorkerID, parts.Sequence, first(o), o.withKeys)
		if i+1 < len(orders) && orders[i+1].table != o.table {
			t.rule()
		}
	}
	t.print(out)
	return wrong
}

// first is LastInsertId, on the first row of its statement only.
func first(o order) string {
	if o.row == 1 {
		return strconv.FormatInt(o.lastInsert, 10)
	}
	return ""
}

// printShards shows the keys of the two tables side by side.
func printShards(out io.Writer, orders []order) {
	half := len(orders) / 2
	left, right := orders[:half], orders[half:]
	t := table{heads: []string{"item", left[0].table, right[0].table, ""}}
	for i := range left {
		note := ""
		if left[i].key == right[i].key {
			note = "the same key twice"
		}
		t.add(left[i].item, left[i].key, right[i].key, note)
	}
	t.print(out)
}

// table lays out cells in columns, numbers to the right.
type table struct {
	heads []string
	rows  [][]any // nil is a line
}

func (t *table) add(cells ...any) { t.rows = append(t.rows, cells) }

func (t *table) rule() { t.rows = append(t.rows, nil) }

func (t *table) print(out io.Writer) {
	widths, right := t.layout()
	line := make([]string, len(widths))
	for i, width := range widths {
		line[i] = strings.Repeat("─", width)
	}
	write := func(cells []string) {
		for i, text := range cells {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text))
			if right[i] {
				text = pad + text
			} else {
				text += pad
			}
			cells[i] = text
		}
		fmt.Fprintln(out, strings.TrimRight("  "+strings.Join(cells, "  "), " "))
	}
	write(t.heads)
	write(line)
	for _, row := range t.rows {
		if row == nil {
			write(line)
			continue
		}
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = fmt.Sprint(cell)
		}
		write(cells)
	}
}

// layout finds the columns' widths, and which hold numbers.
func (t *table) layout() (widths []int, right []bool) {
	widths, right = make([]int, len(t.heads)), make([]bool, len(t.heads))
	for i, head := range t.heads {
		widths[i] = utf8.RuneCountInString(head)
	}
	for _, row := range t.rows {
		for i, cell := range row {
			text := fmt.Sprint(cell)
			widths[i] = max(widths[i], utf8.RuneCountInString(text))
			if _, err := strconv.ParseInt(text, 10, 64); err == nil {
				right[i] = true
			}
		}
	}
	return widths, right
}
