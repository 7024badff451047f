package rule

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/shardkey/shardkey/rule/internal/expr"
	"github.com/shardkey/shardkey/rule/internal/sharding"
)

// sampleKeys are keys of the generators whose keys have one Java class.
var sampleKeys = map[string]expr.Value{
	"UUID": expr.OfString("0123456789abcdef0123456789abcdef"), "NANOID": expr.OfString("V1StGXR8_Z5jdHi6B-myT"),
	"SNOWFLAKE": expr.OfLong(1 << 60), "LEAF_SNOWFLAKE": expr.OfLong(1 << 60), "SNOWFLAKE_RING": expr.OfLong(1 << 60),
	"LEAF_SEGMENT": expr.OfLong(1), "TICKET": expr.OfLong(1), "REDIS": expr.OfLong(1),
}

// unplaceable warns about a strategy that can't be computed for the keys of the table's generator, so
// that every INSERT without an explicit key is refused.
func (b *builder) unplaceable(spec *tableSpec, t *Table) {
	key, known := sampleKeys[t.GeneratorType]
	for _, of := range t.understood(spec) {
		if !known || !of.isBy(t.Column) {
			continue
		}
		_, err := of.compiled.Place(key)
		if e, ok := errors.AsType[*sharding.PlaceError](err); ok && e.Unknown {
			b.file.warn(of.algorithm.geneWord(), fmt.Sprintf("the %s of table %q can't place a key of %s, so INSERTs without "+
				"an explicit key are refused: %s; use an algorithm for its keys, for example HASH_MOD, or another generator",
				of.key.text, t.Logical, t.GeneratorType, e.Reason))
		}
	}
}

// empty warns about actual tables that no row reaches. The reason is that the two strategies of the
// table depend on each other, or that there are more tables than remainders. empty only checks
// strategies that use the remainder of one column or of its hash.
func (b *builder) empty(spec *tableSpec, t *Table) {
	if b.missing(spec, t) {
		return
	}
	s := t.Sharding
	var all []remainder
	for _, of := range t.understood(spec) {
		way, count := of.compiled.ShardBitsWay()
		if count == 0 {
			return
		}
		all = append(all, remainder{of: of, column: s.index(of), way: way, count: count})
	}
	if len(all) == 0 {
		return
	}
	first, last := all[0], all[len(all)-1]
	same := first.column == last.column
	if len(all) > 1 && same && first.way != last.way {
		return // the number and its hash differ for large numbers only
	}
	byBits := len(all) > 1 && t.ShardBits != nil && t.isByKey(first.of) && t.isByKey(last.of)
	together := len(all) == 1 || same || byBits
	reached, absent := map[Place]bool{}, ""
	values := make([]expr.Value, len(s.Columns))
	for i := int64(0); ; i++ {
		j := i
		if !together {
			j = i / first.count
		}
		switch {
		case i > 0 && i%first.count == 0 && j%last.count == 0:
			// All pairs of remainders were tried.
			b.warnOfEmpty(t, all, reached)
			if absent != "" {
				b.file.warn(spec.nodesOrName(), fmt.Sprintf("rows of table %q can belong to %s, which actualDataNodes doesn't list; they are refused",
					t.Logical, absent))
			}
			return
		case i == maxRemainders:
			return
		}
		values[last.column] = last.value(j)
		values[first.column] = first.value(i)
		at, err := s.at(values)
		if err != nil {
			continue
		}
		if place, err := s.placeAt(at); err == nil {
			reached[place] = true
		} else if absent == "" {
			absent = Place{DataSource: s.sources[max(at[0], 0)], Table: s.names[max(at[1], 0)]}.String()
		}
	}
}

// missing warns about tables and data sources that the table's strategies select, but that
// actualDataNodes doesn't list. It reports whether there are any.
func (b *builder) missing(spec *tableSpec, t *Table) (found bool) {
	for _, of := range t.understood(spec) {
		name, count := of.compiled.Missing()
		if name == "" {
			continue
		}
		found = true
		what, why := "table", fmt.Sprintf("it depends on %s modulo %d", of.columns[0].text, count)
		if strings.Contains(name, "-") {
			why = "the remainder of a negative number is negative, so write Math.abs(x) % n or use HASH_MOD"
		}
		if of == spec.database {
			what = "data source"
		}
		b.file.warn(of.algorithm.geneWord(), fmt.Sprintf("the %s of table %q selects the %s %q, which actualDataNodes doesn't list, "+
			"so its rows are refused; %s",
			of.key.text, t.Logical, what, expr.Clip(name), why))
	}
	return found
}

// maxRemainders bounds the rows that empty tries.
const maxRemainders = 1 << 14

// remainder is a strategy that depends on the remainder of its only column.
type remainder struct {
	of     *shardingStrategy
	column int // index in Sharding.Columns
	way    sharding.ShardBitsWay
	count  int64 // the strategy depends on the remainder modulo count
}

// isByKey reports whether the only column of a strategy is the key, or the column whose shard bits
// the key has.
func (t *Table) isByKey(of *shardingStrategy) bool {
	return of.isBy(t.Column) || of.isBy(t.ShardBits.Column)
}

