package place

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/shardkey/shardkey/rule/internal/expr"
)

// Gene computes the shard bits of keys: the lowest bits of a key, which carry the shard of another
// column of the row. The shard bits are a number from 0 to 2^bits−1. It is the number of the table
// that the column's algorithm selects out of 2^bits tables:
//
//	MOD, INLINE … % n         the value modulo 2^bits
//	HASH_MOD, INLINE … hash   the absolute hash modulo 2^bits
//
// If the column has no algorithm, MOD is used for numbers and HASH_MOD for strings. With 2^k
// tables, k ≤ bits, the number of a row's table is its shard bits modulo 2^k. A Gene never changes.
type Gene struct {
	column    string
	bits      int
	way       GeneWay
	mod       mod
	hash      hashMod
	templates []*expr.Template // expressions whose only column is this one
	sure      int64            // the expressions match the shard bits for values from 0 to sure
}

// GeneWay specifies how shard bits are computed from a value. The zero GeneWay is for a column
// without an algorithm.
type GeneWay struct {
	how       geneHow
	class     expr.Class // Java class of the column; Null means the class of the value
	normalize bool       // the property of HASH_MOD
}

type geneHow int

const (
	geneOfEither geneHow = iota // MOD for numbers, HASH_MOD for strings
	geneOfNumber
	geneOfHash
)

// IsHash reports whether the shard bits are computed from the hash of the value.
func (w GeneWay) IsHash() bool { return w.how == geneOfHash }

