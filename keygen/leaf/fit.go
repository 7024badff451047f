package leaf

import (
	"context"
	"fmt"

	"github.com/shardkey/shardkey/spi"
)

// takeFitting fills keys with numbers of the segment that fit, if it has as many,
// and takes those between them along.
func (s *segment) takeFitting(keys []int64, fit spi.KeyFit) (end int64, ok bool) {
	last := s.first + s.size - 1
	for {
		used := s.used.Load()
		if used >= s.size {
			return 0, false
		}
		from := s.first + used
		for i := range keys {
			if i > 0 {
				if keys[i-1] == last {
					return 0, false
				}
				from = keys[i-1] + 1
			}
			if keys[i], ok = fit.Next(from, last); !ok {
				return 0, false
			}
		}
		end = keys[len(keys)-1] - s.first + 1
		if s.used.CompareAndSwap(used, end) {
			return end, true
		}
	}
}

// Numbers are looked through for keys that fit, where it is not known how many are
// enough: maxTried for one key, fitBatch at a time.
const (
	fitBatch = 1 << 10
	maxTried = 1 << 16
)

// GenerateFittingKeys fills keys with numbers that are in fit. They come from the
// numbers in memory, or are one reservation where it is known how many numbers have
// enough of them. The numbers in between are lost.
func (g *generator) GenerateFittingKeys(ctx context.Context, _ spi.Column, keys []int64, fit spi.KeyFit) error {
	if len(keys) == 0 {
		return nil
	}
	if s := g.current.Load(); len(keys) <= maxKeys {
		if end, ok := s.takeFitting(keys, fit); ok {
			if end > s.check.Load() {
				g.prefetch(s)
			}
			return nil
		}
	}
	for tried := int64(0); len(keys) > 0; {
		n := fit.Run(int64(len(keys)))
		if n < 1 || n > maxKeys {
			n = max(fitBatch, min(int64(len(keys)), maxKeys))
		}
		if tried > 0 && tried+n > max(maxTried, n) {
			return fmt.Errorf("%w: none of %d numbers of LEAF_SEGMENT", spi.ErrNoFittingKey, tried)
		}
		first, err := g.reserve(ctx, n)
		if err != nil {
			return err
		}
		last := first + n - 1
		tried += n
		for from := first; len(keys) > 0; {
			key, ok := fit.Next(from, last)
			if !ok {
				break
			}
			keys[0], keys, tried = key, keys[1:], 0
			if from = key + 1; key == last {
				break
			}
		}
	}
	return nil
}
