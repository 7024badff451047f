package sequence

import (
	"context"
	"errors"
	"time"

	"github.com/shardkey/shardkey/keygen/internal/stats"
	"github.com/shardkey/shardkey/spi"
)

// A server that failed is skipped for this long, doubling each time.
const (
	firstPause = time.Second
	maxPause   = 30 * time.Second
)

// servers asks one or several servers in turn. One goroutine at a time uses it.
type servers struct {
	words
	all     []*server
	turn    int
	checked bool // the settings of all servers that are up agree
	timeout time.Duration
	clock   spi.Clock
	observe func(*server, error) // is called with each server's outcome
}

// fetch gets numbers from the next server that has them. size returns how many to claim,
// given the claim's step.
//
// Settings that are wrong on one server fail the fetch, whichever server's
// turn it is: other processes may be getting the same numbers from that one.
func (p *servers) fetch(ctx context.Context, size func(step int64) int64) (got run, err error) {
	if len(p.all) == 0 {
		return run{}, &stats.StoreError{Store: p.title, Detail: "no database is known; give " + p.address}
	}
	if err := p.checkAll(ctx); err != nil {
		return run{}, err
	}
	var failed serverErrors
	for _, i := range p.order() {
		err := p.ask(ctx, p.all[i], func(ctx context.Context) (err error) {
			got, err = p.all[i].fetch(ctx, size)
			return err
		})
		if err == nil {
			p.turn = (i + 1) % len(p.all)
			return got, nil
		}
		failed = append(failed, err)
		if errors.Is(err, errSettings) {
			p.checked = false
			return run{}, err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return run{}, failed.orNil()
}

// checkAll connects to all of several servers before the first number, so that settings
// that disagree are found before any of them counts. A server that cannot be
// reached is checked when it can.
func (p *servers) checkAll(ctx context.Context) error {
	if p.checked || len(p.all) == 1 {
		return nil
	}
	for _, s := range p.all {
		if !errors.Is(s.failed, errSettings) && s.paused(p.clock.Now()) {
			continue
		}
		err := p.ask(ctx, s, func(ctx context.Context) error { return s.explain(ctx, s.connect(ctx)) })
		if errors.Is(err, errSettings) {
			return err
		}
	}
	p.checked = true
	return nil
}

// order is the servers in turn, without those that are in their pause; all of
// them when none is left.
func (p *servers) order() []int {
	now := p.clock.Now()
	var ready, all []int
	for i := range p.all {
		i = (p.turn + i) % len(p.all)
		all = append(all, i)
		if !p.all[i].paused(now) {
			ready = append(ready, i)
		}
	}
	if ready == nil {
		return all
	}
	return ready
}

// ask calls one server within the timeout and records its outcome.
func (p *servers) ask(ctx context.Context, s *server, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	err := do(ctx)
	p.observe(s, err)
	return err
}

func (p *servers) close() error {
	var errs []error
	for _, s := range p.all {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}
