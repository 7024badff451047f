package rule

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/shardkey/shardkey/internal/registry"
	"github.com/shardkey/shardkey/spi"
)

// Config is a rule built in Go. See [New].
type Config struct {
	// Tables are the logical tables. At least one of them must have a key.
	Tables []TableConfig
	// Default applies to tables that set no Column or no Generator. The zero value means that there
	// is no default.
	Default KeyConfig
	// Generators are the key generators by name. All tables that name the same generator share it.
	Generators map[string]GeneratorConfig
	// WorkerIDAssigners are the worker-ID assigners by name. The property worker-id-assigner of a
	// generator refers to one of them.
	WorkerIDAssigners map[string]WorkerIDAssignerConfig
}

// TableConfig is one logical table.
type TableConfig struct {
	// Name is the logical table's name.
	Name string
	// ActualDataNodes lists the actual tables as in YAML, for example
	// "ds_${0..1}.t_order_${0..15}". When empty, the only actual table is Name.
	ActualDataNodes string
	// KeyConfig is the key column and its generator. The zero value means Config.Default.
	KeyConfig
	// DatabaseStrategy selects the data source of a row, and TableStrategy the actual table in it.
	// The zero value means that the rule doesn't specify it.
	DatabaseStrategy, TableStrategy StrategyConfig
}

// StrategyConfig is a standard or complex sharding strategy. If shardkey can't evaluate it,
// [Sharding.Err] has the reason.
type StrategyConfig struct {
	// Columns are the sharding columns: one, or several for COMPLEX_INLINE.
	Columns []string
	// JavaTypes are the Java classes of the columns, for example "Integer": one for all columns, or
	// one for each. When empty, each value has its own class, and integers are Longs.
	JavaTypes []string
	// Type is the type of the algorithm, for example "HASH_MOD". Props are its properties, which
	// can be strings, booleans and integers.
	Type  string
	Props Props
}

// KeyConfig is a key column and the settings for generating its keys.
type KeyConfig struct {
	// Column is the key column's name.
	Column string
	// Generator is a name in Config.Generators. When empty, the table uses the default's generator.
	// If there is no default either, it uses a SNOWFLAKE without properties.
	Generator string
	// ExplicitKeys specifies how to handle a NULL, 0, DEFAULT or empty string as the key of a row.
	// "fill" generates a key, as AUTO_INCREMENT does. "keep" leaves the value, as ShardingSphere
	// does. When empty, it is the default's setting if Column is the default's too, and "fill"
	// otherwise.
	ExplicitKeys string
	// Consecutive specifies that the integer keys of one statement must be consecutive ("batchKeys:
	// consecutive"). A statement with other keys is refused before it is sent, unless its caller
	// asked for the key of each row. When false, it is the default's setting if Column is the
	// default's too.
	Consecutive bool
	// Unlisted specifies how to handle an INSERT into a table that isn't in the rule but has a name
	// like this table's, for example a shard added later. "refuse" returns an error, "warn" logs a
	// warning and sends the statement without a key, and "pass" sends it silently. When empty, it
	// is the default's setting if Column is the default's too. Otherwise it is "refuse" for a table with
	// several actual tables or a pattern, and "warn" for one with one.
	Unlisted string
	// ShardGuard specifies how to handle a row that doesn't belong in the actual table that its
	// INSERT names. "refuse" returns an error, "warn" sends the row and logs one warning for each
	// actual table, and "off" doesn't check. When empty, it is the default's setting if Column is
	// the default's too, and "refuse" otherwise.
	ShardGuard string
}

// GeneratorConfig is one key generator. Set Type and Props, or Generator.
type GeneratorConfig struct {
	// Type is a registered type, for example "SNOWFLAKE". Types are case-insensitive.
	Type string
	// Props are the generator's properties.
	Props Props
	// Generator is an existing generator. Type must then be empty, and Props can only have
	// gene-column and gene-bits. All connectors of the rule share the generator. The rule doesn't
	// close it.
	Generator spi.KeyGenerator
}

// WorkerIDAssignerConfig is one worker-ID assigner.
type WorkerIDAssignerConfig struct {
	// Type is a registered type, for example "SQL". Types are case-insensitive.
	Type string
	// Props are the assigner's properties.
	Props Props
}

// Props are properties by name. A value is a string, an [spi.Secret], a slice of either, a boolean,
// an integer, a time.Duration or a time.Time. ${NAME} is not expanded.
//
// Passwords and data source names must be an spi.Secret: [New] refuses strings for them. Printing
// Props prints only the names, except with the verb %p, for which package fmt calls no method and
// prints strings, but no Secret.
type Props map[string]any

// Format writes the names, sorted, for every verb.
func (ps Props) Format(f fmt.State, _ rune) { fmt.Fprint(f, slices.Sorted(maps.Keys(ps))) }

// MarshalText returns the names, so that encoders such as encoding/json write no values.
func (ps Props) MarshalText() ([]byte, error) { return fmt.Append(nil, ps), nil }

