package workerid

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// process is one process of the world, with a clock that nobody can trust.
type process struct {
	world    *world
	offset   int64   // of its clock from true time
	rate     float64 // of its clock
	started  int64
	frozen   int64 // its clock's time while it stands still, else 0
	cutOff   bool
	paused   bool
	busy     bool // in a call to the store
	nextKeep int64
	assigner *assigner
	real     Snowflake // see sim_snowflake_test.go
	lease    *lease
	last     int64 // the last id's time
	former   []*lease
}

// Now is the process's own idea of the time.
func (p *process) Now() time.Time {
	if p.frozen != 0 {
		return time.UnixMilli(p.frozen)
	}
	run := float64(p.world.time-p.started) * p.rate
	return time.UnixMilli(p.started + p.offset + int64(run))
}

// Sleep is never called: the simulation renews by hand.
func (p *process) Sleep(context.Context, time.Duration) error { return errors.New("no sleep here") }

// start is the process's beginning, with a clock that may be anywhere.
func (p *process) start() {
	p.started, p.rate, p.frozen, p.offset = p.world.time, 1, 0, 0
	p.lease, p.former = nil, nil
	p.setClock()
	store, lease := Store(&lossyStore{p}), 100*time.Millisecond
	if w := p.world; w.failovers {
		store = replicatedStore{&lossyStore{p}}
		lease = []time.Duration{simLag, simLag, simLag, 100, 100, 400}[w.rng.IntN(6)] * time.Millisecond
	}
	a := assign(store, config{
		Lease: lease, Renew: lease * 3 / 10, Clock: p, Logger: slog.New(slog.DiscardHandler),
		MaxClockAhead: horizon, // uniqueness does not rest on it
	})
	a.rules, a.manual, a.intN = p.world.rules, true, p.world.rng.IntN
	a.identity = func() string { return "" }
	a.uptime = func() (time.Duration, bool) { return 0, false }
	p.assigner = a
	if p.world.real {
		p.startReal()
	}
}

func (p *process) setClock() {
	rng := p.world.rng
	if p.world.failovers {
		p.offset = int64(rng.IntN(simLag) - simLag/2)
		return
	}
	switch rng.IntN(12) {
	case 0:
		p.offset = int64(rng.IntN(400) - 200)
	case 1:
		p.offset = int64(rng.IntN(7_200_000) - 3_600_000)
	case 2:
		p.rate = 0.5 + rng.Float64()
	case 3:
		p.frozen = p.Now().UnixMilli()
	default:
		p.offset, p.rate, p.frozen, p.started = 0, 1, 0, p.world.time
	}
}

// act does one thing.
func (p *process) act() {
	w := p.world
	if p.paused {
		p.paused = !w.chance(60)
		return
	}
	if w.real {
		p.lease = p.realLease()
	}
	switch n := w.rng.IntN(400); {
	case n < 250 && w.real:
		p.makeKeys()
	case n < 250:
		p.makeID()
	case n < 340:
		p.keep()
	case n < 350 && (p.cutOff || w.chance(5)):
		p.cutOff = !p.cutOff
		w.figures.cutOffs++
	case n < 354:
		p.paused = true
		w.figures.pauses++
	case n < 360:
		p.setClock()
		w.figures.steppedClocks++
	case n < 366 && !p.busy && w.real:
		p.closeReal()
	case n < 366 && !p.busy:
		p.release()
	case n < 368 && !p.busy:
		p.crash()
	case n < 369 && !p.busy:
		p.close()
	default:
		p.makeIDOfFormer()
	}
}

func (p *process) crash() {
	p.world.figures.crashes++
	p.start()
}

// close ends the process in good order. Its generator may go on until the limit
// is gone.
func (p *process) close() {
	p.busy = true
	defer func() { p.busy = false }()
	_ = p.assigner.Close()
	p.start()
}

func (p *process) keep() {
	if p.lease == nil || p.busy || p.world.failovers && p.world.time < p.nextKeep {
		return
	}
	p.busy = true
	defer func() { p.busy = false }()
	p.nextKeep = p.world.time + p.assigner.every().Milliseconds()
	_ = p.lease.keep(context.Background())
}

func (p *process) acquire() bool {
	p.busy = true
	defer func() { p.busy = false }()
	l, err := p.assigner.acquire(context.Background(), p.world.maxID)
	if err != nil {
		p.world.figures.refused++
		return false
	}
	p.world.figures.acquired++
	p.lease, p.last = l, l.floor-1
	return true
}

// makeID is the generator: an id's time is never below the floor or the last
// one's, is the clock's where that allows it, and is below the limit.
func (p *process) makeID() {
	if p.lease == nil && (p.busy || !p.acquire()) {
		return
	}
	l := p.lease
	t := max(p.Now().UnixMilli(), p.last+1, l.floor)
	if !p.world.bugs.noLimit && t >= l.Limit() {
		if p.busy || !p.renew(t) {
			return
		}
		t = max(t, p.last+1)
	}
	if p.lease == l && (p.world.bugs.noLimit || t < l.Limit()) {
		p.last = t
		p.world.make(l, t)
	}
}

func (p *process) renew(t int64) bool {
	p.busy = true
	defer func() { p.busy = false }()
	err := p.lease.Renew(context.Background(), t)
	var lost *leaseLostError
	if errors.As(err, &lost) {
		p.world.figures.lost++
		p.former = append(p.former, p.lease)
		p.lease = nil
	}
	return err == nil
}

func (p *process) release() {
	if p.lease == nil {
		return
	}
	p.busy = true
	defer func() { p.busy = false }()
	l, last := p.lease, p.last
	if last < l.floor {
		last = 0 // none was made
	}
	p.former = append(p.former, l)
	p.lease = nil
	p.world.figures.released++
	if p.world.bugs.lateLimit {
		p.world.make(l, max(last+1, l.floor))
	}
	_ = l.Release(context.Background(), last)
}

// makeIDOfFormer is a goroutine that has not noticed that its lease has ended:
// the limit must tell it.
func (p *process) makeIDOfFormer() {
	if len(p.former) == 0 {
		return
	}
	l := p.former[p.world.rng.IntN(len(p.former))]
	if t := max(p.Now().UnixMilli(), l.floor); t < l.Limit() {
		p.world.make(l, t)
	}
}
