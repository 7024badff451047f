package convert

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// maxNodes limits the size of a file whose aliases multiply or contain themselves.
const maxNodes = 1 << 18

func (c *conversion) count(n *yaml.Node) error {
	if c.nodes++; c.nodes > maxNodes {
		return c.errorAt(n, fmt.Sprintf("too many values (more than %d), or an alias that contains itself", maxNodes))
	}
	return nil
}

// plain returns a copy of a node without comments.
func (c *conversion) plain(n *yaml.Node) (*yaml.Node, error) {
	if err := c.count(n); err != nil {
		return nil, err
	}
	out := &yaml.Node{Kind: n.Kind, Style: n.Style, Tag: n.Tag, Value: n.Value, Line: n.Line, Column: n.Column}
	if out.Value == "" && n.ShortTag() == "!!null" {
		out.Value = "null" // which cannot be taken for an empty string in a flow map
	}
	for _, inner := range n.Content {
		one, err := c.plain(inner)
		if err != nil {
			return nil, err
		}
		out.Content = append(out.Content, one)
	}
	return out, nil
}

// index returns the index of a key in a map's Content. It returns -1 if the key is missing or
// the node is no map.
func index(m *yaml.Node, key string) int {
	if m != nil && m.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(m.Content); i += 2 {
			if m.Content[i].Value == key {
				return i
			}
		}
	}
	return -1
}

func get(m *yaml.Node, key string) *yaml.Node {
	if i := index(m, key); i >= 0 {
		return m.Content[i+1]
	}
	return nil
}

// take removes a key and returns it with its value, or nil if the key is missing.
func take(m *yaml.Node, key string) (k, value *yaml.Node) {
	i := index(m, key)
	if i < 0 {
		return nil, nil
	}
	k, value = m.Content[i], m.Content[i+1]
	m.Content = slices.Delete(m.Content, i, i+2)
	return k, value
}

func put(m *yaml.Node, key string, at, value *yaml.Node) {
	m.Content = append(m.Content, text(key, at), value)
}

func text(value string, at *yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value, Line: at.Line, Column: at.Column}
}

func mapping(at *yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: at.Line, Column: at.Column}
}

// under returns the map under a key. It adds the key if it is missing.
func under(m *yaml.Node, key string, at *yaml.Node) *yaml.Node {
	i := index(m, key)
	switch {
	case i < 0:
		put(m, key, at, mapping(at))
		i = len(m.Content) - 2
	case m.Content[i+1].ShortTag() == "!!null":
		m.Content[i+1] = mapping(at)
	}
	return m.Content[i+1]
}

// pairsOf iterates over the entries of a map. Other nodes have no entries.
func pairsOf(m *yaml.Node) func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		if m == nil || m.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i+1 < len(m.Content) && yield(m.Content[i], m.Content[i+1]); i += 2 {
		}
	}
}
