package convert

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// prefixes are the prefixes of the sharding rule in a Spring Boot application, for versions 5 and
// 4 of ShardingSphere.
var prefixes = []string{"spring.shardingsphere.rules.sharding", "spring.shardingsphere.sharding"}

// setting is one value in the configuration of a Spring Boot application, with its path. A
// file may join the words of a path with dots, nest them, or both.
type setting struct {
	words []*yaml.Node
	value *yaml.Node
}

// spring reads the sharding rule of a Spring Boot application, if it has one. A later document adds to
// it.
func (c *conversion) spring() error {
	if err := c.profiles(); err != nil {
		return err
	}
	settings := slices.Concat(c.springs...)
	for _, prefix := range prefixes {
		var tree *yaml.Node
		others := slices.DeleteFunc(slices.Clone(settings), func(s setting) bool { return s.has(prefix) })
		if len(others) == len(settings) {
			continue
		}
		for _, s := range settings {
			if !s.has(prefix) {
				continue
			}
			words := s.words[strings.Count(prefix, ".")+1:]
			if tree == nil {
				tree = mapping(words[0])
			}
			if err := c.plant(tree, words, s.value, false); err != nil {
				return err
			}
		}
		if err := c.placeholders(tree); err != nil {
			return err
		}
		if err := c.elsewhere(others, prefix); err != nil {
			return err
		}
		return c.rule(tree)
	}
	return nil
}

// profiles returns an error if several documents have settings of the rule, and one is for a profile
// only. Otherwise it lists the profile as left out.
func (c *conversion) profiles() error {
	documents := 0
	var profile *setting
	for _, settings := range c.springs {
		if !slices.ContainsFunc(settings, setting.isSharding) {
			continue
		}
		documents++
		if i := slices.IndexFunc(settings, setting.isCondition); i >= 0 {
			profile = &settings[i]
		}
	}
	switch {
	case profile == nil:
	case documents > 1:
		return c.errorAt(profile.words[0], fmt.Sprintf("%d documents have sharding rules, and this one is only for a profile (%s); "+
			"keep the documents of one profile", documents, profile.text()))
	default:
		c.leave(profile.words[0], profile.text(), "the rule is converted, whichever profile is active")
	}
	return nil
}

// isSharding reports whether a setting is one of the sharding rule.
func (s setting) isSharding() bool { return slices.ContainsFunc(prefixes, s.has) }

// isCondition reports whether a setting restricts its document, for example to a profile.
func (s setting) isCondition() bool {
	name := letters(s.name(len(s.words)))
	return name == "spring.profiles" || strings.HasPrefix(name, "spring.profiles.[") || s.has("spring.config.activate")
}

// text returns the setting as one line.
func (s setting) text() string {
	values := []string{s.value.Value}
	for _, item := range s.value.Content {
		values = append(values, item.Value)
	}
	return s.name(len(s.words)) + ": " + strings.TrimPrefix(strings.Join(values, ", "), ", ")
}

// aboutKeys matches settings about keys, in lower case and without punctuation.
var aboutKeys = regexp.MustCompile(`keygenerat|datanodes|workeridassigner`)

// elsewhere returns an error for settings about keys that have no known prefix. It adds
// ShardingSphere's other settings to the list of those left out, once for each part.
func (c *conversion) elsewhere(settings []setting, prefix string) error {
	listed := map[string]bool{}
	for _, s := range settings {
		known := slices.ContainsFunc(prefixes, s.has)
		if name := s.name(len(s.words)); !known && aboutKeys.MatchString(letters(name)) {
			return c.errorAt(s.words[0], fmt.Sprintf("unknown prefix of %q: expected %s", name, prefix))
		}
		part := s.name(3)
		if len(s.words) > 3 && letters(s.words[2].Value) == "rules" {
			part = s.name(4)
		}
		if s.has("spring.shardingsphere") && !listed[part] {
			listed[part] = true
			why := notKeys
			if known {
				why = "the sharding rule below " + prefix + " is converted"
			}
			c.leave(s.words[len(s.words)-1], part, why)
		}
	}
	return nil
}

// has reports whether a setting is below a prefix. Like Spring, it compares only letters and
// digits.
func (s setting) has(prefix string) bool {
	words := strings.Split(prefix, ".")
	return len(s.words) > len(words) && slices.EqualFunc(s.words[:len(words)], words, func(n *yaml.Node, want string) bool {
		return letters(n.Value) == want
	})
}

func (s setting) name(most int) string {
	var words []string
	for _, w := range s.words[:min(most, len(s.words))] {
		words = append(words, w.Value)
	}
	return strings.Join(words, ".")
}

// springDocument returns the settings in a YAML document of a Spring Boot application.
func (c *conversion) springDocument(document *yaml.Node) (settings []setting, err error) {
	for key, value := range pairsOf(document) {
		first, _, _ := strings.Cut(key.Value, ".")
		if err == nil && (first == "spring" || first == "sharding") {
			settings, err = c.flatten(settings, nil, key, value)
		}
	}
	return settings, err
}

