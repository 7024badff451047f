package sharding

import (
	"math"
	"math/bits"
	"slices"
	"sort"

	"github.com/shardkey/shardkey/internal/groovy"
)

// Fit is the set of the integer keys that belong to one target. A Fit never changes
// and may be used by many goroutines at once.
//
// Keys of class Long are meant: int64s in Go. What a generator must know is how
// many consecutive numbers it has to look through ([Fit.Run]) and which of them
// fit ([Fit.Next]):
//
//	MOD n, INLINE … % n     the keys of one remainder, every n-th
//	HASH_MOD n              one or two keys of every 2^⌈log2 n⌉ whose upper bits are
//	                        the same; which ones depends on these bits
//	anything else           what Place says of each key that is tried
type Fit struct {
	has func(key int64) bool

	// The keys in period.Min..Max that are one of the residues, modulo
	// period.Mod; Mod is 0 when no period is known.
	period   groovy.Period
	residues []int64

	// The keys whose hash has one of the remainders, of count; block is the least
	// power of two that is not less. Count is 0 when it is not the hash that
	// decides.
	count, block int64
	remainders   []int64
}

// KeyUse is what is known of how a strategy uses the key, when the values of its
// other columns stay what they are.
type KeyUse struct {
	// Period is set for one that depends on the key's remainder; Mod is 0 without.
	Period groovy.Period
	// HashCount is the sharding-count of a HASH_MOD; 0 without.
	HashCount int64
}

// Uses returns how the strategy uses column i, whose values are Longs, when the
// others are values[…]; nil for a single column.
func (s *Strategy) Uses(i int, values []groovy.Value) KeyUse {
	class := groovy.Long
	if s.classes != nil && s.classes[i] != groovy.Null {
		class = s.classes[i]
	}
	switch n := s.Algorithm.numbers.(type) {
	case *mod:
		if n.start == 0 && n.stop == 0 && (class == groovy.Long || class == groovy.Integer) {
			return KeyUse{Period: groovy.Period{Mod: n.count, Min: 0, Max: greatest(class)}}
		}
	case *hashMod:
		switch {
		case class == groovy.Integer:
			return KeyUse{Period: groovy.Period{Mod: n.count, Min: 0, Max: math.MaxInt32}}
		case class == groovy.Long:
			return KeyUse{HashCount: n.count}
		}
	}
	if s.template == nil || class != groovy.Long && class != groovy.Integer {
		return KeyUse{}
	}
	if values == nil {
		values = make([]groovy.Value, len(s.columns))
	}
	period, ok := s.template.Period(i, class, values)
	if !ok {
		return KeyUse{}
	}
	return KeyUse{Period: period}
}

func greatest(class groovy.Class) int64 {
	if class == groovy.Integer {
		return math.MaxInt32
	}
	return math.MaxInt64
}

// maxResidues bounds the period whose residues are computed one by one.
const maxResidues = 1 << 16

// NewFit returns the keys of which has is true. uses are those of the strategies
// that has asks about the key.
func NewFit(has func(key int64) bool, uses ...KeyUse) *Fit {
	f := &Fit{has: has}
	periods := groovy.Period{Mod: 1, Max: math.MaxInt64}
	hashes := groovy.Period{Mod: 1}
	areHashes := len(uses) > 0
	for _, use := range uses {
		periods = both(periods, use.Period)
		hashes = both(hashes, groovy.Period{Mod: use.HashCount})
		areHashes = areHashes && use.HashCount > 0
	}
	switch {
	case periods.Mod > 0:
		f.period = periods
		f.findResidues()
	case areHashes && hashes.Mod > 0:
		f.findHash(hashes.Mod)
	}
	return f
}

// both returns the period of two, with Mod 0 when one has none or it is too large.
func both(p, q groovy.Period) groovy.Period {
	if p.Mod == 0 || q.Mod == 0 {
		return groovy.Period{}
	}
	if p, ok := p.And(q); ok && p.Mod <= maxResidues {
		return p
	}
	return groovy.Period{}
}

// findResidues tries one key of each residue.
func (f *Fit) findResidues() {
	p := f.period
	for r := range p.Mod {
		key := p.Min + (r-p.Min%p.Mod+p.Mod)%p.Mod
		if key >= p.Min && key <= p.Max && f.has(key) {
			f.residues = append(f.residues, r)
		}
	}
}

// findHash tries one key of each remainder of the hash: the hashes of the first
// numbers are the numbers themselves.
func (f *Fit) findHash(count int64) {
	f.count, f.block = count, 1<<bits.Len64(uint64(count-1))
	for r := range count {
		if f.has(r) {
			f.remainders = append(f.remainders, r)
		}
	}
}

