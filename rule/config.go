package rule

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// Config is a rule built in Go. See [New].
type Config struct {
	// Tables are the logical tables, at least one of which has a key.
	Tables []TableConfig
	// Default holds for tables that name no column or no generator of their
	// own. Its zero value is no default.
	Default KeyConfig
	// Generators are the generators by name. A name is one generator, shared
	// by all tables that name it.
	Generators map[string]GeneratorConfig
	// WorkerIDAssigners are what the property worker-id-assigner of a
	// generator names.
	WorkerIDAssigners map[string]WorkerIDAssignerConfig
}

// TableConfig is one logical table.
type TableConfig struct {
	// Name is the logical table's name.
	Name string
	// ActualDataNodes are its actual tables, as in YAML:
	// "ds_${0..1}.t_order_${0..15}". When empty, Name is the only one.
	ActualDataNodes string
	// KeyConfig is the key column; when zero, the default's.
	KeyConfig
	// DatabaseStrategy says which data source a row belongs to, and TableStrategy
	// which actual table in it; a zero one says nothing.
	DatabaseStrategy, TableStrategy StrategyConfig
}

// StrategyConfig is a standard or complex strategy of sharding. What is not
// understood of it is told by [Sharding.Err].
type StrategyConfig struct {
	// Columns are the sharding columns: one, or several for COMPLEX_INLINE.
	Columns []string
	// JavaTypes are the classes of the columns in Java ("Integer"); when empty,
	// those of the values, where an integer is a Long.
	JavaTypes []string
	// Type is the algorithm's, as "HASH_MOD", and Props its properties, as in
	// [GeneratorConfig].
	Type  string
	Props Props
}

// KeyConfig is a key column and what fills it.
type KeyConfig struct {
	// Column is the key column's name.
	Column string
	// Generator is a name in Config.Generators. When empty, the default's
	// generator is used; without one that is a SNOWFLAKE without properties.
	Generator string
	// ExplicitKeys is how a NULL, 0, DEFAULT or empty string is handled that a
	// statement gives as key: "fill" generates a key, as AUTO_INCREMENT does; "keep"
	// leaves it, as ShardingSphere does. When empty, it is the default's where Column
	// is the default's too, and "fill" otherwise.
	ExplicitKeys string
	// Consecutive says that the integer keys of one statement must be
	// consecutive: a statement whose keys are not is refused before it is sent
	// ("batchKeys: consecutive"), unless its caller asked for each row's key.
	// Its zero value is any keys, or what the default says when Column is the
	// default's too.
	Consecutive bool
	// Unlisted is how an INSERT is handled into a table that the rule does not list,
	// but whose name looks like one of this table's, for example one that was added
	// later: "refuse", "warn" (logs a warning and sends it without a key) or "pass".
	// When empty, it is the default's where Column is the default's too, and otherwise
	// the connection's.
	Unlisted string
	// ShardGuard is how a row is handled that does not belong in the actual table that
	// its INSERT names: "refuse", "warn" (logs a warning, once for each actual table,
	// and sends it) or "off". When empty, it is the default's where Column is the
	// default's too, and "refuse" otherwise.
	ShardGuard string
}

// GeneratorConfig is one generator.
type GeneratorConfig struct {
	// Type is a registered type, as "SNOWFLAKE". Types are case-insensitive.
	Type string
	// Props are its properties.
	Props Props
	// Generator is a generator that is there already; Type and Props are then
	// empty. It is shared by all connectors of the rule, and closed by whoever
	// made it, never by the rule.
	Generator spi.KeyGenerator
}

// WorkerIDAssignerConfig is one worker-ID assigner.
type WorkerIDAssignerConfig struct {
	// Type is a registered type, as "SQL". Types are case-insensitive.
	Type string
	// Props are its properties.
	Props Props
}

// Props are properties by name: strings, [spi.Secret], slices of either, booleans,
// integers, time.Duration and time.Time. ${NAME} is not expanded in them. Passwords, and
// data source names, which may contain one, are an spi.Secret: [New] refuses them as
// strings, which package fmt prints. Printing Props shows their names.
type Props map[string]any

// String returns the names, sorted.
func (p Props) String() string { return fmt.Sprint(slices.Sorted(maps.Keys(p))) }

// Format writes what String returns, whatever the verb.
func (p Props) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, p.String()) }

