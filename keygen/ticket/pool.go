package ticket

import (
	"context"
	"errors"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// A server that failed is left alone for this long, doubling each time.
const (
	firstPause = time.Second
	maxPause   = 30 * time.Second
)

// source is a server as the pool asks it; tests have their own.
type source interface {
	fetch(ctx context.Context, n int64) (block, error)
	connect(ctx context.Context) error
	explain(err error) error
	close() error
}

// member is a server and its state.
type member struct {
	source source
	server *server // the same, nil in tests

	pause  time.Duration // 0 while it is up
	until  time.Time     // not before this is it asked again
	failed error         // nil while it is up
}

func (m *member) up() { m.pause, m.failed = 0, nil }

func (m *member) down(now time.Time, err error) {
	m.pause = min(max(2*m.pause, firstPause), maxPause)
	m.until, m.failed = now.Add(m.pause), err
}

// pool asks the servers in turn. One goroutine at a time uses it.
type pool struct {
	members []*member
	turn    int
	checked bool // the settings of all servers that are up agree
	timeout time.Duration
	offsets []int64 // what each server's offset must be; may be nil
	clock   spi.Clock
	observe func(*member, error) // is called with each server's outcome
}

// fetch gets n numbers of the next server that has them.
//
// Settings that are wrong on one server fail the fetch, whichever server's
// turn it is: other processes may be getting the same numbers from that one.
func (p *pool) fetch(ctx context.Context, n int64) (block, error) {
	if len(p.members) == 0 {
		return block{}, storeError("no server", "no database is known; give dsns", nil, nil)
	}
	if err := p.checkAll(ctx); err != nil {
		return block{}, err
	}
	var failed serverErrors
	for _, i := range p.order() {
		m := p.members[i]
		b, err := p.ask(ctx, m, func(ctx context.Context) (b block, err error) {
			if b, err = m.source.fetch(ctx, n); err == nil {
				err = p.agree()
			}
			return b, err
		})
		if err == nil {
			p.turn = (i + 1) % len(p.members)
			return b, nil
		}
		failed = append(failed, err)
		if errors.Is(err, errSettings) {
			p.checked = false
			return block{}, err
		}
		if ctx.Err() != nil {
			break
		}
	}
	if len(failed) == 1 {
		return block{}, failed[0]
	}
	return block{}, failed
}

// order is the servers in turn, without those that are in their pause; all of
// them when none is left.
func (p *pool) order() []int {
	now := p.clock.Now()
	var ready, all []int
	for i := range p.members {
		i = (p.turn + i) % len(p.members)
		all = append(all, i)
		if m := p.members[i]; m.failed == nil || !now.Before(m.until) {
			ready = append(ready, i)
		}
	}
	if ready == nil {
		return all
	}
	return ready
}

// ask calls one server within the timeout and records its outcome.
func (p *pool) ask(ctx context.Context, m *member, do func(context.Context) (block, error)) (block, error) {
	ctx, cancel := context.WithTimeout(ctx, p.timeout)
	defer cancel()
	b, err := do(ctx)
	p.observe(m, err)
	return b, err
}

// checkAll connects to all servers before the first number, so that settings
// that disagree are found before any of them counts. A server that cannot be
// reached is checked when it can.
func (p *pool) checkAll(ctx context.Context) error {
	if p.checked {
		return nil
	}
	for _, m := range p.members {
		if m.failed != nil && !errors.Is(m.failed, errSettings) && p.clock.Now().Before(m.until) {
			continue
		}
		_, err := p.ask(ctx, m, func(ctx context.Context) (block, error) {
			if err := m.source.connect(ctx); err != nil {
				return block{}, m.source.explain(err)
			}
			return block{}, p.agree()
		})
		if errors.Is(err, errSettings) {
			return err
		}
	}
	p.checked = true
	return nil
}

// agree checks the offsets of the servers that were connected to.
func (p *pool) agree() error {
	owner := map[int64]*server{}
	for i, m := range p.members {
		s := m.server
		if s == nil || s.offset == 0 {
			continue
		}
		if p.offsets != nil && s.offset != p.offsets[i] {
			return s.settingsAgain("auto_increment_offset is %d, not %d; set it, or the property offsets", s.offset, p.offsets[i])
		}
		if other := owner[s.offset]; other != nil {
			other.reset()
			return s.settingsAgain("auto_increment_offset is %d, and so is that of %s; give each server its own", s.offset, other.name)
		}
		owner[s.offset] = s
	}
	return nil
}

// settingsAgain is an error of settings after which the server is connected to
// again, so that a repair is seen.
func (s *server) settingsAgain(format string, args ...any) error {
	err := s.settings(format, args...)
	s.reset()
	return err
}

// reset forgets the connection and its settings.
func (s *server) reset() {
	s.disconnect()
	s.offset = 0
}

func (p *pool) close() error {
	var errs []error
	for _, m := range p.members {
		errs = append(errs, m.source.close())
	}
	return errors.Join(errs...)
}
