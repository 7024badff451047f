package workerid

import (
	"context"
	"fmt"

	"github.com/shardkey/shardkey/spi"
)

// startReal gives a process a SNOWFLAKE generator of some clock-back policy.
// It never waits: a wait is an error of the process's clock.
func (p *process) startReal() {
	rng := p.world.rng
	props := map[string]any{
		"max-tolerate-time-difference-milliseconds": "0",
		"clock-back": []string{"borrow", "error"}[rng.IntN(2)],
	}
	ring := []int{1, 50}[rng.IntN(2)]
	g, err := NewSnowflake(&seenAssigner{p}, spi.Host{Clock: p}, ring, props)
	if err != nil {
		panic(err)
	}
	p.real = g
}

// realLease is the lease that the generator holds, for the renewals that are
// made by hand.
func (p *process) realLease() *lease {
	for l := range p.assigner.leases {
		return l // there is one at most
	}
	return nil
}

// ended is the context of a caller that does not wait: while another one asks
// the store, it gets keys at once or not at all.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

func (p *process) makeKeys() {
	ctx := context.Background()
	if p.busy {
		ctx = ended
	}
	defer func(busy bool) { p.busy = busy }(p.busy)
	p.busy = true
	keys := make([]int64, 1+p.world.rng.IntN(3))
	if err := p.real.GenerateInt64Keys(ctx, spi.Column{}, keys); err != nil {
		p.world.figures.refused++
		return
	}
	for _, k := range keys {
		if p.world.keys[k] && p.world.repeat == nil {
			p.world.repeat = fmt.Errorf("key %d twice", k)
		}
		p.world.keys[k] = true
		p.world.figures.ids++
	}
}

// closeReal closes the generator in good order, and makes another one.
func (p *process) closeReal() {
	p.busy = true
	defer func() { p.busy = false }()
	p.world.figures.released++
	_ = p.real.Close()
	p.startReal()
}

// seenAssigner counts what the generator does with its leases.
type seenAssigner struct{ p *process }

func (s *seenAssigner) AcquireWorkerID(ctx context.Context, maxWorkerID int64) (spi.WorkerIDLease, error) {
	w := s.p.world
	l, err := s.p.assigner.AcquireWorkerID(ctx, min(maxWorkerID, w.maxID))
	if err != nil {
		return nil, err
	}
	w.figures.acquired++
	if w.bugs.farLimit {
		return farLimit{l}, nil
	}
	return l, nil
}

// farLimit is a lease that does not tell its limit.
type farLimit struct{ spi.WorkerIDLease }

func (farLimit) Limit() int64 { return 1 << 42 }