// New builds a rule from cfg and checks it as [Parse] does. The error is an [*Error] whose Path is
// the place in cfg.
func New(cfg Config) (*Rule, error) {
	var s spec
	var sc scope
	for i, t := range cfg.Tables {
		at := position{path: fmt.Sprintf("Tables[%d] %q", i, t.Name)}
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
	if sc.def, err = cfg.Default.strategy(position{path: "Default"}); err != nil {
		return nil, err
	}
	s.scopes = []scope{sc}
	for _, name := range slices.Sorted(maps.Keys(cfg.Generators)) {
		if err := s.addComponent(generatorKind, name, "Generators", cfg.Generators[name]); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(cfg.WorkerIDAssigners)) {
		a := cfg.WorkerIDAssigners[name]
		g := GeneratorConfig{Type: a.Type, Props: a.Props}
		if err := s.addComponent(assignerKind, name, "WorkerIDAssigners", g); err != nil {
			return nil, err
		}
	}
	return build(newFile("rule", source{}), s)
}

func (kc KeyConfig) strategy(at position) (*keyStrategySpec, error) {
	if kc == (KeyConfig{}) {
		return nil, nil
	}
	st := &keyStrategySpec{position: at}
	st.column, st.generator = word{kc.Column, at.named("Column")}, word{kc.Generator, at.named("Generator")}
	batch := ""
	if kc.Consecutive {
		batch = "consecutive"
	}
	values := settings{kc.ExplicitKeys, batch, kc.Unlisted, kc.ShardGuard}
	var err error
	st.settings, err = newSettings("rule", func(name string) word {
		return word{values[slices.Index(settingNames, name)], at.named(strings.ToUpper(name[:1]) + name[1:])}
	})
	return st, err
}

func (sc StrategyConfig) strategy(at position) (*shardingStrategy, error) {
	if sc.Type == "" && len(sc.Columns) == 0 && len(sc.Props) == 0 && len(sc.JavaTypes) == 0 {
		return nil, nil
	}
	name := at.path[strings.LastIndexByte(at.path, '.')+1:]
	s := &shardingStrategy{key: word{name, at}, at: word{sc.Type, at.named("Type")}}
	s.algorithm = algorithm{name: s.at, typ: strings.ToUpper(sc.Type), props: map[string]word{}}
	for _, column := range sc.Columns {
		s.columns = append(s.columns, word{column, at.named("Columns")})
	}
	var err error
	if len(sc.JavaTypes) > 0 {
		err = s.javaClass("rule", word{strings.Join(sc.JavaTypes, ","), at.named("JavaTypes")})
	}
	for _, prop := range slices.Sorted(maps.Keys(sc.Props)) {
		w := word{prop, at.named(fmt.Sprintf("Props[%q]", prop))}
		var p propSpec
		if !p.set(sc.Props[prop]) || p.list != nil {
			return nil, errorAt("rule", w, fmt.Sprintf("expected a string, a boolean or an integer as property of an algorithm, found a "+
				"%T", sc.Props[prop]))
		}
		s.algorithm.props[registry.PropKey(prop)] = word{p.value.Reveal(), w.position}
	}
	return s, err
}

func (sp *spec) addComponent(kind registry.Kind, name, list string, cfg GeneratorConfig) error {
	at := position{path: fmt.Sprintf("%s[%q]", list, name)}
	m := componentSpec{kind: kind, name: word{name, at}, typ: word{cfg.Type, at.named("Type")}, ready: cfg.Generator}
	for _, prop := range slices.Sorted(maps.Keys(cfg.Props)) {
		p := propSpec{name: word{prop, at.named(fmt.Sprintf("Props[%q]", prop))}}
		p.position = p.name.position
		if !p.set(cfg.Props[prop]) {
			reason := fmt.Sprintf("expected a string, a spi.Secret, a slice of either, a boolean, an integer, a time.Duration "+
				"or a time.Time, found a %T", cfg.Props[prop])
			return errorAt("rule", p.name, reason)
		}
		m.props = append(m.props, p)
	}
	if m.ready != nil && (cfg.Type != "" || slices.ContainsFunc(m.props, func(p propSpec) bool { return !p.isShardBits() })) {
		return errorAt("rule", m.name, "Generator is set, so Type must be empty, and Props can only have gene-column and "+
			"gene-bits")
	}
	sp.components = append(sp.components, m)
	return nil
}

// set stores v in the property. It returns false if a property can't have such a value.
func (pp *propSpec) set(v any) bool {
	switch v := v.(type) {
	case spi.Secret:
		pp.value = v
		return true
	case []string:
		pp.list = make([]spi.Secret, len(v))
		for i, item := range v {
			pp.list[i] = spi.NewSecret(item)
		}
		pp.plain = true
		return true
	case []spi.Secret:
		pp.list = slices.Concat([]spi.Secret{}, v)
		return true
	}
	text, ok := propText(v)
	pp.value, pp.plain = spi.NewSecret(text), text != ""
	return ok
}

// propText returns the string that YAML would have for v. It returns false if v has another type.
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
