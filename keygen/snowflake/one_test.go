package snowflake

import (
	"context"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// Next returns one new key.
func (g *generator) Next(ctx context.Context) (int64, error) {
	var keys [1]int64
	err := g.GenerateInt64Keys(ctx, spi.Column{}, keys[:])
	return keys[0], err
}

// compose is the key of a time, worker and sequence: what [Decode] takes
// apart. The time is rounded down to its tick. A part that does not fit is an
// error.
func compose(l Layout, epoch, t time.Time, worker, sequence int64) (int64, error) {
	l, epoch, err := known(l, epoch)
	if err != nil {
		return 0, err
	}
	if err := outside("worker id", worker, l.MaxWorkerID()); err != nil {
		return 0, err
	}
	if err := outside("sequence", sequence, l.MaxSequence()); err != nil {
		return 0, err
	}
	ticks, _ := ticksSince(l, epoch, t)
	if ticks < 0 || ticks >= 1<<l.TimeBits {
		return 0, &timeError{Time: t, Layout: l, Epoch: epoch, Last: lastTime(l, epoch)}
	}
	return ticks<<(l.WorkerBits+l.SequenceBits) | worker<<l.SequenceBits | sequence, nil
}
