package rule

import (
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/internal/registry"
	"github.com/shardkey/shardkey/internal/yamltree"
	"github.com/shardkey/shardkey/spi"
	"go.yaml.in/yaml/v3"
)

// reader turns YAML documents into a spec.
type reader struct {
	file  *file
	spec  spec
	other word // what the file has instead of a sharding rule
	json  bool // the file begins like JSON
}

type pair struct {
	key   word
	value *yaml.Node
}

// pairs returns the entries of a map. A null is an empty map. Duplicate keys are an error.
func (rd *reader) pairs(n *yaml.Node, what string) ([]pair, error) {
	if yamltree.IsNull(n) {
		return nil, nil
	}
	if n.Kind != yaml.MappingNode {
		return nil, rd.kindError(n, what, "a map")
	}
	pairs := make([]pair, 0, len(n.Content)/2)
	lines := make(map[string]int, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		w := word{key.Value, positionOf(key)}
		line, dup := lines[w.text]
		switch {
		case key.Kind != yaml.ScalarNode:
			return nil, rd.kindError(key, "a key of "+what, "a string")
		case dup:
			return nil, rd.file.errorAt(w, fmt.Sprintf("duplicate key %q in %s (line %d)", w.text, what, line))
		}
		pairs, lines[w.text] = append(pairs, pair{w, value}), w.position.line
	}
	return pairs, nil
}

func find(pairs []pair, key string) (pair, bool) {
	for _, p := range pairs {
		if p.key.text == key {
			return p, true
		}
	}
	return pair{}, false
}

// entries returns the entries of a map, or nil if n is anything else.
func (rd *reader) entries(n *yaml.Node) []pair {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	pairs, _ := rd.pairs(n, "")
	return pairs
}

// below returns the entries of the map under key, or nil if there is no such map.
func (rd *reader) below(pairs []pair, key string) []pair {
	p, _ := find(pairs, key)
	return rd.entries(p.value)
}

// scalar returns the value of key. ok is false if the value is missing or isn't a scalar.
func scalar(pairs []pair, key string) (word, bool) {
	p, ok := find(pairs, key)
	if !ok {
		return word{}, false
	}
	return word{p.value.Value, positionOf(p.value)}, p.value.Kind == yaml.ScalarNode
}

// text returns a scalar as written, or "" for a null.
func (rd *reader) text(n *yaml.Node, what string) (word, error) {
	switch {
	case n.Kind != yaml.ScalarNode:
		return word{}, rd.kindError(n, what, "a string")
	case yamltree.IsNull(n):
		return word{"", positionOf(n)}, nil
	case n.ShortTag() == "!!binary":
		return word{}, rd.file.errorAt(word{"!!binary", positionOf(n)}, what+": expected a string, found !!binary")
	}
	return word{n.Value, positionOf(n)}, nil
}

// fields are the entries of a map that only has known keys.
type fields struct {
	rd    *reader
	what  string
	pairs []pair
	err   error // the first error
}

func (rd *reader) fields(n *yaml.Node, what string, known ...string) *fields {
	f := &fields{rd: rd, what: what}
	if f.pairs, f.err = rd.pairs(n, what); f.err != nil {
		return f
	}
	if i := slices.IndexFunc(f.pairs, func(p pair) bool { return !slices.Contains(known, p.key.text) }); i >= 0 {
		f.err = rd.unknownKey(f.pairs[i].key, what, known, known)
	}
	return f
}

// text returns the value of key, or the zero word if the map doesn't have the key.
func (fl *fields) text(key string) (w word) {
	if p, ok := find(fl.pairs, key); ok && fl.err == nil {
		w, fl.err = fl.rd.text(p.value, key)
	}
	return w
}

// settings returns the values of the keys in settingNames.
func (fl *fields) settings() (s settings) {
	if fl.err == nil {
		s, fl.err = newSettings(fl.rd.file.name, fl.text)
	}
	return s
}

// maker returns the generator or assigner that type and props describe.
func (fl *fields) maker(kind registry.Kind, name word) componentSpec {
	m := componentSpec{kind: kind, name: name, typ: fl.text("type")}
	if p, ok := find(fl.pairs, "props"); ok && fl.err == nil {
		m.props, fl.err = fl.rd.props(p.value, fl.what)
	}
	return m
}

// unknownKey returns the error for a key that isn't known. right are the keys to suggest.
func (rd *reader) unknownKey(key word, what string, known, right []string) error {
	e := rd.file.errorAt(key, fmt.Sprintf("unknown key %q in %s; known: %s", key.text, what, strings.Join(known, ", ")),
		right...)
	if len(e.Nearest) == 0 && len(right) == 1 {
		e.Nearest = right
	}
	return e
}

func (rd *reader) kindError(n *yaml.Node, what, want string) error {
	return rd.file.errorAt(word{"", positionOf(n)}, fmt.Sprintf("%s: expected %s, found %s", what, want, yamltree.Kind(n)))
}

func positionOf(n *yaml.Node) position { return position{line: n.Line, column: n.Column} }

