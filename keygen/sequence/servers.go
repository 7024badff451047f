package sequence

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// A server that failed is skipped for this time, which doubles with each failure.
const (
	firstPause = time.Second
	maxPause   = 30 * time.Second
)

// servers asks one or several servers in turn. Only one goroutine at a time uses it.
type servers struct {
	words
	all     []*server
	turn    int
	timeout time.Duration
	clock   spi.Clock
	observe func(*server, error) // called with the outcome of each server
}

// fetch gets numbers from the next server that has them. size returns how many to claim, for a
// claim's step.
//
// It first connects to all servers that have no connection. If a server has wrong settings, the
// fetch fails even if it is another server's turn, because other processes may get the same numbers
// from that server.
func (p *servers) fetch(ctx context.Context, size func(step int64) int64) (got run, err error) {
	var failed serverErrors
	var connected []*server
	for _, s := range p.inTurn() {
		switch err := p.ask(ctx, s, s.connect); {
		case errors.Is(err, errSettings):
			return run{}, err
		case err != nil:
			failed = append(failed, err)
		default:
			connected = append(connected, s)
		}
	}
	for _, s := range connected {
		err := p.ask(ctx, s, func(ctx context.Context) (err error) {
			got, err = s.fetch(ctx, size)
			return err
		})
		if err == nil {
			p.observe(s, nil)
			p.turn = (slices.Index(p.all, s) + 1) % len(p.all)
			return got, nil
		}
		failed = append(failed, err)
		if errors.Is(err, errSettings) || ctx.Err() != nil {
			return run{}, err
		}
	}
	if failed == nil {
		return run{}, &spi.StoreError{Store: p.title, Detail: "no database is configured; set the property " + p.address}
	}
	return run{}, failed.orNil()
}

// inTurn returns the servers, beginning with the next one, without those that are paused. If all
// are paused, it returns all. Servers with wrong settings are always included.
func (p *servers) inTurn() []*server {
	all := slices.Concat(p.all[p.turn:], p.all[:p.turn])
	now := p.clock.Now()
	ready := slices.DeleteFunc(slices.Clone(all), func(s *server) bool {
		return s.failed != nil && !errors.Is(s.failed, errSettings) && now.Before(s.until)
	})
	if len(ready) == 0 {
		return all
	}
	return ready
}

// ask calls one server, limited by the timeout, and records its error.
func (p *servers) ask(ctx context.Context, s *server, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	err := s.try(ctx, do)
	if err != nil {
		p.observe(s, err)
	}
	return err
}

func (p *servers) close() error {
	var errs []error
	for _, s := range p.all {
		errs = append(errs, s.close())
	}
	return errors.Join(errs...)
}
