package rule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// A Spring Boot file says the same as a rule file, in words that are joined by
// dots and written in kebab case, in YAML or in .properties. It is turned into
// the tree that a rule file has; words keep their places.
//
//	spring.shardingsphere.rules.sharding.tables.t_order.key-generate-strategy.column=order_id

type springPrefix struct {
	words string
	four  bool // the words are version 4's
}

// springPrefixes are where a Spring Boot file has its sharding rule: that of
// ShardingSphere 5, of 4 and of 3.
var springPrefixes = []springPrefix{
	{"spring.shardingsphere.rules.sharding.", false},
	{"spring.shardingsphere.sharding.", true},
	{"sharding.jdbc.config.sharding.", true},
}

// springHint is what a Spring Boot file without a sharding rule should have.
const springHint = "below spring.shardingsphere.rules.sharding of this Spring Boot file"

// springSetting is one line of a Spring Boot file.
type springSetting struct {
	words []word
	value *yaml.Node
}

// isSpring reports whether a YAML document is a Spring Boot file.
func isSpring(pairs []pair) bool {
	return slices.ContainsFunc(pairs, func(p pair) bool {
		first, rest, _ := strings.Cut(p.key.text, ".")
		inner := resolve(p.value)
		return first == "spring" || first == "sharding" &&
			(strings.HasPrefix(rest, "jdbc") || inner.Kind == yaml.MappingNode && len(inner.Content) > 0 && inner.Content[0].Value == "jdbc")
	})
}

// spring reads the sharding rule of a Spring Boot file, when it has one.
func (rd *reader) spring(settings []springSetting) error {
	for _, prefix := range springPrefixes {
		tree := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for _, s := range settings {
			if inner, ok := s.below(prefix.words); ok {
				if rd.settingsRead++; rd.settingsRead > maxSettings || len(inner) > maxWords {
					return rd.errorAt(inner[0], tooManySettings)
				}
				if tree.Line == 0 {
					tree.Line, tree.Column = inner[0].place.line, inner[0].place.column
				}
				if err := rd.plant(tree, inner, s.value, false); err != nil {
					return err
				}
			}
		}
		if len(tree.Content) == 0 {
			continue
		}
		for _, s := range settings {
			if err := rd.astray(s, prefix.words); err != nil {
				return err
			}
		}
		rd.isSpring = true
		read := rd.sharding
		if prefix.four {
			read = rd.rule4
		}
		return read(tree)
	}
	rd.hint = springHint
	return nil
}

// keyWords and shardingWords are letters in settings that are about nothing but keys,
// and about sharding.
var (
	keyWords      = []string{"keygenerat", "datanodes", "workeridassigner"}
	shardingWords = []string{"shardingalgorithm", "shardingstrategy", "shardingcolumn", "databasestrategy", "tablestrategy",
		"actualdatasources", "bindingtables", "broadcasttables", "autotables"}
)

// astray finds a setting about sharding that is not below the prefix that the
// file's others have: an error when it is about keys, and a warning when it is not,
// or is of another version, which ShardingSphere ignores too.
func (rd *reader) astray(s springSetting, prefix string) error {
	if _, ok := s.below(prefix); ok {
		return nil
	}
	has := func(parts []string) bool {
		return slices.ContainsFunc(s.words, func(w word) bool {
			return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(letters(w.text), part) })
		})
	}
	of := func(p springPrefix) bool { _, ok := s.below(p.words); return ok }
	about := has(keyWords)
	if !about && !has(shardingWords) {
		return nil
	}
	var name []string
	for _, w := range s.words {
		name = append(name, w.text)
	}
	w := word{strings.Join(name, "."), s.words[0].place}
	reason := fmt.Sprintf("%q is not below %s, as the sharding rule is", clip(w.text), strings.TrimSuffix(prefix, "."))
	if about && !slices.ContainsFunc(springPrefixes, of) {
		return rd.errorAt(w, reason)
	}
	rd.warn(w, reason+": it is ignored")
	return nil
}

