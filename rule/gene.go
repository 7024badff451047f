package rule

import (
	"errors"
	"fmt"
	mathbits "math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/shardkey/shardkey/rule/internal/expr"
	sharding "github.com/shardkey/shardkey/rule/internal/place"
	"github.com/shardkey/shardkey/spi"
)

// Gene is what the keys of a table carry of another column of their rows, in their
// lowest bits, so that a key tells the row's shard as that column does. It never changes
// and may be used by many goroutines at once.
//
// It is the number that the column's sharding algorithm makes of a value when there
// are 2^Bits tables: with MOD, and with INLINE by a remainder, the value modulo 2^Bits,
// with HASH_MOD the absolute hash modulo 2^Bits. Where the table is not sharded by the
// column, it is as the rule's other tables take a column of that name; and where none does,
// MOD's of integers and HASH_MOD's of texts. Of 2^k shards, k ≤ Bits, the row's is the gene
// modulo 2^k.
type Gene struct {
	// Column is the column that the gene is of, as the rule spells it.
	Column string
	// Bits is the number of lowest bits, 1 to 16.
	Bits int

	table string
	of    *sharding.Gene
}

// maxGeneBits bounds the bits of a gene.
const maxGeneBits = 16

// Of returns the gene of a value of Column, 0 to 2^Bits − 1: of an integer of any type,
// of a text, of a bool as 0 or 1. Nil, other types, and a value with which the
// column's algorithm and the gene would not agree, as a negative number with INLINE,
// are a [*PlaceError].
func (g *Gene) Of(value any) (int64, error) {
	if b, ok := value.(bool); ok {
		value = 0
		if b {
			value = 1
		}
	}
	v, ok := expr.Of(value)
	if !ok {
		return 0, g.none(errors.New("it is neither an integer nor a text"))
	}
	gene, err := g.of.Of(v)
	if err != nil {
		return 0, g.none(err)
	}
	return gene, nil
}

func (g *Gene) none(err error) error {
	return &PlaceError{Table: g.table, Column: g.Column, Reason: fmt.Sprintf("no key can carry the shard of its %s: %v",
		g.Column, err), Err: err}
}

// String says what the gene is, as "user_id modulo 16".
func (g *Gene) String() string {
	if g.of == nil {
		return g.Column
	}
	return g.of.String()
}

// genes finds the genes of the tables' keys, and refuses strategies that do not agree
// with them. It warns of strategies that leave tables empty, which genes can make
// dependent. The generators have been made.
func (b *builder) genes() error {
	for i := range b.rule.tables {
		t := &b.rule.tables[i]
		m := &b.rule.generators[b.byName[strings.ToLower(t.GeneratorName)]]
		if m.geneColumn != "" {
			if err := b.gene(t, b.specs[i], m); err != nil {
				return err
			}
		}
		b.empty(b.specs[i], t)
	}
	return nil
}

// isGene reports whether a property of a generator is one of those that the driver reads: the
// generator knows nothing of them.
func (p propSpec) isGene() bool {
	name := propKey(p.name.text)
	return name == propKey("gene-column") || name == propKey("gene-bits")
}

// readGene reads what the keys of a generator are to carry.
func (m *makeSpec) readGene(g spi.KeyGenerator) error {
	column, hasColumn := m.prop("gene-column")
	bits, hasBits := m.prop("gene-bits")
	if !hasColumn && !hasBits {
		return nil
	}
	most := maxGeneBits
	if m.isSnowflake() {
		most = min(most, mathbits.Len64(uint64(m.sequences()))-1)
	}
	m.geneColumn = strings.TrimSpace(column.value.Reveal())
	text := strings.TrimSpace(bits.value.Reveal())
	n, err := strconv.Atoi(text)
	wrong := func(name, value, want string) error { return &spi.PropError{Name: name, Value: value, Want: want} }
	switch {
	case m.geneColumn == "":
		return wrong("gene-column", "", "the column whose shard the keys carry, next to gene-bits")
	case most == 0:
		return wrong("gene-bits", text, "none: the layout has no sequence that could carry a gene")
	case text == "":
		return wrong("gene-column", m.geneColumn, fmt.Sprintf("gene-bits next to it, 1 to %d: 2^gene-bits is the greatest "+
			"number of shards", most))
	case err != nil || n < 1 || n > most:
		return wrong("gene-bits", text, fmt.Sprintf("an integer in 1..%d", most))
	}
	if _, ints := g.(spi.Int64KeyGenerator); !ints {
		return wrong("gene-column", m.geneColumn, "a generator of int64 keys: the keys of this one cannot carry the shard "+
			"of a column")
	}
	m.geneBits = n
	return nil
}