func (w GeneWay) String() string {
	s := "number"
	if w.how == geneOfHash {
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

// NewGene returns the Gene of a column with 1 to 62 shard bits. strategies are the strategies whose
// only column it is. If there are none, way specifies how shard bits are computed. The error is a
// [*GeneError] about the last of the strategies.
func NewGene(column string, bits int, way GeneWay, strategies ...*Strategy) (*Gene, error) {
	count := int64(1) << bits
	g := &Gene{column: column, bits: bits, way: way, mod: mod{count: count}, hash: hashMod{count: count},
		sure: math.MaxInt64}
	for i, s := range strategies {
		way, modulo, err := s.GeneWay(bits)
		if err == nil {
			err = s.checkGeneCount(bits, modulo)
		}
		switch {
		case err != nil:
			return nil, err
		case i > 0 && way != g.way:
			return nil, s.geneError("the other strategy uses the column's %s, and this one its %s; a key can carry one "+
				"of them", g.way, way)
		}
		g.way = way
		g.agreeWith(s)
	}
	g.hash.normalize = g.way.normalize
	return g, nil
}

// agreeWith makes Of compare its result with the strategy's expression.
func (g *Gene) agreeWith(s *Strategy) {
	if s.template == nil {
		return
	}
	g.templates = append(g.templates, s.template)
	switch {
	case s.modulus() == 0:
		g.sure = -1
	case s.class == expr.Integer:
		g.sure = min(g.sure, 1<<longestInteger-1)
	default:
		g.sure = min(g.sure, 1<<longestLong-1)
	}
}

// GeneWay returns how the shard bits of the strategy's only column are computed, and the modulus
// that the strategy applies. The modulus is 1 if it is an unknown power of 2 up to 2^bits. The
// error is a [*GeneError].
func (s *Strategy) GeneWay(bits int) (way GeneWay, modulo int64, err error) {
	way.class = s.class
	switch n := s.numbers.(type) {
	case *mod:
		way.how = geneOfNumber
		if n.start > 0 || n.stop > 0 {
			return way, 0, s.geneError("start-offset and stop-offset select some of the value's characters, and a key has " +
				"different ones")
		}
		return way, n.count, nil
	case *hashMod:
		way.how, way.normalize = geneOfHash, n.normalize
		return way, n.count, nil
	}
	if s.template == nil {
		return way, 0, s.geneError("the lowest bits of a key don't determine the result of %s; use MOD, HASH_MOD, or "+
			"INLINE with a remainder", s.typ)
	}
	if way.how = geneOfHash; s.isHash(bits, way) {
		return way, 1, nil
	}
	n := s.modulus()
	if n == 0 {
		return way, 0, s.geneError("expected the column or its absolute hash, modulo a "+
			"power of 2 up to %d; use MOD or HASH_MOD", int64(1)<<bits)
	}
	way.how = geneOfNumber
	return way, n, nil
}

// isHash reports whether the expression depends on the absolute hash only. It compares them for
// sample values.
func (s *Strategy) isHash(bits int, way GeneWay) bool {
	g, _ := NewGene("", bits, way)
	g.agreeWith(s)
	for _, v := range geneSamples {
		if way.class != expr.Null {
			var err error
			if v, err = v.Convert(way.class); err != nil {
				continue
			}
		} else if v.Class() != expr.String {
			continue // the expression only accepts strings
		}
		if _, err := g.Of(v); err != nil {
			return false
		}
	}
	return true
}

// geneSamples are values with all remainders. isHash compares an expression with the absolute hash
// for them.
var geneSamples = func() (samples []expr.Value) {
	for i := range int64(256) {
		samples = append(samples, expr.OfString(fmt.Sprintf("u%d-%d", i, i*i*7919)), expr.OfLong(i*i*7919<<(i%40)),
			expr.OfLong(-i*7919))
	}
	return append(samples, expr.OfString(""), expr.OfString("polygenelubricants")) // with the hash −2^31
}()

// checkGeneCount returns an error if the lowest bits of a key don't determine the table among count
// tables.
func (s *Strategy) checkGeneCount(geneBits int, count int64) error {
	switch all := int64(1) << geneBits; {
	case count&(count-1) != 0:
		return s.geneError("expected a power of 2 as modulus, found %d; the lowest bits of a key determine no other "+
			"remainders", count)
	case count > all:
		return s.geneError("the modulus is %d, but %d bits only determine %d shards; set gene-bits to %d or more", count, geneBits,
			all, bits.Len64(uint64(count-1)))
	}
	return nil
}

// CheckGeneKey returns a [*GeneError] if the strategy, whose only column is the key, depends on
// more than the key's lowest bits.
func (s *Strategy) CheckGeneKey(bits int) error {
	if n := s.modulus(); n > 0 {
		return s.checkGeneCount(bits, n)
	}
	if _, isHash := s.numbers.(*hashMod); isHash {
		return s.geneError("the hash of a key depends on all of its bits; shard by the key with MOD, even if the other column " +
			"uses HASH_MOD")
	}
	return s.geneError("it depends on more than the lowest bits of the key; use MOD, or INLINE with a remainder")
}

// GeneError is the error for a strategy that doesn't match the shard bits.
type GeneError struct{ Reason string }

func (e *GeneError) Error() string { return e.Reason }

func (s *Strategy) geneError(format string, args ...any) error {
	return &GeneError{fmt.Sprintf(format, args...)}
}

// Of returns the shard bits for a value. The error message continues a sentence that begins with
// the value.
func (g *Gene) Of(v expr.Value) (int64, error) {
	if v.Class() == expr.Null {
		return 0, errors.New("the value is NULL")
	}
	if g.way.class != expr.Null {
		var err error
		if v, err = v.Convert(g.way.class); err != nil {
			return 0, err
		}
	}
	gene, err := g.number(v)
	if err != nil || v.IsInteger() && v.Int64() >= 0 && v.Int64() <= g.sure {
		return gene, err
	}
	for _, t := range g.templates {
		meant, err := t.Append(nil, v)
		if err != nil {
			return 0, err
		}
		if told, err := t.Append(nil, expr.OfLong(gene)); err != nil || !slices.Equal(meant, told) {
			return 0, fmt.Errorf("the value selects %s, but its shard bits select %s", clip(string(meant)), clip(string(told)))
		}
	}
	return gene, nil
}

func (g *Gene) number(v expr.Value) (int64, error) {
	switch class := v.Class(); {
	case g.way.how == geneOfHash, g.way.how == geneOfEither && class == expr.String:
		return g.hash.number(v)
	case class == expr.String:
		gene, err := g.mod.number(v)
		if err != nil {
			err = fmt.Errorf("expected a number: %w", err)
		}
		return gene, err
	case v.IsInteger(), class == expr.Unsigned:
		return g.mod.number(v)
	default:
		return 0, fmt.Errorf("expected an integer or a string, found a %s in Java", class)
	}
}

// String returns the formula of the shard bits, for example "user_id modulo 16".
func (g *Gene) String() string {
	switch g.way.how {
	case geneOfNumber:
		return fmt.Sprintf("%s modulo %d", g.column, g.mod.count)
	case geneOfHash:
		return fmt.Sprintf("the hash of %s modulo %d", g.column, g.mod.count)
	}
	return fmt.Sprintf("%s, or the hash of a string, modulo %d", g.column, g.mod.count)
}