// value returns a value of the column with remainder n. For a hash it is a character, whose hash is
// its code, unless the column has another class.
func (re *remainder) value(n int64) expr.Value {
	if re.way.Hash && re.of.class != expr.Integer && re.of.class != expr.Long {
		return expr.OfString(string(rune(n)))
	}
	return expr.OfLong(n)
}

func (b *builder) warnOfEmpty(t *Table, all []remainder, reached map[Place]bool) {
	tables, missing, one := 0, 0, Place{}
	for place := range t.Sharding.places() {
		tables++
		if reached[place] {
			continue
		}
		if missing++; missing == 1 || place.String() < one.String() {
			one = place
		}
	}
	if missing == 0 {
		return
	}
	why := fmt.Sprintf("its %s only selects the others", all[0].of.key.text)
	if len(all) > 1 {
		column := all[1].of.columns[0].text
		why = fmt.Sprintf("its %s by %s and its %s by %s depend on each other; "+
			"divide by the number of the other's shards in one of them, for example ${%s.intdiv(2) %% 4}",
			all[0].of.key.text, all[0].of.columns[0].text, all[1].of.key.text, column, column)
	}
	b.file.warn(all[len(all)-1].of.algorithm.geneWord(),
		fmt.Sprintf("%d of the %d actual tables of table %q get no rows, for example %s: %s", missing, tables, t.Logical, one,
			why))
}

// alone warns about a strategy by the table's own key that selects few of its targets for keys that
// are generated alone in their tick, although other sequences would reach more.
func (b *builder) alone(spec *tableSpec, t *Table, m *componentSpec) {
	last, limited := m.aloneSequence()
	s := t.Sharding
	if !limited || t.ShardBits != nil || s == nil || s.Err != nil {
		return
	}
	for _, of := range []struct {
		*shardingStrategy
		way  *strategy
		all  int
		what string
	}{{spec.database, s.database, len(s.sources), "data sources"}, {spec.table, s.table, len(s.names), "tables"}} {
		if !of.isBy(t.Column) || of.all > maxRemainders {
			continue
		}
		few := m.reached(of.way, of.all, last)
		best := of.all - 1
		for few < of.all && best < m.sequences()-1 && m.reached(of.way, of.all, best) < of.all {
			best = 2*best + 1
		}
		if best = min(best, m.sequences()-1); m.reached(of.way, of.all, best) > few {
			b.file.warn(of.algorithm.geneWord(), fmt.Sprintf("keys of table %q that are generated alone in their millisecond reach %d of %d %s; %s: %d",
				t.Logical, few, of.all, of.what, m.vibration(), best))
		}
	}
}

// reached returns how many of all targets a strategy selects for keys with the sequences 0 to last,
// at any time.
func (m *componentSpec) reached(s *strategy, all, last int) int {
	const samples = 16 // for each target: enough to find all
	rnd, found, sequences := rand.New(rand.NewPCG(1, 2)), map[int]bool{}, int64(m.sequences())
	for sequence := 0; sequence <= last && len(found) < all; sequence++ {
		for range samples*all/(last+1) + 1 {
			key := rnd.Int64N(math.MaxInt64/sequences)*sequences + int64(sequence)
			if at, err := s.Place(expr.OfLong(key)); err == nil {
				found[at] = true
			}
		}
	}
	return len(found)
}

// aloneSequence returns the highest sequence of keys that are generated alone in their tick. limited
// is false if the generator has no such limit.
func (m *componentSpec) aloneSequence() (last int, limited bool) {
	switch strings.ToUpper(m.typ.text) {
	case "SNOWFLAKE", "SNOWFLAKE_RING":
		p, _ := m.prop("max-vibration-offset")
		if own, err := strconv.Atoi(strings.TrimSpace(p.value.Reveal())); err == nil {
			return own, true
		}
		return min(1, m.sequences()-1), true
	case "LEAF_SNOWFLAKE":
		return 99, true
	case "REDIS":
		return 0, true
	}
	return 0, false
}

// vibration returns how to set the highest sequence of keys that are alone in their tick.
func (m *componentSpec) vibration() string {
	if strings.HasPrefix(strings.ToUpper(m.typ.text), "SNOWFLAKE") {
		return "set max-vibration-offset"
	}
	return "use a SNOWFLAKE with max-vibration-offset"
}

// sequences returns the number of sequences in a tick, which the property layout of a SNOWFLAKE
// determines.
func (m *componentSpec) sequences() int {
	const classic, js53, redis = 12, 15, 10
	if strings.EqualFold(m.typ.text, "REDIS") {
		return 1 << redis
	}
	p, _ := m.prop("layout")
	layout := strings.TrimSpace(p.value.Reveal())
	if strings.EqualFold(layout, "js53") {
		return 1 << js53
	}
	own, err := strconv.ParseUint(strings.TrimSpace(layout[strings.LastIndex(layout, "-")+1:]), 10, 8)
	if err != nil || own > 62 {
		return 1 << classic
	}
	return 1 << own
}
