package rule

import (
	"errors"
	"fmt"
	mathbits "math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/shardkey/shardkey/internal/registry"
	"github.com/shardkey/shardkey/rule/internal/expr"
	"github.com/shardkey/shardkey/rule/internal/sharding"
	"github.com/shardkey/shardkey/spi"
)

// ShardBits describes the shard bits of a table's keys (基因法, "gene method"): the lowest bits of each
// key. They carry the shard of another column of the row. The key then selects the same shard as
// the column does. A ShardBits never changes and may be used by multiple goroutines at once.
//
// The shard bits are the number of the table that the column's sharding algorithm would select out
// of 2^Bits tables. MOD, and INLINE with a remainder, give the value modulo 2^Bits. HASH_MOD gives
// the absolute hash modulo 2^Bits. If the table isn't sharded by the column, ShardBits uses the
// algorithm of the rule's other tables that are sharded by a column of that name. If there are
// none, it uses MOD for integers and HASH_MOD for strings.
//
// With 2^k shards, k ≤ Bits, the number of a row's shard is its shard bits modulo 2^k.
type ShardBits struct {
	// Column is the column that determines the shard bits, as the rule spells it.
	Column string
	// Bits is the number of shard bits, 1 to 16.
	Bits int

	table string
	of    *sharding.ShardBits
}

const maxGeneBits = 16

// Of returns the shard bits for a value of Column, from 0 to 2^Bits − 1. The value is an integer of
// any type, a string, or a bool, which counts as 0 or 1. The error is a [*PlaceError] for nil, for
// other types, and for values that the column's algorithm would place elsewhere, for example a
// negative number with INLINE.
func (g *ShardBits) Of(value any) (int64, error) {
	if b, ok := value.(bool); ok {
		value = 0
		if b {
			value = 1
		}
	}
	v, ok := expr.Of(value)
	if !ok {
		return 0, g.none(errors.New("expected an integer, a string or a bool"))
	}
	bits, err := g.of.Of(v)
	if err != nil {
		return 0, g.none(err)
	}
	return bits, nil
}

func (g *ShardBits) none(err error) error {
	return &PlaceError{Table: g.table, Column: g.Column, Reason: fmt.Sprintf("cannot compute the shard bits for %s: %v",
		g.Column, err), Err: err}
}

// String returns the formula of the shard bits, for example "user_id modulo 16".
func (g *ShardBits) String() string {
	if g.of == nil {
		return g.Column
	}
	return g.of.String()
}

// shardBits sets the ShardBits of each table, and returns an error if a strategy of the table doesn't match
// it. It also warns about strategies that leave tables empty, because shard bits can make two
// strategies depend on each other. The generators must have been made.
func (b *builder) shardBits() error {
	for i := range b.rule.tables {
		t := &b.rule.tables[i]
		at, _ := b.rule.generators.find(t.GeneratorName)
		m := &b.rule.generators.all[at]
		if m.bitsColumn != "" {
			if err := b.tableShardBits(t, b.specs[i], m); err != nil {
				return err
			}
		}
		b.unplaceable(b.specs[i], t)
		b.empty(b.specs[i], t)
		b.alone(b.specs[i], t, m)
	}
	return nil
}

// isShardBits reports whether the driver reads the property. Such properties aren't passed to the
// generator.
func (pp propSpec) isShardBits() bool {
	name := registry.PropKey(pp.name.text)
	return name == registry.PropKey("gene-column") || name == registry.PropKey("gene-bits")
}

// readShardBits reads gene-column and gene-bits, which specify the shard bits of g's keys.
func (m *componentSpec) readShardBits(g any) error {
	column, hasColumn := m.prop("gene-column")
	bits, hasBits := m.prop("gene-bits")
	if !hasColumn && !hasBits {
		return nil
	}
	most := maxGeneBits
	if slices.Contains([]string{"SNOWFLAKE", "SNOWFLAKE_RING", "LEAF_SNOWFLAKE"}, strings.ToUpper(m.typ.text)) {
		most = min(most, mathbits.Len64(uint64(m.sequences()))-1)
	}
	m.bitsColumn = strings.TrimSpace(column.value.Reveal())
	text := strings.TrimSpace(bits.value.Reveal())
	n, err := strconv.Atoi(text)
	wrong := func(name, value, want string) error { return &spi.PropError{Name: name, Value: value, Want: want} }
	switch {
	case m.bitsColumn == "":
		return wrong("gene-column", "", "the column whose shard the keys carry; gene-bits needs it")
	case most == 0:
		return wrong("gene-bits", text, "no value; the layout has no sequence bits for shard bits")
	case text == "":
		return wrong("gene-column", m.bitsColumn, fmt.Sprintf("gene-bits next to it, an integer in 1..%d; 2^gene-bits is the largest "+
			"number of shards", most))
	case err != nil || n < 1 || n > most:
		return wrong("gene-bits", text, fmt.Sprintf("an integer in 1..%d", most))
	}
	if _, ints := g.(spi.Int64KeyGenerator); !ints {
		return wrong("gene-column", m.bitsColumn, "no value; only a generator of int64 keys can carry the shard "+
			"of a column")
	}
	m.geneBits = n
	return nil
}

