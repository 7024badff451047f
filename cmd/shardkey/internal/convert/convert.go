// Package convert converts the rule files of ShardingSphere 4 and 5, and the YAML or properties of
// Spring Boot applications, into rule files of ShardingSphere 5.
package convert

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/shardkey/shardkey/cmd/shardkey/internal/textfile"
	"github.com/shardkey/shardkey/internal/yamltree"
	"github.com/shardkey/shardkey/rule"
)

// File reads the sharding rules of a file and returns them in the form of ShardingSphere 5,
// "rules: - !SHARDING". It reads rule files of versions 4 and 5, and the YAML or properties of a Spring
// Boot application. left lists the settings that the rule leaves out, with file and line.
//
// The error is a [*rule.Error] with its place in the file. If the converted rule doesn't load,
// File returns both the rule and the error.
func File(path string) (out []byte, left []string, err error) {
	data, err := readFile(path)
	if err != nil {
		return nil, nil, &rule.Error{File: path, Reason: "cannot read the file: " + err.Error(), Err: err}
	}
	c := &conversion{file: path}
	read := c.yaml
	if yamltree.IsProperties(path, data) {
		read = c.properties
	}
	if err := read(data); err != nil {
		return nil, nil, err
	}
	if err := c.spring(); err != nil {
		return nil, nil, err
	}
	if len(c.rules) == 0 {
		return nil, nil, c.noRule()
	}
	out, err = c.print()
	return out, c.left, err
}

// readFile reads a file, which may be a pipe.
func readFile(path string) ([]byte, error) {
	const most = 64 << 20
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > most:
		return nil, fmt.Errorf("longer than %d bytes", most)
	}
	return textfile.Text(data)
}

type conversion struct {
	file    string
	rules   []*yaml.Node // with their places in the file
	springs [][]setting  // of a Spring Boot application, by document
	left    []string
	nodes   int // number of nodes that plain and flatten have visited
}

func (c *conversion) noRule() error {
	for _, s := range slices.Concat(c.springs...) {
		if s.has("sharding.jdbc.config.sharding") {
			return c.errorAt(s.words[0], "no sharding rule: the settings of ShardingSphere 3 aren't converted; rename "+
				"sharding.jdbc.config.sharding to spring.shardingsphere.sharding, and key-generator-column-name to "+
				"key-generator.column, with key-generator.type: SNOWFLAKE for the default class")
		}
	}
	return c.errorAt(&yaml.Node{Line: 1, Column: 1}, "no sharding rule: expected one below rules (- !SHARDING), "+
		"shardingRule, "+strings.Join(prefixes, " or "))
}

func (c *conversion) errorAt(n *yaml.Node, reason string) error {
	return &rule.Error{File: c.file, Line: n.Line, Column: n.Column, Reason: reason}
}

// leave adds a setting to the list of those that are left out.
func (c *conversion) leave(n *yaml.Node, what, why string) {
	c.left = append(c.left, fmt.Sprintf("%s:%d: %s: %s", c.file, n.Line, what, why))
}

const notKeys = "shardkey reads the sharding rule only"

func (c *conversion) yaml(data []byte) error {
	documents, err := yamltree.Decode(data)
	if err != nil {
		if _, shown := rule.Parse(c.file, data); shown != nil {
			return shown // with the place
		}
		return &rule.Error{File: c.file, Line: 1, Column: 1, Reason: "invalid YAML: " + err.Error(), Err: err}
	}
	for _, root := range documents {
		if root.Kind != yaml.MappingNode {
			return c.errorAt(root, "expected a map with rules, shardingRule, or the settings of a "+
				"Spring Boot application, found "+yamltree.Kind(root))
		}
		settings, err := c.springDocument(root)
		if err != nil {
			return err
		}
		c.springs = append(c.springs, settings)
		isRule := get(root, "rules") != nil || get(root, "shardingRule") != nil
		if isRule && !slices.ContainsFunc(settings, setting.isSharding) {
			if err := c.document(root); err != nil {
				return err
			}
		}
	}
	return nil
}

// document reads a document of a rule file.
func (c *conversion) document(settings *yaml.Node) error {
	for key, value := range pairsOf(settings) {
		switch {
		case key.Value == "shardingRule":
			if err := c.rule(value); err != nil {
				return err
			}
		case key.Value != "rules":
			if value.Anchor == "" && !strings.HasPrefix(key.Value, "x-") {
				c.leave(key, key.Value, notKeys)
			}
		case value.Kind != yaml.SequenceNode && value.ShortTag() != "!!null":
			return c.errorAt(value,
				`expected a list of rules, each with a tag such as "- !SHARDING", found `+yamltree.Kind(value))
		default:
			for _, item := range value.Content {
				tag := item.ShortTag()
				if !strings.EqualFold(tag, "!SHARDING") && !strings.HasSuffix(tag, ".YamlShardingRuleConfiguration") {
					c.leave(item, "the rule "+tag, notKeys)
				} else if err := c.rule(item); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// print returns the rules as YAML, and an error if they don't load.
func (c *conversion) print() ([]byte, error) {
	list := &yaml.Node{Kind: yaml.SequenceNode, Content: c.rules}
	root := &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{{Kind: yaml.ScalarNode, Value: "rules"}, list}}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	enc.CompactSeqIndent()
	if err := errors.Join(enc.Encode(root), enc.Close()); err != nil {
		return nil, &rule.Error{File: c.file, Line: 1, Column: 1, Reason: err.Error(), Err: err}
	}
	_, err := rule.Parse("rule.yaml", out.Bytes())
	if e, ok := errors.AsType[*rule.Error](err); ok {
		return out.Bytes(), c.inFile(*e, root, out.Bytes())
	}
	return out.Bytes(), err
}

var inLine = regexp.MustCompile(`\bline \d+`)

// inFile replaces the place of an error in the output with the place in the input file.
func (c *conversion) inFile(e rule.Error, root *yaml.Node, out []byte) error {
	printed, err := yamltree.Decode(out)
	if err != nil || len(printed) != 1 {
		return &e
	}
	type place struct{ line, column int }
	places, lines := map[place]*yaml.Node{}, map[int]int{}
	var walk func(from, to *yaml.Node)
	walk = func(from, to *yaml.Node) {
		places[place{to.Line, to.Column}] = from
		if lines[to.Line] == 0 {
			lines[to.Line] = from.Line
		}
		for i := range to.Content {
			walk(from.Content[i], to.Content[i])
		}
	}
	walk(root, printed[0])
	at := places[place{e.Line, e.Column}]
	e.File, e.Line, e.Column = c.file, 1, 1
	if at != nil && at.Line > 0 {
		e.Line, e.Column = at.Line, at.Column
	}
	e.Reason = inLine.ReplaceAllStringFunc(e.Reason, func(text string) string {
		line, _ := strconv.Atoi(text[len("line "):])
		return "line " + strconv.Itoa(lines[line])
	})
	return &e
}
