package sharding

import (
	"slices"
	"strings"

	"github.com/shardkey/shardkey/internal/groovy"
)

func newInline(a *Algorithm, p properties) error {
	const name = "algorithm-expression"
	text, err := p.text(name)
	if err != nil {
		return err
	}
	if given, ok := p.values["sharding-columns"]; ok && len(strings.Split(given, ",")) != len(a.columns) {
		return a.fail("sharding-columns", "sharding-columns is %q, but the strategy has %d columns", clip(given), len(a.columns))
	}
	kind, rest, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(text), "<"), ">")
	if strings.HasPrefix(strings.TrimSpace(text), "<") && ok {
		if kind = strings.ToUpper(kind); kind != "GROOVY" && kind != "LITERAL" {
			return a.fail(name, "the expression <%s> is not understood", clip(kind))
		}
		if text = rest; kind == "LITERAL" && strings.Contains(text, "{") {
			return a.fail(name, "<LITERAL> with { is not understood")
		}
	}
	a.template, err = groovy.Compile(text, a.columns)
	if err != nil {
		return &NotUnderstoodError{Type: a.typ, Prop: name, Reason: name + ": " + err.Error(), Err: err}
	}
	if unknown := a.template.Unknown(); len(unknown) > 0 {
		return a.fail(name, "%s has the name %q, which is none of the sharding columns: %s (names are case-sensitive)",
			name, unknown[0], strings.Join(a.columns, ", "))
	}
	used := func(i int) bool { return a.template.Uses(i) }
	if i := slices.IndexFunc(a.columns, func(c string) bool { return !used(slices.Index(a.columns, c)) }); i >= 0 && !a.template.IsPlain() {
		return a.fail(name, "%s does not have the sharding column %s in it", name, a.columns[i])
	}
	return nil
}
