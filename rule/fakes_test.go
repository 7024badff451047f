package rule_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/shardkey/shardkey/spi"
)

// fake is a generator that counts, and records its calls.
type fake struct {
	typ      string
	worker   int64
	assigner spi.WorkerIDAssigner
	next     atomic.Int64
	closed   atomic.Int64
	closeErr error
	onClose  func(string)
}

func (g *fake) GenerateKeys(_ context.Context, _ spi.Column, n int) ([]any, error) {
	keys := make([]any, n)
	for i := range keys {
		keys[i] = g.next.Add(1)
	}
	return keys, nil
}

func (g *fake) Close() error {
	g.closed.Add(1)
	if g.onClose != nil {
		g.onClose(g.typ)
	}
	return g.closeErr
}

func (g *fake) Describe() string   { return fmt.Sprintf("%s worker %d", g.typ, g.worker) }
func (g *fake) Health() spi.Health { return spi.Health{Issued: g.next.Load(), WorkerID: &g.worker} }

type fakeAssigner struct {
	fake
	path string
}

func (a *fakeAssigner) AcquireWorkerID(context.Context, int64) (spi.WorkerIDLease, error) {
	return nil, spi.ErrNoWorkerID
}

// made records the generators that the factories made.
var made struct {
	sync.Mutex
	assigners []*fakeAssigner
	order     []string
	props     spi.Props // properties of the last PROPS generator
}

func init() {
	for _, typ := range []string{"SNOWFLAKE", "UUID"} {
		spi.RegisterKeyGenerator(typ, func(p spi.Props) (spi.KeyGenerator, error) { return newFake(typ, p) })
	}
	spi.RegisterKeyGenerator("BROKEN", func(p spi.Props) (spi.KeyGenerator, error) {
		return nil, fmt.Errorf("shardkey: the %s is wrong", p.String("what", "moon"))
	})
	spi.RegisterKeyGenerator("NOTHING", func(spi.Props) (spi.KeyGenerator, error) { return nil, nil })
	spi.RegisterKeyGenerator("PROPS", func(p spi.Props) (spi.KeyGenerator, error) {
		made.props = p
		for _, name := range []string{"int", "uint", "bool", "duration", "time", "list", "text", "env"} {
			p.Has(name)
		}
		return new(fake), nil
	})
	spi.RegisterKeyGenerator("SECRETS", func(p spi.Props) (spi.KeyGenerator, error) {
		p.Secret("login")
		p.Secrets("hosts")
		p.String("password", "")
		return new(fake), nil
	})
	spi.RegisterWorkerIDAssigner("FILE", func(p spi.Props) (spi.WorkerIDAssigner, error) {
		a := &fakeAssigner{fake: fake{typ: "FILE", onClose: noteClose}, path: p.String("path", "")}
		if a.path == "" {
			return nil, p.Wrong("path", "a directory")
		}
		made.Lock()
		defer made.Unlock()
		made.assigners = append(made.assigners, a)
		return a, nil
	})
}

func noteClose(what string) {
	made.Lock()
	defer made.Unlock()
	made.order = append(made.order, what)
}

func newFake(typ string, p spi.Props) (spi.KeyGenerator, error) {
	worker, err := p.Int("worker-id", 0, 0, 1023)
	if err != nil {
		return nil, err
	}
	if _, err := p.Int("max-vibration-offset", 1, 0, 4095); err != nil {
		return nil, err
	}
	if _, err := p.Int("max-tolerate-time-difference-milliseconds", 10, 0, 1<<31); err != nil {
		return nil, err
	}
	p.List("dsns")
	p.Secret("password")
	p.String("layout", "")
	assigner, err := p.WorkerIDAssigner("worker-id-assigner")
	if err != nil {
		return nil, err
	}
	return &fake{typ: typ, worker: worker, assigner: assigner, onClose: noteClose}, nil
}

// slow is a generator whose Close takes some time.
type slow struct{ fake }

var slowOpen struct{ now, most atomic.Int64 }

func (g *slow) Close() error {
	runtime.Gosched()
	slowOpen.now.Add(-1)
	return g.fake.Close()
}

// failing is how the factory of FAILING fails: "error", "panic" or "" for not at all.
var failing atomic.Value

// ownFake returns the database of the generator's state: the connector's own, or the property dsn.
func ownFake(p spi.Props) string {
	if dsn := p.Secret("dsn"); dsn.Reveal() != "" {
		return dsn.Reveal()
	}
	return p.HostDSN().Reveal()
}

func init() {
	spi.RegisterKeyGenerator("SLOW", func(spi.Props) (spi.KeyGenerator, error) {
		now := slowOpen.now.Add(1)
		slowOpen.most.Store(max(slowOpen.most.Load(), now))
		return new(slow), nil
	})
	spi.RegisterKeyGenerator("FAILING", func(p spi.Props) (spi.KeyGenerator, error) {
		if _, err := p.WorkerIDAssigner("worker-id-assigner"); err != nil {
			return nil, err
		}
		switch failing.Load() {
		case "error":
			return nil, errors.New("not today")
		case "panic":
			panic("not today")
		}
		return new(fake), nil
	})
	spi.RegisterKeyGenerator("OWN", func(p spi.Props) (spi.KeyGenerator, error) {
		return &fake{typ: ownFake(p)}, nil
	})
	spi.RegisterWorkerIDAssigner("OWN", func(p spi.Props) (spi.WorkerIDAssigner, error) {
		return &fakeAssigner{path: ownFake(p)}, nil
	})
}
