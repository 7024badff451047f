package main

import (
	"strings"

	"github.com/shardkey/shardkey/internal/nearest"
	"github.com/shardkey/shardkey/rule"
)

// nearestTable returns the table of a rule that was probably meant by the
// name of another; numbers at the end stay as they are. It returns "" when there is
// none, and for a ruled table's name with other numbers.
func nearestTable(r *rule.Rule, name string) string {
	base := strings.TrimRight(name, "0123456789_-")
	if word := nearest.Word(base, tableNames(r)); word != "" && !strings.EqualFold(word, base) && nearest.Distance(base, word) <= max(1, len(base)/8) {
		return word + name[len(base):]
	}
	return ""
}