// isSnowflake reports whether the keys have a layout with a sequence.
func (m *makeSpec) isSnowflake() bool {
	return slices.Contains([]string{"SNOWFLAKE", "SNOWFLAKE_RING", "LEAF_SNOWFLAKE"}, strings.ToUpper(m.typ.text))
}

func (b *builder) gene(t *Table, own *tableSpec, m *makeSpec) error {
	w := m.name
	if p, ok := m.prop("gene-column"); ok {
		w = word{m.geneColumn, p.place}
	}
	reason := wrongIdentifier(m.geneColumn)
	switch {
	case reason != "":
	case strings.Contains(m.geneColumn, "."):
		reason = "write the column without its table"
	case strings.EqualFold(m.geneColumn, t.Column):
		reason = fmt.Sprintf("it is the key of table %q itself: name the column whose shard its keys are to carry", t.Logical)
	}
	if reason != "" {
		return b.errorAt(w, fmt.Sprintf("gene-column %q of key generator %q: %s", m.geneColumn, m.name.text, reason))
	}
	t.Gene = &Gene{Column: m.geneColumn, Bits: m.geneBits, table: t.Logical}
	if err := b.agree(t, own); err != nil || t.Gene.of != nil {
		return err
	}
	key := fmt.Sprint(strings.ToLower(t.Gene.Column), " ", t.Gene.Bits)
	way, known := b.ways[key]
	if !known {
		way = b.wayElsewhere(t.Gene)
		b.ways[key] = way
	}
	var err error
	t.Gene.of, err = sharding.NewGene(t.Gene.Column, t.Gene.Bits, way)
	return err
}

// wayElsewhere returns how the rule's tables take a column of the name of the gene's, so that
// a key tells the shard of the same value in each of them.
func (b *builder) wayElsewhere(g *Gene) (way sharding.GeneWay) {
	var first *tableSpec
	for i := range b.scopes {
		for j := range b.scopes[i].tables {
			t := &b.scopes[i].tables[j]
			for _, of := range []*strategyOf{t.database, t.table} {
				has, ok := of.wayOf(g)
				switch {
				case !ok:
				case first == nil:
					first, way = t, has
				case has != way:
					b.warn(of.key, fmt.Sprintf("table %q is sharded by the %s of %s, and table %q by its %s: a gene, of keys of "+
						"tables that are not sharded by it, is that of the former",
						first.name.text, way, g.Column, t.name.text, has))
					return way
				}
			}
		}
	}
	return way
}

// wayOf returns how a strategy takes the gene's column, where that is its only one.
func (s *strategyOf) wayOf(g *Gene) (way sharding.GeneWay, ok bool) {
	if !s.isBy(g.Column) {
		return way, false
	}
	a, err := s.compile()
	if err != nil {
		return way, false
	}
	way, _, err = a.Over(nil, sharding.Naming{}, s.class).GeneWay(g.Bits)
	return way, err == nil
}

// agree works out what the gene is by the table's strategies, and refuses those of the
// key or of the gene's column that it does not tell.
func (b *builder) agree(t *Table, spec *tableSpec) (err error) {
	var own []*sharding.Strategy
	for _, of := range []*strategyOf{spec.database, spec.table} {
		s := t.Sharding.strategyFor(spec, of)
		if s == nil {
			continue
		}
		switch {
		case of.isBy(t.Column):
			if err := s.CheckGeneKey(t.Gene.Bits); err != nil {
				return b.disagrees(t, of, err)
			}
		case of.isBy(t.Gene.Column):
			own = append(own, s)
			if t.Gene.of, err = sharding.NewGene(t.Gene.Column, t.Gene.Bits, sharding.GeneWay{}, own...); err != nil {
				return b.disagrees(t, of, err)
			}
		}
	}
	return nil
}

// strategyFor returns a strategy of the table as it is understood, nil for none.
func (s *Sharding) strategyFor(spec *tableSpec, of *strategyOf) *sharding.Strategy {
	switch {
	case s == nil || s.Err != nil || of == nil:
		return nil
	case of == spec.database:
		return s.database.Strategy
	}
	for i := range s.tables {
		if in := s.tables[i].strategy; in != nil {
			return in.Strategy
		}
	}
	return nil
}

func (b *builder) disagrees(t *Table, of *strategyOf, err error) error {
	e := b.errorAt(of.algorithm.geneWord(), fmt.Sprintf("the %s of table %q does not agree with the gene of %s, %d bits, "+
		"that its keys carry: %v",
		of.key.text, t.Logical, t.Gene.Column, t.Gene.Bits, err))
	e.Err = err
	return e
}

// geneWord is the place of what decides on the shards.
func (a algorithm) geneWord() word {
	for _, prop := range []string{"sharding-count", "algorithm-expression"} {
		if w, ok := a.props[prop]; ok {
			return w
		}
	}
	return a.name
}
