package place

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/shardkey/shardkey/rule/internal/expr"
)

// Gene is what a key carries of another column of its row, in its lowest bits: a
// number from 0 to 2^bits−1. It is the number that the column's algorithm makes of a
// value when there are 2^bits tables:
//
//	MOD, INLINE … % n         the value modulo 2^bits
//	HASH_MOD, INLINE … hash   the absolute hash modulo 2^bits
//
// Without an algorithm for the column it is MOD's of numbers and HASH_MOD's of texts. Of 2^k
// tables, k ≤ bits, the row's is the gene modulo 2^k. A Gene never changes.
type Gene struct {
	column    string
	bits      int
	way       GeneWay
	mod       mod
	hash      hashMod
	templates []*expr.Template // expressions that decide on the column
	sure      int64            // the expressions agree with the gene of 0 to so much
}

// GeneWay is how a gene is computed of a value. The zero GeneWay is that of a column without
// an algorithm.
type GeneWay struct {
	how       geneHow
	class     expr.Class // of the column in Java; Null for that of the value
	normalize bool       // HASH_MOD's
}

type geneHow int

const (
	geneOfEither geneHow = iota // MOD's of numbers, HASH_MOD's of texts
	geneOfNumber
	geneOfHash
)

// IsHash reports whether the gene is one of the value's hash.
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

// NewGene returns the gene of a column, of 1 to 62 bits. strategies are those of which it is
// the only column; without any the gene is computed in the given way. The error is a
// [*GeneError] about the last of them.
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
			return nil, s.geneError("the other strategy goes by the column's %s, and this one by its %s: a key can carry one "+
				"of them", g.way, way)
		}
		g.way = way
		g.agreeWith(s)
	}
	g.hash.normalize = g.way.normalize
	return g, nil
}

// agreeWith has values compared with a strategy's expression.
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

// GeneWay returns how the gene of the strategy's only column is computed, and modulo what
// the strategy takes it, 1 where that is not known but a power of 2 that bits tell. The
// error is a [*GeneError].
func (s *Strategy) GeneWay(bits int) (way GeneWay, modulo int64, err error) {
	way.class = s.class
	switch n := s.numbers.(type) {
	case *mod:
		way.how = geneOfNumber
		if n.start > 0 || n.stop > 0 {
			return way, 0, s.geneError("start-offset and stop-offset take a part of the value's characters, and a key has " +
				"others")
		}
		return way, n.count, nil
	case *hashMod:
		way.how, way.normalize = geneOfHash, n.normalize
		return way, n.count, nil
	}
	if s.template == nil {
		return way, 0, s.geneError("%s takes of the column what no lowest bits of a key can tell: use MOD, HASH_MOD, or "+
			"INLINE by a remainder", s.typ)
	}
	if way.how = geneOfHash; s.isHash(bits, way) {
		return way, 1, nil
	}
	n := s.modulus()
	if n == 0 {
		return way, 0, s.geneError("what it makes of the column is neither its remainder nor its absolute hash, modulo a "+
			"power of 2 up to %d; MOD and HASH_MOD are", int64(1)<<bits)
	}
	way.how = geneOfNumber
	return way, n, nil
}

// isHash tries whether an expression goes by the absolute hash.
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
			continue // an expression for texts alone will do
		}
		if _, err := g.Of(v); err != nil {
			return false
		}
	}
	return true
}

// geneSamples are values of all remainders, by which an expression is compared with the
// absolute hash.
var geneSamples = func() (samples []expr.Value) {
	for i := range int64(256) {
		samples = append(samples, expr.OfString(fmt.Sprintf("u%d-%d", i, i*i*7919)), expr.OfLong(i*i*7919<<(i%40)),
			expr.OfLong(-i*7919))
	}
	return append(samples, expr.OfString(""), expr.OfString("polygenelubricants")) // its hash is −2^31
}()

// checkGeneCount refuses a number of tables on which the lowest bits of a key do not
// decide.
func (s *Strategy) checkGeneCount(geneBits int, count int64) error {
	switch all := int64(1) << geneBits; {
	case count&(count-1) != 0:
		return s.geneError("it is modulo %d, which is no power of 2, and the lowest bits of a key tell no other "+
			"remainders", count)
	case count > all:
		return s.geneError("it is modulo %d, and %d bits tell %d shards: gene-bits must be %d or more", count, geneBits,
			all, bits.Len64(uint64(count-1)))
	}
	return nil
}

// CheckGeneKey returns a [*GeneError] when the strategy, whose only column is the key,
// depends on more of it than its lowest bits.
func (s *Strategy) CheckGeneKey(bits int) error {
	if n := s.modulus(); n > 0 {
		return s.checkGeneCount(bits, n)
	}
	if _, isHash := s.numbers.(*hashMod); isHash {
		return s.geneError("the hash of a key takes all of its bits: shard by the key with MOD, also where the other column " +
			"has HASH_MOD")
	}
	return s.geneError("it takes more of the key than its lowest bits: use MOD, or INLINE by a remainder")
}

// GeneError says why a strategy does not agree with a gene.
type GeneError struct{ Reason string }

func (e *GeneError) Error() string { return e.Reason }

func (s *Strategy) geneError(format string, args ...any) error {
	return &GeneError{fmt.Sprintf(format, args...)}
}

// Of returns the gene of a value. The error says why the value has none, after the word
// "it".
func (g *Gene) Of(v expr.Value) (int64, error) {
	if v.Class() == expr.Null {
		return 0, errors.New("it is NULL")
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
			return 0, fmt.Errorf("it belongs to %s, and its gene %d tells %s", clip(string(meant)), gene, clip(string(told)))
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
			err = fmt.Errorf("it is sharded as a number, and is none: %w", err)
		}
		return gene, err
	case v.IsInteger(), class == expr.Unsigned:
		return g.mod.number(v)
	default:
		return 0, fmt.Errorf("it is no integer and no text, but in Java a %s", class)
	}
}

// String says what the gene is.
func (g *Gene) String() string {
	switch g.way.how {
	case geneOfNumber:
		return fmt.Sprintf("%s modulo %d", g.column, g.mod.count)
	case geneOfHash:
		return fmt.Sprintf("the hash of %s modulo %d", g.column, g.mod.count)
	}
	return fmt.Sprintf("%s modulo %d, of a text its hash", g.column, g.mod.count)
}