// below returns the words after a prefix.
func (s springSetting) below(prefix string) ([]word, bool) {
	n := strings.Count(prefix, ".")
	if len(s.words) <= n {
		return nil, false
	}
	for i, want := range strings.Split(prefix, ".")[:n] {
		if s.words[i].text != want {
			return nil, false
		}
	}
	return s.words[n:], true
}

// maxSettings and maxWords bound a Spring Boot file, in which aliases multiply, or
// lead back to where they stand.
const (
	maxSettings = 1 << 16
	maxWords    = 32
)

const tooManySettings = "there are too many settings, or they stand below themselves"

// flatten returns the settings of a YAML document that may be about sharding. Its
// keys may be joined by dots and nested, both in one file.
func (rd *reader) flatten(pairs []pair, above []word) (settings []springSetting, err error) {
	for _, p := range pairs {
		words := slices.Clone(above)
		for text := range strings.SplitSeq(p.key.text, ".") {
			words = append(words, word{text, p.key.place})
		}
		if !mayLead(words) {
			continue
		}
		if rd.settingsRead++; rd.settingsRead > 2*maxSettings || len(words) > maxWords {
			return nil, rd.errorAt(p.key, tooManySettings)
		}
		if n := resolve(p.value); n.Kind != yaml.MappingNode || len(n.Content) == 0 {
			settings = append(settings, springSetting{words, p.value})
			continue
		}
		entries, err := rd.pairs(p.value, fmt.Sprintf("%q", p.key.text))
		if err != nil {
			return nil, err
		}
		inner, err := rd.flatten(entries, words)
		if err != nil {
			return nil, err
		}
		settings = append(settings, inner...)
	}
	return settings, nil
}

// mayLead reports whether words lead to a sharding rule, or into one.
func mayLead(words []word) bool {
	return slices.ContainsFunc(springPrefixes, func(prefix springPrefix) bool {
		for i, want := range strings.Split(strings.TrimSuffix(prefix.words, "."), ".") {
			if i < len(words) && words[i].text != want {
				return false
			}
		}
		return true
	})
}

// namesBelow are the keys whose maps have names that people give.
var namesBelow = []string{"tables", "autoTables", "shardingAlgorithms", "keyGenerators", "auditors", "workerIdAssigners", "keyGenerateStrategies"}

// plant puts a value into the tree, at the words that lead to it.
func (rd *reader) plant(tree *yaml.Node, words []word, value *yaml.Node, isName bool) error {
	key := words[0]
	text, index, isList := strings.Cut(strings.TrimSuffix(key.text, "]"), "[")
	if isName || !isList {
		text = strings.Trim(key.text, "[]")
		isList = false
	}
	if !isName {
		text = canonical(text)
	}
	if text == "props" && len(words) > 2 {
		// A property's own dots: worker.id.
		var name []string
		for _, w := range words[1:] {
			name = append(name, w.text)
		}
		words = []word{key, {strings.Join(name, "."), words[1].place}}
		return rd.plant(child(tree, word{text, key.place}), words[1:], value, true)
	}
	switch inner := child(tree, word{text, key.place}); {
	case len(words) > 1 && inner.Kind != yaml.MappingNode:
		return rd.errorAt(key, fmt.Sprintf("%q has a value of its own and others below it", key.text))
	case len(words) > 1:
		return rd.plant(inner, words[1:], value, slices.Contains(namesBelow, text) || text == "props")
	case isList:
		if _, err := strconv.Atoi(index); err != nil {
			return rd.errorAt(key, fmt.Sprintf("%q: %q is no index of a list", key.text, index))
		}
		inner.Kind, inner.Tag = yaml.SequenceNode, "!!seq"
		inner.Content = append(inner.Content, value)
	case len(inner.Content) > 0:
		return rd.errorAt(key, fmt.Sprintf("%q has a value of its own and others below it", key.text))
	default:
		*inner = yaml.Node{Kind: yaml.AliasNode, Alias: value, Line: value.Line, Column: value.Column}
	}
	return nil
}

