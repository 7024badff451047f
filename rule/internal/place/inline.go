package place

import (
	"strings"

	"github.com/shardkey/shardkey/rule/internal/expr"
)

func newInline(a *Algorithm, p *properties) {
	const name = "algorithm-expression"
	text := strings.TrimSpace(p.text(name))
	if kind, rest, ok := strings.Cut(strings.TrimPrefix(text, "<"), ">"); ok && text[0] == '<' {
		text, kind = rest, strings.ToUpper(kind)
		switch {
		case kind != "GROOVY" && kind != "LITERAL":
			p.fail(name, "the expression <%s> is not supported", expr.Clip(kind))
		case kind == "LITERAL" && strings.Contains(text, "{"):
			p.fail(name, "<LITERAL> with { is not supported")
		}
	}
	var err error
	a.template, err = expr.Compile(text, a.column)
	switch {
	case p.err != nil:
	case err != nil:
		p.err = &NotUnderstoodError{Prop: name, Reason: name + ": " + err.Error(), Err: err}
	case !a.template.Uses() && !a.template.IsPlain():
		p.fail(name, "%s doesn't use the sharding column %s", name, a.column)
	}
}
