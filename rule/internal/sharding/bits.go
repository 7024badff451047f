package sharding

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strconv"

	"github.com/shardkey/shardkey/rule/internal/expr"
)

// ShardBits computes the shard bits of keys: the lowest bits of a key, which carry the shard of another
// column of the row. The shard bits are a number from 0 to 2^bits−1. It is the number of the table
// that the column's algorithm selects out of 2^bits tables:
//
//	MOD, INLINE … % n         the value modulo 2^bits
//	HASH_MOD, INLINE … hash   the absolute hash modulo 2^bits
//
// If the column has no algorithm, MOD is used for numbers and HASH_MOD for strings. With 2^k
// tables, k ≤ bits, the number of a row's table is its shard bits modulo 2^k. A ShardBits never changes.
type ShardBits struct {
	column    string
	count     int64 // 2^bits
	way       ShardBitsWay
	templates []*expr.Template // expressions whose only column is this one
}

// ShardBitsWay specifies how shard bits are computed from a value. The zero ShardBitsWay is for a column
// without an algorithm.
type ShardBitsWay struct {
	Hash      bool       // from the hash of the value
	number    bool       // from the value, which must be a number
	class     expr.Class // Java class of the column; Null means the class of the value
	normalize bool       // the property of HASH_MOD
}

func (w ShardBitsWay) String() string {
	s := "number"
	if w.Hash {
		s = "hash"
	}
	if w.normalize {
		s += ", normalized"
	}
	if w.class != expr.Null {
		s += ", in Java " + w.class.String()
	}
	return s
}

// NewShardBits returns the ShardBits of a column with 1 to 62 shard bits. strategies are the strategies whose
// only column it is. If there are none, way specifies how shard bits are computed. The error is
// about the last of the strategies.
func NewShardBits(column string, bits int, way ShardBitsWay, strategies ...*Strategy) (*ShardBits, error) {
	g := &ShardBits{column: column, count: 1 << bits, way: way}
	for i, s := range strategies {
		way, modulo := s.ShardBitsWay()
		if err := s.checkGeneCount(bits, modulo); err != nil {
			return nil, err
		}
		if i > 0 && way != g.way {
			return nil, fmt.Errorf("the other strategy uses the column's %s, and this one its %s; a key can carry one "+
				"of them", g.way, way)
		}
		g.way = way
		if s.template != nil {
			g.templates = append(g.templates, s.template)
		}
	}
	return g, nil
}

// ShardBitsWay returns how the target depends on the strategy's only column: on the remainder of the
// value, or of its absolute hash, modulo modulo. Both are zero if the target depends on more, or if
// that isn't known.
func (s *Strategy) ShardBitsWay() (way ShardBitsWay, modulo int64) {
	way.class = s.class
	switch n := s.numbers.(type) {
	case *mod:
		if n.start > 0 || n.stop > 0 {
			return ShardBitsWay{}, 0 // it uses some of the value's characters
		}
		way.number = true
		return way, n.count
	case *hashMod:
		way.Hash, way.normalize = true, n.normalize
		return way, n.count
	}
	names := s.period()
	if names == nil {
		return ShardBitsWay{}, 0
	}
	way.Hash = s.isHash(names)
	way.number = !way.Hash
	return way, int64(len(names))
}

// period returns the names that an expression gives for the remainders of a number, or of an
// absolute hash. It returns nil if the names depend on more, or if the strategy has no expression.
func (s *Strategy) period() []string {
	if s.template == nil {
		return nil
	}
	var names []string
	for tried := 64; tried <= 2*maxModulus; tried *= 2 {
		for n := len(names); n < tried; n++ {
			names = append(names, s.nameOf(expr.OfLong(int64(n))))
		}
		if slices.Contains(names, "") {
			break
		}
		n := 1
		for n <= tried/2 && !slices.Equal(names[n:], names[:tried-n]) {
			n++
		}
		if n <= tried/2 && (s.isHash(names[:n]) || s.isNumber(names[:n])) {
			return names[:n]
		}
	}
	return nil
}

// maxModulus bounds the moduli that ShardBitsWay tries for an expression.
const maxModulus = 1 << 12

// nameOf evaluates the expression for a value.
func (s *Strategy) nameOf(v expr.Value) string {
	name, err := s.template.Append(nil, v)
	if err != nil {
		return "" // no table's name
	}
	return string(name)
}

