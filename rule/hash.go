package rule

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/shardkey/shardkey/internal/registry"
	"github.com/shardkey/shardkey/spi"
)

// Hash returns eight hexadecimal digits that identify what the rule means. Use it to see whether two
// processes have the same rule. Comments, spacing, the order of the file, and names of algorithms don't
// change it.
//
// Environment variables count by their names, as ${NAME} in the file. A password doesn't count, and a
// data source name only by its address and database. Hash returns "" for the zero Rule.
func (r *Rule) Hash() string { return r.hash }

// hash computes [Rule.Hash].
func (b *builder) hash() string {
	h := sha256.New()
	order := make([]int, len(b.rule.tables))
	for i := range order {
		order[i] = i
	}
	name := func(i int) string { return strings.ToLower(b.rule.tables[i].Logical) }
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(name(i), name(j)) })
	for _, i := range order {
		b.rule.tables[i].writeTo(h, b.specs[i])
	}
	keyless := strings.ToLower(strings.Join(b.rule.keyless, "\n"))
	fmt.Fprintf(h, "%q\n", slices.Sorted(strings.SplitSeq(keyless, "\n")))
	writeComponents(h, b.rule.generators.all)
	writeComponents(h, b.rule.assigners.all)
	return hex.EncodeToString(h.Sum(nil)[:4])
}

func (t *Table) writeTo(w io.Writer, spec *tableSpec) {
	nodes := strings.Split(spec.nodes.text, ",")
	for i := range nodes {
		nodes[i] = strings.TrimSpace(nodes[i])
	}
	fmt.Fprintf(w, "%q %q %q %q %t %q %q %q %q %d\n", strings.ToLower(t.Logical), strings.ToLower(t.Column), strings.ToLower(t.GeneratorName),
		t.ExplicitKeys, t.Consecutive, t.Unlisted, t.ShardGuard, nodes, spec.sources.text, spec.autoCount)
	for _, s := range []*shardingStrategy{spec.database, spec.table} {
		if s == nil {
			fmt.Fprintln(w)
			continue
		}
		fmt.Fprintf(w, "%q %d %q %q", textsOf(s.columns), s.class, s.algorithm.typ, s.unknown)
		for _, name := range slices.Sorted(maps.Keys(s.algorithm.props)) {
			fmt.Fprintf(w, " %q=%q", name, s.algorithm.props[name].text)
		}
		fmt.Fprintln(w)
	}
}

func textsOf(words []word) (texts []string) {
	for _, w := range words {
		texts = append(texts, strings.ToLower(w.text))
	}
	return texts
}

// writeComponents writes generators or assigners in the order of their names.
func writeComponents(w io.Writer, all []componentSpec) {
	lines := make([]string, len(all))
	for i, m := range all {
		var props []string
		for _, p := range m.props {
			name := registry.PropKey(p.name.text)
			props = append(props, fmt.Sprintf("%q=%q", name, p.public(slices.Contains(m.secrets, p.name.text))))
		}
		slices.Sort(props)
		lines[i] = fmt.Sprintf("%q %q %T %q\n", strings.ToLower(m.name.text), strings.ToUpper(m.typ.text), m.ready, props)
	}
	slices.Sort(lines)
	_, _ = io.WriteString(w, strings.Join(lines, ""))
}

// public returns the part of a property's value that is no secret. Environment variables aren't
// expanded.
func (pp *propSpec) public(secret bool) (values []string) {
	all := append([]spi.Secret{pp.value}, pp.list...)
	if pp.fromEnv {
		all = []spi.Secret{pp.written}
	}
	for _, v := range all {
		text := v.Reveal()
		if secret {
			values = append(values, envVariables.FindAllString(text, -1)...)
			if text = ""; registry.PropKey(pp.name.text) == "dsn" || registry.PropKey(pp.name.text) == "dsns" {
				text = databaseName(v.Reveal())
			}
		}
		values = append(values, text)
	}
	return values
}

// envVariables matches the names of environment variables, without their defaults.
var envVariables = regexp.MustCompile(`\$\{[^}:]*`)
