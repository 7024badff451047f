// Package yamltree reads YAML into trees of nodes without aliases and merged maps.
package yamltree

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Error is the error for a "<<" whose value can't be merged, with its place.
type Error struct {
	Line, Column int    // counted from 1
	Word, Reason string // Word is "<<" or a repeated key, or empty if the value is no map
}

func (e *Error) Error() string { return e.Reason }

// maxMerged bounds the entries of maps that "<<" merges. They multiply if such maps are nested.
const maxMerged = 1 << 20

// directive matches the YAML version. The library only knows 1.1, but can read 1.2.
var directive = regexp.MustCompile(`(?m)^%YAML\b`)

// Decode returns the root node of each document that isn't empty. In place of an alias is a copy of
// its node, with the place of the alias and the same Content. In place of the key "<<" are the entries
// of the maps that it merges, after the map's own ones. The error is an [*Error] or one of package
// yaml.
func Decode(data []byte) (roots []*yaml.Node, err error) {
	defer func() {
		// Anyone may have written the data. A panic in the YAML library must not end the program.
		if recover() != nil {
			roots, err = nil, errors.New("the parser panicked")
		}
	}()
	if bytes.Contains(data, []byte("%YAML")) {
		data = directive.ReplaceAll(data, []byte("#YAML"))
	}
	t := &tree{open: map[*yaml.Node]bool{}}
	for dec := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var document yaml.Node
		err := dec.Decode(&document)
		if errors.Is(err, io.EOF) {
			return roots, nil
		}
		if err != nil {
			return nil, err
		}
		if len(document.Content) > 0 && !IsNull(document.Content[0]) {
			if err := t.resolve(document.Content[0]); err != nil {
				return nil, err
			}
			roots = append(roots, document.Content[0])
		}
	}
}

type tree struct {
	open   map[*yaml.Node]bool // anchored nodes that resolve is in
	merged int                 // entries that were merged
}

// resolve replaces the aliases and the merged maps below a node. An alias follows the node that it
// refers to, so that node has been resolved, unless it contains the alias.
func (t *tree) resolve(n *yaml.Node) error {
	if n.Anchor != "" {
		t.open[n] = true
		defer delete(t.open, n)
	}
	for i, inner := range n.Content {
		if inner.Kind == yaml.AliasNode {
			same := *inner.Alias
			same.Line, same.Column, same.Anchor, same.Alias = inner.Line, inner.Column, "", inner.Alias
			n.Content[i] = &same
		} else if err := t.resolve(inner); err != nil {
			return err
		}
	}
	if n.Kind == yaml.MappingNode && slices.ContainsFunc(n.Content, isMergeKey) {
		return t.merge(n)
	}
	return nil
}

func isMergeKey(n *yaml.Node) bool { return n.Value == "<<" && n.ShortTag() == "!!merge" }

func (t *tree) merge(n *yaml.Node) error {
	names := map[string]bool{}
	var own, merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if !isMergeKey(key) {
			own, names[key.Value] = append(own, key, value), true
			continue
		}
		maps := []*yaml.Node{value}
		if value.Kind == yaml.SequenceNode {
			maps = value.Content
		}
		for _, m := range maps {
			switch t.merged += len(m.Content) / 2; {
			case m.Kind != yaml.MappingNode:
				return &Error{m.Line, m.Column, "", "the value of <<: expected a map, found " + Kind(m)}
			case t.open[m.Alias] || t.merged > maxMerged:
				return &Error{m.Line, m.Column, "<<", "<< merges too many maps, or a map into itself"}
			}
			if err := unrepeated(m); err != nil {
				return err
			}
			merged = append(merged, m.Content...)
		}
	}
	for i := 0; i+1 < len(merged); i += 2 {
		// If several of the maps have a key, the first one counts.
		if key := merged[i]; !names[key.Value] {
			own, names[key.Value] = append(own, key, merged[i+1]), true
		}
	}
	n.Content = own
	return nil
}

// unrepeated returns an error if a map has a key twice.
func unrepeated(m *yaml.Node) error {
	lines := map[string]int{}
	for i := 0; i < len(m.Content); i += 2 {
		key := m.Content[i]
		if line := lines[key.Value]; line > 0 {
			return &Error{key.Line, key.Column, key.Value, fmt.Sprintf("duplicate key %q in a merged map (line %d)", key.Value, line)}
		}
		lines[key.Value] = key.Line
	}
	return nil
}

// IsNull reports whether n is null, also with a tag, for example an item "- !SHARDING" without a
// value.
func IsNull(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode {
		return n.Kind == 0
	}
	return n.ShortTag() == "!!null" || n.Value == "" && n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) == 0
}

// property matches a file whose first line, after comments, is a property with "=".
var property = regexp.MustCompile(`^(?:[ \t\f]*(?:[#!].*)?[\r\n]+)*[ \t\f]*[\w.\[\]-]+[ \t\f]*=`)

// IsProperties reports whether a file with this name and content is one of Java properties, which isn't
// YAML.
func IsProperties(name string, data []byte) bool {
	return strings.HasSuffix(strings.ToLower(name), ".properties") || property.Match(data)
}

// Kind returns the kind of a node for an error message.
func Kind(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a map"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case IsNull(n):
		return "nothing"
	}
	return "a string"
}