// isNumber reports whether the names repeat for non-negative numbers of every length. It leaves out
// the longest ones, whose sums and products may overflow.
func (s *Strategy) isNumber(names []string) bool {
	longest := 62
	switch s.class {
	case expr.String:
		return false
	case expr.Integer:
		longest = 30
	}
	var samples []expr.Value
	random := uint64(0)
	for i := range 4 * longest {
		random += 0x9e3779b97f4a7c15
		samples = append(samples, expr.OfLong(int64(random*random>>(63-i/4))))
	}
	return s.agrees(names, &mod{count: int64(len(names))}, samples)
}

// isHash reports whether the expression depends on the absolute hash only. It compares them for
// sample values with all remainders. If the class isn't known, the samples are strings.
func (s *Strategy) isHash(names []string) bool {
	samples := []expr.Value{expr.OfString(""), expr.OfString("polygenelubricants")} // the latter has the hash −2^31
	for i := range int64(256) {
		samples = append(samples, expr.OfString(fmt.Sprintf("u%d-%d", i, i*i*7919)),
			expr.OfString(strconv.FormatInt(i*i*7919<<(i%40), 10)), expr.OfString(strconv.FormatInt(-i*7919, 10)))
	}
	return s.agrees(names, &hashMod{count: int64(len(names))}, samples)
}

// agrees reports whether the expression selects the names by number for those samples that the column
// can have.
func (s *Strategy) agrees(names []string, by numbering, samples []expr.Value) bool {
	return !slices.ContainsFunc(samples, func(v expr.Value) bool {
		v, err := v.Convert(s.class)
		if err != nil {
			return false
		}
		n, _ := by.number(v)
		return s.nameOf(v) != names[n]
	})
}

// checkGeneCount returns an error if the lowest bits of a key don't determine the table among count
// tables.
func (s *Strategy) checkGeneCount(geneBits int, count int64) error {
	switch all := int64(1) << geneBits; {
	case count == 0:
		return fmt.Errorf("the result of %s depends on more than the lowest bits of a key; use MOD without offsets, "+
			"HASH_MOD, or INLINE with a remainder", s.Type)
	case count&(count-1) != 0:
		return fmt.Errorf("expected a power of 2 as modulus, found %d; the lowest bits of a key determine no other "+
			"remainders", count)
	case count > all:
		return fmt.Errorf("the modulus is %d, but %d bits only determine %d shards; set gene-bits to %d or more", count,
			geneBits, all, bits.Len64(uint64(count-1)))
	}
	return nil
}

// CheckGeneKey returns an error if the strategy, whose only column is the key, depends on
// more than the key's lowest bits.
func (s *Strategy) CheckGeneKey(bits int) error {
	way, modulo := s.ShardBitsWay()
	if way.Hash && modulo > 1 {
		return fmt.Errorf("the hash of a key depends on all of its bits; shard by the key with MOD, even if the other column " +
			"uses HASH_MOD")
	}
	return s.checkGeneCount(bits, modulo)
}

// Of returns the shard bits for a value. The error message continues a sentence that begins with
// the value.
func (g *ShardBits) Of(v expr.Value) (int64, error) {
	if v.Class() == expr.Null {
		return 0, errors.New("the value is NULL")
	}
	v, err := v.Convert(g.way.class)
	if err != nil {
		return 0, err
	}
	gene, err := g.number(v)
	if err != nil {
		return 0, err
	}
	for _, t := range g.templates {
		meant, err := t.Append(nil, v)
		if err != nil {
			return 0, err
		}
		if told, err := t.Append(nil, expr.OfLong(gene)); err != nil || !slices.Equal(meant, told) {
			return 0, fmt.Errorf("the value selects %s, but its shard bits select %s", expr.Clip(string(meant)), expr.Clip(string(told)))
		}
	}
	return gene, nil
}

func (g *ShardBits) number(v expr.Value) (int64, error) {
	isString := v.Class() == expr.String
	switch {
	case g.way.Hash, !g.way.number && isString:
		return (&hashMod{g.count, g.way.normalize}).number(v)
	case !isString && !v.IsInteger() && v.Class() != expr.Unsigned:
		return 0, fmt.Errorf("expected an integer or a string, found a %s in Java", v.Class())
	}
	gene, err := (&mod{count: g.count}).number(v)
	if err != nil {
		err = fmt.Errorf("expected a number: %w", err)
	}
	return gene, err
}

// String returns the formula of the shard bits, for example "user_id modulo 16".
func (g *ShardBits) String() string {
	switch {
	case g.way.number:
		return fmt.Sprintf("%s modulo %d", g.column, g.count)
	case g.way.Hash:
		return fmt.Sprintf("the hash of %s modulo %d", g.column, g.count)
	}
	return fmt.Sprintf("%s, or the hash of a string, modulo %d", g.column, g.count)
}
