package place

import (
	"strings"

	"github.com/shardkey/shardkey/rule/internal/expr"
)

func newInline(a *Algorithm, p properties) error {
	const name = "algorithm-expression"
	text, err := p.text(name)
	if err != nil {
		return err
	}
	text = strings.TrimSpace(text)
	if kind, rest, ok := strings.Cut(strings.TrimPrefix(text, "<"), ">"); ok && text[0] == '<' {
		if kind = strings.ToUpper(kind); kind != "GROOVY" && kind != "LITERAL" {
			return a.fail(name, "the expression <%s> is not understood", clip(kind))
		}
		if text = rest; kind == "LITERAL" && strings.Contains(text, "{") {
			return a.fail(name, "<LITERAL> with { is not understood")
		}
	}
	a.template, err = expr.Compile(text, a.column)
	if err != nil {
		return &NotUnderstoodError{Prop: name, Reason: name + ": " + err.Error(), Err: err}
	}
	if !a.template.Uses() && !a.template.IsPlain() {
		return a.fail(name, "%s does not have the sharding column %s in it", name, a.column)
	}
	return nil
}
