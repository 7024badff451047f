package expr

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/shardkey/shardkey/internal/nearest"
)

// This file reads the parts of Groovy that the package doesn't evaluate. The parser reads on after
// them, because a mistake behind them is worth more than the message that they aren't supported.

var (
	// foreignOperators are binary operators.
	foreignOperators = []string{"**", "<=>", "===", "!==", "==~", "=~", "?:", "<..", "+=", "-=", "*=", "/=", "%=", "&=",
		"|=", "^=", "**=", "<<=", ">>=", ">>>=", "=", ";"}
	// keywords begin statements, which the parser doesn't read.
	keywords = strings.Fields("if for while do switch return def var final try throw assert print println int long boolean " +
		"double float short byte char")
	packageNames = strings.Fields("java javax groovy org com net io cn")
	literals     = strings.Fields("true false this super")
	javaClasses  = []string{"Math", "Integer", "Long"}
	// overloaded are methods that Java also has with more arguments.
	overloaded = strings.Fields("toString hashCode step Integer.valueOf Integer.parseInt Long.valueOf Long.parseLong")

	groovyNumber = regexp.MustCompile(`^(0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[0-7_]*|[1-9][0-9_]*([eE][0-9]+)?)[lLiIgGdDfF]?$`)
)

// skip records that the next token isn't supported, and reads it.
func (p *parser) skip(token string) {
	if p.foreign == nil && p.err == nil {
		p.foreign = p.error("%q is not supported", Clip(token))
	}
	p.at = min(p.at+len(token), len(p.text))
}

// foreignBinary reads one of Groovy's other binary operators and its right operand.
func (p *parser) foreignBinary() bool {
	token := p.peek()
	if rest := p.text[p.at:]; strings.HasPrefix(rest, "!in") && token == "!" {
		token = "!" + rest[1:1+nameLength(rest[1:])]
	}
	switch {
	case slices.Contains([]string{"instanceof", "!instanceof", "as"}, token):
		p.skip(token)
		p.qualifiedName()
	case p.foreign != nil && token != "" && slices.Contains(names[:], token):
		// The operators after a type have a lower precedence.
		p.operator()
		p.at += len(token)
		p.binary(0)
	case slices.Contains(foreignOperators, token) || token == "in" || token == "!in":
		p.operator()
		p.skip(token)
		if token != ";" || p.peek() != "}" {
			p.binary(0)
		}
	default:
		return false
	}
	return p.err == nil
}

// qualifiedName reads a name such as java.util.Date.
func (p *parser) qualifiedName() {
	for {
		name := p.peek()
		if nameLength(name) == 0 {
			p.wrong("expected a name, found %q", Clip(name))
			return
		}
		if p.at += len(name); !p.take(".") {
			return
		}
	}
}

// member reads a property, or a method with its arguments, of which the package doesn't know the
// name.
func (p *parser) member() *node {
	name := p.peek()
	switch right := misspelt(name, append(slices.Collect(maps.Keys(methods)), "collect")); {
	case name == "'" || name == `"`:
		p.quoted(name)
	case nameLength(name) == 0:
		return p.wrong("expected the name of a method, found %q", Clip(name))
	case right != "":
		return p.wrong("expected the method %s, found %q", right, Clip(name))
	}
	p.skip(name)
	if p.take("(") {
		p.list(")")
	}
	if p.peek() == "{" {
		p.closure()
	}
	return &node{op: constant}
}

// misspelt returns the known name that only differs from name in case or in one letter, or "".
func misspelt(name string, known []string) string {
	slices.Sort(known)
	for _, right := range known {
		if right != name && nearest.Distance(name, right) <= 1 {
			return right
		}
	}
	return ""
}

// closure reads {x, y -> …} or {… it …}.
func (p *parser) closure() *node {
	p.skip("{")
	before, outer := p.at, len(p.names)
	p.names = append(p.names, "it")
	for nameLength(p.peek()) > 0 {
		p.names = append(p.names, p.peek())
		if p.at += len(p.peek()); !p.take(",") {
			break
		}
	}
	if !p.take("->") {
		p.at, p.names = before, p.names[:outer+1]
	}
	if p.peek() != "}" {
		p.expression()
	}
	p.names = p.names[:outer]
	p.expect("}")
	return &node{op: constant}
}

// foreignPrimary reads a value that the package doesn't evaluate. It returns nil for a token that
// begins no value.
func (p *parser) foreignPrimary(token string) *node {
	rest := p.text[p.at:]
	first, _ := utf8.DecodeRuneInString(token)
	switch {
	case token == "++" || token == "--":
		p.operator()
		p.skip(token)
		return p.unary()
	case token == "{":
		return p.closure()
	case token == "/" && strings.Contains(rest[1:], "/"):
		p.skip(rest[:strings.Index(rest[1:], "/")+2])
	case first >= utf8.RuneSelf && unicode.IsLetter(first), token == "$":
		end := strings.IndexFunc(rest, func(r rune) bool { return r != '$' && r != '_' && !unicode.In(r, unicode.L, unicode.N) })
		name := rest
		if end >= 0 {
			name = rest[:end]
		}
		if !slices.Contains(p.names, name) {
			return p.undefined(name)
		}
		p.used = true
		p.skip(name)
	default:
		return nil
	}
	return &node{op: constant}
}

// foreignName reads a name that is no variable and no class of this package. next is the token that
// follows it.
func (p *parser) foreignName(name, next string) *node {
	isClass := next == "." && ('A' <= name[0] && name[0] <= 'Z' || slices.Contains(packageNames, name))
	switch right := misspelt(name, slices.Clone(javaClasses)); {
	case slices.Contains(literals, name):
		p.skip(name)
	case name == "new":
		p.skip(name)
		if p.qualifiedName(); p.take("(") {
			p.list(")")
		}
	case slices.Contains(keywords, name):
		return p.fail("%q is not supported", name)
	case isClass && right != "":
		return p.wrong("expected the class %s, found %q", right, name)
	case isClass:
		p.skip(name)
		for p.take(".") {
			p.at += nameLength(p.peek())
		}
		if p.take("(") {
			p.list(")")
		}
	default:
		return p.undefined(name)
	}
	return &node{op: constant}
}

// undefined returns the error for a name that isn't the column's.
func (p *parser) undefined(name string) *node {
	if column := p.names[0]; column != "" && strings.EqualFold(column, name) {
		return p.wrong("expected the sharding column %[2]s (case-sensitive), found %[1]q", name, column)
	}
	return p.wrong("%q is not defined", Clip(name))
}