func (b *builder) tableShardBits(t *Table, own *tableSpec, m *componentSpec) error {
	w := m.name
	if p, ok := m.prop("gene-column"); ok {
		w = word{m.bitsColumn, p.position}
	}
	reason := wrongColumn(m.bitsColumn)
	if strings.EqualFold(m.bitsColumn, t.Column) {
		reason = fmt.Sprintf("expected the column whose shard the keys carry, found the key of table %q", t.Logical)
	}
	if reason != "" {
		return b.file.errorAt(w, fmt.Sprintf("gene-column %q of %s: %s", m.bitsColumn, m, reason))
	}
	t.ShardBits = &ShardBits{Column: m.bitsColumn, Bits: m.geneBits, table: t.Logical}
	if err := b.agree(t, own); err != nil || t.ShardBits.of != nil {
		return err
	}
	key := fmt.Sprint(strings.ToLower(t.ShardBits.Column), " ", t.ShardBits.Bits)
	way, known := b.ways[key]
	if !known {
		way = b.wayElsewhere(t.ShardBits)
		b.ways[key] = way
	}
	var err error
	t.ShardBits.of, err = sharding.NewShardBits(t.ShardBits.Column, t.ShardBits.Bits, way)
	return err
}

// wayElsewhere returns how the rule's other tables use a column with the name of g.Column. The
// shard bits then match all of these tables.
func (b *builder) wayElsewhere(g *ShardBits) (way sharding.ShardBitsWay) {
	var first *tableSpec
	for _, u := range b.usesOf(g.Column) {
		has, modulo := u.by.geneWay(g.Column)
		switch {
		case modulo == 0:
		case first == nil:
			first, way = u.table, has
		case has != way:
			b.file.warn(u.by.key, fmt.Sprintf("table %q is sharded by the %s of %s, and table %q by its %s; the shard bits of keys of "+
				"tables that aren't sharded by it use the former",
				first.name.text, way, g.Column, u.table.name.text, has))
			return way
		}
	}
	return way
}

// columnUse is a strategy of a table whose only column is a certain one.
type columnUse struct {
	table *tableSpec
	by    *shardingStrategy
}

// usesOf returns the strategies whose only column is this one.
func (b *builder) usesOf(column string) []columnUse {
	if b.uses == nil {
		b.uses = map[string][]columnUse{}
		for i := range b.spec.scopes {
			for j := range b.spec.scopes[i].tables {
				t := &b.spec.scopes[i].tables[j]
				for _, by := range []*shardingStrategy{t.database, t.table} {
					if by != nil && len(by.columns) == 1 {
						key := strings.ToLower(by.columns[0].text)
						b.uses[key] = append(b.uses[key], columnUse{t, by})
					}
				}
			}
		}
	}
	return b.uses[strings.ToLower(column)]
}

// agree computes the table's ShardBits from its strategies. It returns an error if a strategy by the
// key, or by the column of the shard bits, depends on more than the shard bits.
func (b *builder) agree(t *Table, spec *tableSpec) (err error) {
	var own []*sharding.Strategy
	for _, of := range t.understood(spec) {
		switch {
		case of.isBy(t.Column):
			if err := of.compiled.CheckGeneKey(t.ShardBits.Bits); err != nil {
				return b.disagrees(t, of, err)
			}
		case of.isBy(t.ShardBits.Column):
			own = append(own, of.compiled)
			if t.ShardBits.of, err = sharding.NewShardBits(t.ShardBits.Column, t.ShardBits.Bits, sharding.ShardBitsWay{}, own...); err != nil {
				return b.disagrees(t, of, err)
			}
		}
	}
	return nil
}

// understood returns the table's strategies, or none if its sharding isn't understood.
func (t *Table) understood(spec *tableSpec) (all []*shardingStrategy) {
	if t.Sharding == nil || t.Sharding.Err != nil {
		return nil
	}
	isNone := func(s *shardingStrategy) bool { return s == nil }
	return slices.DeleteFunc([]*shardingStrategy{spec.database, spec.table}, isNone)
}

func (b *builder) disagrees(t *Table, of *shardingStrategy, err error) error {
	return b.file.errorAt(of.algorithm.geneWord(), fmt.Sprintf("the %s of table %q doesn't match the %[4]d shard bits of "+
		"%[3]s in its keys: %[5]v",
		of.key.text, t.Logical, t.ShardBits.Column, t.ShardBits.Bits, err))
}

// geneWord returns the property that determines the number of shards.
func (a algorithm) geneWord() word {
	for _, prop := range []string{"sharding-count", "algorithm-expression"} {
		if w, ok := a.props[prop]; ok {
			return w
		}
	}
	return a.name
}
