package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

func plain(err error) string { return strings.TrimPrefix(err.Error(), "shardkey: ") }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// shownLines is how much of a fix Text shows.
const shownLines = 40

// Text writes findings for people: those of a severity of level or more, each
// with its reason and its fix, and a last line that counts them.
func Text(found []Finding, level string) string {
	var b strings.Builder
	order := []string{OK, Info, Warning, Error}
	count := map[string]int{}
	for _, f := range found {
		count[f.Severity]++
		if slices.Index(order, f.Severity) < slices.Index(order, level) {
			continue
		}
		fmt.Fprintf(&b, "%s: %s\n", f.Severity, f)
		if f.Why != "" {
			fmt.Fprintf(&b, "  why: %s\n", f.Why)
		}
		label := "  fix: "
		lines := strings.Split(f.Fix, "\n")
		for _, line := range lines[:min(len(lines), shownLines)] {
			if line != "" {
				b.WriteString(label + line + "\n")
			}
			label = "       "
		}
		if n := len(lines) - shownLines; n > 0 {
			fmt.Fprintf(&b, "%s-- … and %d more lines, which the finding has in JSON\n", label, n)
		}
	}
	fmt.Fprintf(&b, "%s, %s, %s; %s found nothing wrong\n", counted(count[Error], "error"), counted(count[Warning], "warning"), counted(count[Info], "remark"), counted(count[OK], "check"))
	return b.String()
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// String returns the finding in a line, without its reason and fix.
func (f Finding) String() string { return f.Check + f.where() + ": " + f.What }

// where names the place of a finding: " ds_0 t_order.order_id (t_order_0, t_order_1)".
func (f Finding) where() string {
	s := ""
	if f.DataSource != "" {
		s += " " + f.DataSource
	}
	if f.Table != "" {
		s += " " + f.Table
		if f.Column != "" {
			s += "." + f.Column
		}
	}
	switch n := len(f.Actual); {
	case n > 4:
		s += fmt.Sprintf(" (%s and %d more)", strings.Join(f.Actual[:3], ", "), n-3)
	case n > 1 || n == 1 && f.Actual[0] != f.Table:
		s += " (" + strings.Join(f.Actual, ", ") + ")"
	}
	return s
}