// flatten appends the settings of an entry below the words above.
func (c *conversion) flatten(settings []setting, above []*yaml.Node, key, value *yaml.Node) ([]setting, error) {
	words := append(slices.Clone(above), splitWords(key.Value, key)...)
	if len(words) > maxWords {
		return nil, c.errorAt(key,
			fmt.Sprintf("nested deeper than %d words, or an alias that contains itself", maxWords))
	}
	err := c.count(key)
	if value.Kind != yaml.MappingNode || len(value.Content) == 0 {
		return append(settings, setting{words, value}), err
	}
	for key, value := range pairsOf(value) {
		if err == nil {
			settings, err = c.flatten(settings, words, key, value)
		}
	}
	return settings, err
}

// maxWords is the largest number of words in a setting's path.
const maxWords = 32

// splitWords splits a setting's name at its dots: "binding-tables[0]" has the words
// "binding-tables" and "[0]".
func splitWords(name string, at *yaml.Node) (words []*yaml.Node) {
	for part := range strings.SplitSeq(name, ".") {
		if i := strings.IndexByte(part, '['); i > 0 {
			words = append(words, text(part[:i], at))
			part = part[i:]
		}
		words = append(words, text(part, at))
	}
	return words
}

// named are the maps whose keys are names chosen by the user.
var named = []string{"tables", "autoTables", "shardingAlgorithms", "keyGenerators", "auditors", "workerIdAssigners",
	"keyGenerateStrategies"}

// plant adds a value to the tree at a path of words. isName means that the first word is a
// name chosen by the user.
func (c *conversion) plant(tree *yaml.Node, words []*yaml.Node, value *yaml.Node, isName bool) error {
	at := words[0]
	word := strings.Trim(at.Value, "[]")
	if !isName {
		word = today(word)
	}
	if word == "props" && !isName && len(words) > 2 {
		// The dots belong to the property, such as worker.id.
		words = []*yaml.Node{at, text(setting{words: words[1:]}.name(len(words)), words[1])}
	}
	i := index(tree, word)
	if i < 0 && len(words) > 1 {
		n, err := strconv.Atoi(strings.Trim(words[1].Value, "[]"))
		if err == nil && n >= 0 && words[1].Value[0] == '[' {
			put(tree, word, at, &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: at.Line, Column: at.Column})
		} else {
			put(tree, word, at, mapping(at))
		}
		i = len(tree.Content) - 2
	}
	switch {
	case i < 0:
		value, err := c.plain(value)
		put(tree, word, at, value)
		return err
	case len(words) == 2 && tree.Content[i+1].Kind == yaml.SequenceNode:
		value, err := c.plain(value)
		tree.Content[i+1].Content = append(tree.Content[i+1].Content, value)
		return err
	case len(words) == 1 || tree.Content[i+1].Kind != yaml.MappingNode:
		return c.errorAt(at, fmt.Sprintf("%q is set twice, or has both a value and nested settings (see line %d)",
			at.Value, tree.Content[i].Line))
	}
	return c.plant(tree.Content[i+1], words[1:], value, !isName && (slices.Contains(named, word) || word == "props"))
}

// todaysWords are the settings in the spelling of a rule file, by their letters in lower case.
// Spring's users may write them as one word, in capitals or with underscores.
var todaysWords = func() map[string]string {
	words := map[string]string{}
	for word := range strings.FieldsSeq(`
		tables autoTables bindingTables broadcastTables defaultDatabaseStrategy defaultTableStrategy
		defaultShardingColumn defaultKeyGenerateStrategy defaultKeyGenerator defaultDataSourceName
		keyGenerateStrategies keyGenerators workerIdAssigners shardingAlgorithms auditors defaultAuditStrategy
		masterSlaveRules encryptRule actualDataNodes
		actualDataSources databaseStrategy tableStrategy shardingStrategy auditStrategy keyGenerateStrategy
		keyGenerator logicTable logicIndex standard
		complex hint inline none shardingColumn shardingColumns shardingAlgorithmName javaType algorithmExpression
		preciseAlgorithmClassName rangeAlgorithmClassName algorithmClassName auditorNames allowHintDisable column
		keyGeneratorName keyGenerateType keyGenerateColumn keyGenerateSequence explicitKeys batchKeys unlisted
		shardGuard type props`) {
		words[letters(word)] = word
	}
	return words
}()

// today returns a word in the spelling of a rule file: actualDataNodes for actual-data-nodes.
func today(word string) string {
	if known, ok := todaysWords[letters(word)]; ok {
		return known
	}
	parts := strings.Split(word, "-")
	for i, part := range parts[1:] {
		if part != "" {
			parts[i+1] = strings.ToUpper(part[:1]) + part[1:]
		}
	}
	return strings.Join(parts, "")
}

func letters(word string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(word))
}

// placeholder matches Spring's placeholders with a default after one colon. A rule file has
// two colons there. An expression of a table's names never has a colon after a name.
var placeholder = regexp.MustCompile(`\$\{([A-Za-z_][\w.-]*):((?:[^:}][^}]*)?)\}`)

// mavens matches the placeholders that Maven replaces when it builds an application.
var mavens = regexp.MustCompile(`@[\w.-]+@`)

// placeholders converts Spring's placeholders in the values below a node.
func (c *conversion) placeholders(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		if mavens.MatchString(n.Value) {
			return c.errorAt(n, "found a placeholder of Maven: replace it, or convert the file below target/classes")
		}
		n.Value = placeholder.ReplaceAllString(n.Value, "$${${1}::${2}}")
	}
	for _, inner := range n.Content {
		if err := c.placeholders(inner); err != nil {
			return err
		}
	}
	return nil
}