// child returns the value under a key of a map; a new map when there is none.
func child(tree *yaml.Node, key word) *yaml.Node {
	for i := 0; i+1 < len(tree.Content); i += 2 {
		if tree.Content[i].Value == key.text {
			return tree.Content[i+1]
		}
	}
	inner := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: key.place.line, Column: key.place.column}
	tree.Content = append(tree.Content,
		&yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key.text, Line: key.place.line, Column: key.place.column}, inner)
	return inner
}

// canonical turns actual-data-nodes into actualDataNodes. Spring binds words
// without regard to case, "-" and "_".
func canonical(text string) string {
	if known, ok := springWords[letters(text)]; ok {
		return known
	}
	parts := strings.Split(text, "-")
	for i, part := range parts[1:] {
		if part != "" {
			parts[i+1] = strings.ToUpper(part[:1]) + part[1:]
		}
	}
	return strings.Join(parts, "")
}

func letters(text string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(text))
}

// springWords are the keys of all objects, by their letters.
var springWords = func() map[string]string {
	words := map[string]string{}
	var add func(o object)
	add = func(o object) {
		for word, inner := range o {
			words[letters(word)] = word
			add(inner)
		}
	}
	add(ruleObject)
	add(ruleObject4)
	add(tableObject)
	add(autoTableObject)
	add(tableObject4)
	for _, word := range slices.Concat(settingNames, []string{"column", "keyGeneratorName", "keyGenerateType", "keyGenerateColumn", "keyGenerateSequence"}) {
		words[letters(word)] = word
	}
	return words
}()

// parseProperties reads a Java properties file.
func parseProperties(data []byte) (settings []springSetting) {
	lines := strings.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		first, text := i+1, strings.TrimLeft(lines[i], " \t\f")
		if text == "" || text[0] == '#' || text[0] == '!' {
			continue
		}
		for continues(text) && i+1 < len(lines) {
			i++
			text = text[:len(text)-1] + strings.TrimLeft(lines[i], " \t\f")
		}
		key, value := cutProperty(text)
		at := place{line: first, column: 1}
		s := springSetting{value: &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle,
			Value: unescapeProperty(value), Line: first, Column: 1 + len(text) - len(value)}}
		for text := range strings.SplitSeq(unescapeProperty(key), ".") {
			s.words = append(s.words, word{text, at})
		}
		settings = append(settings, s)
	}
	return settings
}

// continues reports whether a line goes on in the next one: it ends with an odd
// number of backslashes.
func continues(line string) bool {
	return (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1
}

// cutProperty cuts a line at its first "=", ":" or blank that is not escaped.
func cutProperty(line string) (key, value string) {
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '=', ':', ' ', '\t', '\f':
			value = strings.TrimLeft(line[i:], " \t\f")
			if value != "" && (value[0] == '=' || value[0] == ':') {
				value = strings.TrimLeft(value[1:], " \t\f")
			}
			return line[:i], value
		}
	}
	return line, ""
}

var propertyEscapes = map[byte]string{'t': "\t", 'n': "\n", 'r': "\r", 'f': "\f"}

func unescapeProperty(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			b.WriteByte(text[i])
			continue
		}
		i++
		code, err := uint64(0), strconv.ErrSyntax
		if text[i] == 'u' && i+4 < len(text) {
			code, err = strconv.ParseUint(text[i+1:i+5], 16, 16)
		}
		switch escaped, ok := propertyEscapes[text[i]]; {
		case err == nil:
			b.WriteRune(rune(code))
			i += 4
		case ok:
			b.WriteString(escaped)
		default:
			b.WriteByte(text[i])
		}
	}
	return b.String()
}