// Has reports whether the key fits.
func (f *Fit) Has(key int64) bool {
	if len(f.residues) == 1 && f.period.Min <= key && key <= f.period.Max && key >= 0 {
		return key%f.period.Mod == f.residues[0]
	}
	return f.has(key)
}

// Empty reports whether it is certain that no key fits.
func (f *Fit) Empty() bool {
	return (f.period.Mod > 0 || f.count > 0) && len(f.residues)+len(f.remainders) == 0
}

// maxTries bounds the keys that Next tries where nothing is known of them.
const maxTries = 1 << 16

// Next returns the first key in from..to that fits; ok is false when there is none,
// or none was found. Keys are not negative.
func (f *Fit) Next(from, to int64) (key int64, ok bool) {
	from = max(from, 0)
	switch {
	case f.period.Mod > 0:
		return f.nextResidue(max(from, f.period.Min), min(to, f.period.Max))
	case f.count > 0:
		return f.nextHash(from, to)
	}
	if to-from >= maxTries {
		to = from + maxTries - 1
	}
	for key := from; key <= to; key++ {
		if f.has(key) {
			return key, true
		}
		if key == math.MaxInt64 {
			break
		}
	}
	return 0, false
}

func (f *Fit) nextResidue(from, to int64) (int64, bool) {
	if len(f.residues) == 0 || from > to {
		return 0, false
	}
	r := from % f.period.Mod
	if len(f.residues) == 1 {
		step := f.residues[0] - r
		if step < 0 {
			step += f.period.Mod
		}
		if step > to-from {
			return 0, false
		}
		return from + step, true
	}
	i := sort.Search(len(f.residues), func(i int) bool { return f.residues[i] >= r })
	step := f.period.Mod - r
	if i < len(f.residues) {
		step = f.residues[i] - r
	} else {
		step += f.residues[0]
	}
	if step > to-from {
		return 0, false
	}
	return from + step, true
}

// nextHash looks into the block that from is in, and into the next one. Within a
// block the bits above its size are the same, and so are the upper bits of the hash
// (the lower half of the key xor the upper half) and its sign: its lower bits run
// through all values.
func (f *Fit) nextHash(from, to int64) (key int64, ok bool) {
	if len(f.remainders) == 0 {
		return 0, false
	}
	for base := from &^ (f.block - 1); base >= 0 && base <= to; base += f.block {
		hash := int64(int32(base ^ base>>32))
		least := hash &^ (f.block - 1)
		low := hash - least
		key, ok = 0, false
		for _, r := range f.remainders {
			// The absolute hashes of the block are first … first+block-1.
			first := least
			if least < 0 {
				first = -least - f.block + 1
			}
			for h := first + (r-first%f.count+f.count)%f.count; h < first+f.block; h += f.count {
				offset := h - least
				if least < 0 {
					offset = -h - least
				}
				if k := base | offset ^ low; k >= from && (!ok || k < key) {
					key, ok = k, true
				}
			}
		}
		if ok {
			return key, key <= to
		}
	}
	return 0, false
}

// Run returns how many consecutive keys are certain to have rows among them that
// fit, wherever they begin; 0 when that is not known.
func (f *Fit) Run(rows int64) int64 {
	switch fits := int64(len(f.residues)); {
	case rows < 1 || rows > math.MaxInt32:
		return 0
	case f.period.Mod > 0 && fits > 0:
		return (rows + fits - 1) / fits * f.period.Mod
	case len(f.remainders) > 0:
		return (rows + 1) * f.block
	}
	return 0
}

// Share returns the part of all keys that fits: one of m for MOD m; 0 when it is not
// known.
func (f *Fit) Share() float64 {
	switch {
	case f.period.Mod > 0:
		return float64(len(f.residues)) / float64(f.period.Mod)
	case f.count > 0:
		return float64(len(f.remainders)) / float64(f.count)
	}
	return 0
}

// Modulus returns the number of which a key's remainder decides whether it fits,
// and the remainders that do, in order; 0 when it is another thing that decides.
func (f *Fit) Modulus() (mod int64, residues []int64) {
	return f.period.Mod, slices.Clone(f.residues)
}

// Fit returns the keys of column i that belong to a target, when the others have
// these values; nil for a strategy of one column.
func (s *Strategy) Fit(target, i int, others []groovy.Value) *Fit {
	if others == nil {
		others = make([]groovy.Value, len(s.columns))
	}
	has := func(key int64) bool {
		var buf [4]groovy.Value
		values := append(buf[:0], others...)
		values[i] = groovy.OfLong(key)
		place, err := s.Place(values)
		return err == nil && place == target
	}
	return NewFit(has, s.Uses(i, others))
}
