package snowflake

import (
	"context"
	"fmt"

	"github.com/shardkey/shardkey/spi"
)

// GenerateFittingKeys is GenerateInt64Keys, and every key is in fit. It passes over
// the sequence numbers between them, which are lost: where one key of n fits, a tick
// has 4,096/n keys for one table with [Classic]. As many keys as a tick is sure to
// have come from one reservation; more come from as many ticks as they need.
//
// Its error has [spi.ErrNoFittingKey] in its chain when no tick of 128 has a
// fitting key, as when the worker id's bits decide and are not the right ones.
func (g *Generator) GenerateFittingKeys(ctx context.Context, _ spi.Column, keys []int64, fit spi.KeyFit) error {
	if len(keys) == 0 {
		return nil
	}
	waited := false
	if s := g.slot.Load(); s != nil && g.waiting.Load() == 0 && g.chunk(len(keys), fit) == len(keys) {
		start, _, v := g.take(s, request{now: g.clock.Now(), n: uint64(len(keys)), fit: fit})
		if v == taken {
			g.fillFitting(s, keys, start, fit)
			return nil
		}
		waited = v == full
	}
	return g.enqueue(ctx, keys, fit, waited)
}

// maxMisses bounds the ticks that are waited for in vain.
const maxMisses = 128

// chunk is how many of n keys are reserved at once: as many as a tick has for
// certain, at least one.
func (g *Generator) chunk(n int, fit spi.KeyFit) int {
	size := int64(g.seqMask) + 1
	n = int(min(int64(n), size))
	if fit == nil {
		return n
	}
	for n > 1 {
		if run := fit.Run(int64(n)); 0 < run && run <= size {
			break
		}
		n /= 2
	}
	return n
}

// span is how many positions a request takes that begins at start: up to the last
// key that fits. It is more than a tick has where the tick has not enough.
func (g *Generator) span(s *slot, start uint64, r request) uint64 {
	if r.fit == nil {
		return r.n
	}
	first := g.key(s, start)
	last := first | int64(g.seqMask)
	key, ok := r.fit.Next(first, last)
	for n := r.n; n > 1 && ok; n-- {
		if key == last {
			ok = false
		} else {
			key, ok = r.fit.Next(key+1, last)
		}
	}
	if !ok {
		return g.seqMask + 2
	}
	return uint64(key-first) + 1
}

// taken is the position from which on the keys are filled of a request that took n
// positions: that of the only key, or the first one taken.
func (g *Generator) taken(r request, start, n uint64) uint64 {
	if r.fit != nil && r.n == 1 {
		return start + n - 1
	}
	return start
}

// fillFitting writes the keys that fit, from a position on, and returns the
// position of the last one.
func (g *Generator) fillFitting(s *slot, keys []int64, start uint64, fit spi.KeyFit) uint64 {
	first := g.key(s, start)
	if len(keys) == 1 {
		keys[0] = first
		return start
	}
	last := first | int64(g.seqMask)
	from := first
	for i := range keys {
		keys[i], _ = fit.Next(from, last)
		from = keys[i] + 1
	}
	return start + uint64(keys[len(keys)-1]-first)
}

func (g *Generator) noFit() error {
	return fmt.Errorf("%w: none of the keys that %s had in %d ticks; the worker id may decide, or the table has too small a part of all keys",
		spi.ErrNoFittingKey, g.typ(), maxMisses)
}