// MarshalText is String, for JSON and others.
func (p Props) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// New builds a rule in Go and checks it as [Parse] does: the error is an
// [*Error] whose Path says where in cfg.
func New(cfg Config) (*Rule, error) {
	s := spec{file: "rule"}
	var sc scope
	for i, t := range cfg.Tables {
		at := place{path: fmt.Sprintf("Tables[%d] %q", i, t.Name)}
		table := tableSpec{
			name:  word{t.Name, at},
			nodes: word{t.ActualDataNodes, at.named("ActualDataNodes")},
		}
		var errs [3]error
		table.strategy, errs[0] = t.strategy(at)
		table.database, errs[1] = t.DatabaseStrategy.strategy(at.named("DatabaseStrategy"))
		table.table, errs[2] = t.TableStrategy.strategy(at.named("TableStrategy"))
		if err := cmp.Or(errs[:]...); err != nil {
			return nil, err
		}
		sc.tables = append(sc.tables, table)
	}
	var err error
	if sc.def, err = cfg.Default.strategy(place{path: "Default"}); err != nil {
		return nil, err
	}
	s.scopes = []scope{sc}
	for _, name := range slices.Sorted(maps.Keys(cfg.Generators)) {
		g := cfg.Generators[name]
		m, err := newMake(name, "Generators", g.Type, g.Props, g.Generator)
		if err != nil {
			return nil, err
		}
		s.generators = append(s.generators, m)
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.WorkerIDAssigners)) {
		a := cfg.WorkerIDAssigners[name]
		m, err := newMake(name, "WorkerIDAssigners", a.Type, a.Props, nil)
		if err != nil {
			return nil, err
		}
		s.assigners = append(s.assigners, m)
	}
	return build(s)
}

func (k KeyConfig) strategy(at place) (*strategySpec, error) {
	if k == (KeyConfig{}) {
		return nil, nil
	}
	st := &strategySpec{place: at}
	st.column, st.generator = word{k.Column, at.named("Column")}, word{k.Generator, at.named("Generator")}
	batch := ""
	if k.Consecutive {
		batch = "consecutive"
	}
	values := settings{k.ExplicitKeys, batch, k.Unlisted, k.ShardGuard}
	var err error
	st.settings, err = newSettings("rule", func(name string) word {
		return word{values[slices.Index(settingNames, name)], at.named(strings.ToUpper(name[:1]) + name[1:])}
	})
	return st, err
}

func (c StrategyConfig) strategy(at place) (*strategyOf, error) {
	if c.Type == "" && len(c.Columns) == 0 && len(c.Props) == 0 && len(c.JavaTypes) == 0 {
		return nil, nil
	}
	name := at.path[strings.LastIndexByte(at.path, '.')+1:]
	s := &strategyOf{key: word{name, at}, at: word{c.Type, at.named("Type")}}
	s.algorithm = algorithm{name: s.at, typ: strings.ToUpper(c.Type), props: map[string]word{}}
	for _, column := range c.Columns {
		s.columns = append(s.columns, word{column, at.named("Columns")})
	}
	var err error
	if len(c.JavaTypes) > 0 {
		err = s.javaClass("rule", word{strings.Join(c.JavaTypes, ","), at.named("JavaTypes")})
	}
	for _, prop := range slices.Sorted(maps.Keys(c.Props)) {
		w := word{prop, at.named(fmt.Sprintf("Props[%q]", prop))}
		var p propSpec
		if !p.set(c.Props[prop]) || p.list != nil {
			return nil, errorAt("rule", w, fmt.Sprintf("a property of an algorithm is a text, a boolean or an integer, not a "+
				"%T", c.Props[prop]))
		}
		s.algorithm.props[propKey(prop)] = word{p.value.Reveal(), w.place}
	}
	return s, err
}

func newMake(name, list, typ string, props map[string]any, ready spi.KeyGenerator) (makeSpec, error) {
	at := place{path: fmt.Sprintf("%s[%q]", list, name)}
	m := makeSpec{name: word{name, at}, typ: word{typ, at.named("Type")}, ready: ready}
	for _, prop := range slices.Sorted(maps.Keys(props)) {
		p := propSpec{name: word{prop, at.named(fmt.Sprintf("Props[%q]", prop))}}
		p.place = p.name.place
		if !p.set(props[prop]) {
			reason := fmt.Sprintf("expected a string, a spi.Secret, a slice of either, a boolean, an integer, a time.Duration "+
				"or a time.Time, found a %T", props[prop])
			return m, errorAt("rule", p.name, reason)
		}
		m.props = append(m.props, p)
	}
	if ready != nil && (typ != "" || slices.ContainsFunc(m.props, func(p propSpec) bool { return !p.isGene() })) {
		return m, errorAt("rule", m.name, "Generator is given, so Type must be empty, and Props can have gene-column and "+
			"gene-bits only")
	}
	return m, nil
}

// set takes a Go value, and reports whether a property can have it.
func (p *propSpec) set(v any) bool {
	switch v := v.(type) {
	case spi.Secret:
		p.value = v
		return true
	case []string:
		p.list = make([]spi.Secret, len(v))
		for i, item := range v {
			p.list[i] = spi.NewSecret(item)
		}
		p.plain = true
		return true
	case []spi.Secret:
		p.list = slices.Concat([]spi.Secret{}, v)
		return true
	}
	text, ok := propText(v)
	p.value, p.plain = spi.NewSecret(text), text != ""
	return ok
}

// propText turns a Go value into the text that YAML would have for it.
func propText(v any) (string, bool) {
	switch v := v.(type) {
	case time.Duration:
		return v.String(), true
	case time.Time:
		return v.Format(time.RFC3339Nano), true
	}
	rv := reflect.ValueOf(v)
	if rv.Kind() == reflect.Bool || rv.Kind() == reflect.String || rv.CanInt() || rv.CanUint() {
		return fmt.Sprint(v), true
	}
	return "", false
}
