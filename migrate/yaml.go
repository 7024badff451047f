package migrate

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// YAML returns the content of a rule file, or "" if the rule has no tables.
func (r Rule) YAML() string {
	if len(r.tables) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("rules:\n- !SHARDING\n  tables:\n")
	shards := 1
	for _, t := range r.tables {
		fmt.Fprintf(&b, "    %s:\n", quoted(t.logical))
		if t.nodes != "" {
			fmt.Fprintf(&b, "      actualDataNodes: %s\n", t.nodes)
		}
		fmt.Fprintf(&b, "      keyGenerateStrategy: {column: %s, keyGeneratorName: snowflake}", quoted(t.column))
		if t.narrow != "" {
			fmt.Fprintf(&b, "   # %s is %s, which is too small for these keys: see shardkey migrate", t.column, t.narrow)
		}
		b.WriteString("\n")
		shards = max(shards, t.count)
	}
	b.WriteString("  keyGenerators:\n    snowflake: {type: SNOWFLAKE, props: {worker-id-assigner: cluster")
	if shards > 1 {
		fmt.Fprintf(&b, ", max-vibration-offset: %d", min(shards, 1<<12)-1)
	}
	b.WriteString("}}\n  workerIdAssigners:\n")
	fmt.Fprintf(&b, "    cluster: {type: SQL, props: {namespace: %s%s}}\n", quoted(r.namespace()), r.store())
	if len(r.LeftOut) > 0 {
		b.WriteString("\n# Left out:\n")
		for _, l := range r.LeftOut {
			fmt.Fprintf(&b, "#   %s: %s\n", l.Name, l.Why)
		}
	}
	return b.String()
}

// store says where the worker IDs are: with one database in it, with several in one
// that the environment names.
func (r Rule) store() string {
	if len(r.sources) < 2 {
		return ""
	}
	escaped := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(r.sources[0].DSN)
	return fmt.Sprintf(", dsn: \"${SHARDKEY_IDS_DSN::%s}\"", escaped)
}

var notInNamespace = regexp.MustCompile(`[^A-Za-z0-9._-]+`)

func (r Rule) namespace() string {
	name := ""
	if len(r.sources) > 0 {
		name = notInNamespace.ReplaceAllString(r.sources[0].schema.Name, "-")
	}
	name = strings.TrimLeft(name, ".")
	return cmp.Or(name[:min(len(name), 64)], "shardkey")
}

// yamlWords are read as something else than a text.
var yamlWords = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"}

var yamlPlain = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

func quoted(text string) string {
	if yamlPlain.MatchString(text) && !slices.Contains(yamlWords, strings.ToLower(text)) {
		return text
	}
	return strconv.Quote(text)
}