// makers appends the entries of keyGenerators or workerIdAssigners to those of the file's earlier
// sharding rules.
func (rd *reader) makers(p pair, kind registry.Kind) error {
	pairs, err := rd.pairs(p.value, p.key.text)
	for _, m := range pairs {
		f := rd.fields(m.value, fmt.Sprintf("%s %q", p.key.text, m.key.text), "type", "props")
		rd.spec.components = append(rd.spec.components, f.maker(kind, m.key))
		if f.err != nil {
			return f.err
		}
	}
	return err
}

// ignoredProps are properties that occur in files, but that no version of ShardingSphere reads.
var ignoredProps = []string{"datacenter-id", "data-center-id", "datacenterid"}

// props reads properties, which are strings or lists of strings, and expands environment variables
// in them.
func (rd *reader) props(n *yaml.Node, what string) ([]propSpec, error) {
	pairs, err := rd.pairs(n, "props of "+what)
	if err != nil {
		return nil, err
	}
	var props []propSpec
	for _, p := range pairs {
		if slices.Contains(ignoredProps, registry.PropKey(p.key.text)) {
			rd.file.warn(p.key, fmt.Sprintf("property %q of %s is ignored, as in ShardingSphere: no generator reads it",
				p.key.text, what))
			continue
		}
		prop := propSpec{name: p.key, position: positionOf(p.value)}
		if err := rd.propValue(&prop, p.value); err != nil {
			return nil, err
		}
		props = append(props, prop)
	}
	return props, nil
}

func (rd *reader) propValue(p *propSpec, n *yaml.Node) error {
	what := fmt.Sprintf("property %q", p.name.text)
	if n.Kind != yaml.SequenceNode {
		value, err := rd.expanded(p, n, what)
		p.value = spi.NewSecret(value)
		return err
	}
	p.list = make([]spi.Secret, len(n.Content))
	for i, item := range n.Content {
		value, err := rd.expanded(p, item, "an item of "+what)
		if err != nil {
			return err
		}
		p.list[i] = spi.NewSecret(value)
	}
	return nil
}

// expanded returns the value of a property with environment variables expanded, and records the
// original in p.
func (rd *reader) expanded(p *propSpec, n *yaml.Node, what string) (string, error) {
	w, err := rd.text(n, what)
	if err != nil {
		return "", err
	}
	value, used, err := expandEnv(w.text)
	if err != nil {
		e := rd.file.errorAt(word{p.name.text, w.position}, fmt.Sprintf("%s: %v", what, err))
		e.Err = err
		return "", e
	}
	if n.Style == 0 && octal.MatchString(w.text) {
		rd.file.warn(word{p.name.text, w.position}, fmt.Sprintf("%s begins with a 0, so other YAML parsers read it as an octal "+
			"number; remove the zero or put the value in quotes", what))
	}
	p.fromEnv = p.fromEnv || used
	p.written = spi.NewSecret(strings.TrimPrefix(p.written.Reveal()+","+w.text, ","))
	return value, nil
}

// octal matches a number that YAML 1.1, and therefore ShardingSphere, reads as octal.
var octal = regexp.MustCompile(`^0[0-7]+$`)

// expandEnv puts environment variables into the text of a property:
//
//	${NAME}            the variable's value; an error when it is not set
//	${NAME::default}   the default when it is not set
//	$${NAME::default}  the same, as ShardingSphere 5.5 writes it
//	\${                the two characters "${"
//
// The value of a variable is used as it is: it is not expanded again. The error
// shows names, never values.
func expandEnv(text string) (expanded string, used bool, err error) {
	expanded = envReference.ReplaceAllStringFunc(text, func(reference string) string {
		if reference == `\${` {
			return "${"
		}
		value, wrong := envValue(reference)
		used, err = true, cmp.Or(err, wrong)
		return value
	})
	if err != nil {
		return "", false, err
	}
	return expanded, used, nil
}

var (
	envReference = regexp.MustCompile(`\\\$\{|\$?\$\{[^}]*\}?`)
	// envName matches the part before a default, also a name such as db.password, which Java systems
	// use.
	envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)
)

// envValue returns the value of a reference such as ${NAME} or $${NAME::default}.
func envValue(reference string) (string, error) {
	inner, closed := strings.CutSuffix(strings.TrimLeft(reference, "$")[1:], "}")
	name, def, hasDef := strings.Cut(inner, "::")
	one, _, found := strings.Cut(inner, ":")
	value, set := os.LookupEnv(name)
	switch {
	case closed && !hasDef && found && envName.MatchString(one):
		return "", fmt.Errorf("expected two colons before a default: ${%s::default}", one)
	case !closed || !envName.MatchString(name):
		return "", fmt.Errorf("expected the name of an environment variable after \"${\", for example ${NAME}; write \\${ for the " +
			"characters themselves")
	case set:
		return value, nil
	case !hasDef:
		return "", fmt.Errorf("the environment variable %s is not set; set it or write a default: ${%s::value}", name, name)
	}
	return def, nil
}
