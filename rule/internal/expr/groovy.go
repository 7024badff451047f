package expr

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/internal/nearest"
)

// This file tells what is right in Groovy, but not supported, from mistakes.

var (
	// foreignOperators follow a value in Groovy.
	foreignOperators = []string{"**", "<=>", "===", "!==", "==~", "=~", "?.", "?:", "<..", "++", "--", "+=", "-=", "*=", "/=",
		"%=", "&=", "|=", "^=", "**=", "<<=", ">>=", ">>>=", "=", ";", ".&", "::", "[", "!", "in", "instanceof", "as"}
	// foreignValues begin a value or a statement in Groovy.
	foreignValues = append(strings.Fields("{ $ ++ -- true false this super new if for while do switch return def var final "+
		"try throw assert print println"), types...)
	types        = strings.Fields("int long boolean double float short byte char")
	packageNames = strings.Fields("java javax groovy org com net io cn")
	javaClasses  = []string{"Math", "Integer", "Long"}
	// overloaded are methods that Java also has with more arguments.
	overloaded = strings.Fields("toString hashCode step Integer.valueOf Integer.parseInt Long.valueOf Long.parseLong")

	groovyNumber = regexp.MustCompile(`^(0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[0-7_]*|[1-9][0-9_]*([eE][0-9]+)?)[lLiIgGdDfF]?$`)
)

// skip records that the next token isn't supported, and reads it. The parser reads on, because a
// mistake behind it is worth more.
func (p *parser) skip(token string) *node {
	if p.foreign == nil && p.err == nil {
		p.foreign = p.error("%q is not supported", Clip(token))
	}
	p.at = min(p.at+len(token), len(p.text))
	return &node{op: constant}
}

// member reads a property, or a method with its arguments, that the package doesn't know.
func (p *parser) member() *node {
	name := p.peek()
	right := misspelt(name, append(slices.Collect(maps.Keys(methods)), "collect"))
	switch {
	case nameLength(name) == 0 && !strings.Contains(`'"@`, name) || name == "":
		return p.wrong("expected the name of a method, found %q", Clip(name))
	case right != "":
		return p.wrong("expected the method %s, found %q", right, Clip(name))
	}
	return p.skipCall(name)
}

// skipCall reads a name that isn't supported, and the arguments after it.
func (p *parser) skipCall(name string) *node {
	n := p.skip(name)
	if p.take("(") {
		p.list(")")
	}
	if p.peek() == "{" {
		return p.fail("%q is not supported", "{")
	}
	return n
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

// foreignName reads a name that is no variable and no class of this package. next is the token that
// follows it.
func (p *parser) foreignName(name, next string) *node {
	isClass := next == "." && ('A' <= name[0] && name[0] <= 'Z' || slices.Contains(packageNames, name))
	switch right := misspelt(name, slices.Clone(javaClasses)); {
	case slices.Contains(foreignValues, name):
		return p.fail("%q is not supported", name)
	case isClass && right != "":
		return p.wrong("expected the class %s, found %q", right, name)
	case !isClass:
		return p.undefined(name)
	}
	n := p.skip(name)
	for p.take(".") {
		p.skipCall(p.text[p.at:][:nameLength(p.peek())])
	}
	return n
}

// undefined returns the error for a name that isn't the column's.
func (p *parser) undefined(name string) *node {
	if column := p.names[0]; column != "" && strings.EqualFold(column, name) {
		return p.wrong("expected the sharding column %[2]s (case-sensitive), found %[1]q", name, column)
	}
	return p.wrong("%q is not defined", Clip(name))
}
