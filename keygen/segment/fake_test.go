package segment

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/spi"
)

var column = spi.Column{Table: "t_order", Name: "order_id"}

// fake is a claim in memory. Its numbers begin at 1 or the server's offset, and are on a grid.
// Its delay uses the clock of a synctest bubble.
type fake struct {
	*server
	mu           sync.Mutex
	next, stride int64
	base         int64
	delay        time.Duration
	fail         []error // errors of the next claims; the last one repeats
	refuse       error   // error of connections
	panics       bool
	sizes        []int64 // sizes of the successful claims
	tries        int     // number of claims
	opened       int     // number of connections
	closed       int
}

func (f *fake) connected(context.Context, *sql.Conn) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opened++
	return f.refuse
}

func (f *fake) step() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.base
}

func (f *fake) claim(ctx context.Context, _ *sql.Conn, n int64) (run, error) {
	f.mu.Lock()
	delay := f.delay
	f.mu.Unlock()
	if err := spi.SystemClock.Sleep(ctx, delay); err != nil {
		return run{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tries++
	if f.panics {
		panic("fake")
	}
	if len(f.fail) > 0 {
		err := f.fail[0]
		if len(f.fail) > 1 {
			f.fail = f.fail[1:]
		}
		if err != nil {
			return run{}, err
		}
	}
	if f.next > math.MaxInt64-n*f.stride {
		return run{}, f.storeError(errExhausted, "%s", f.end)
	}
	r := run{f.next, n, f.stride}
	f.next += n * f.stride
	f.sizes = append(f.sizes, n)
	return r, nil
}

func (f *fake) set(change func(*fake)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *fake) claims() []int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]int64(nil), f.sizes...)
}

// Connect implements driver.Connector. The connections do nothing.
func (f *fake) Connect(context.Context) (driver.Conn, error) { return fakeConn{f}, nil }
func (f *fake) Driver() driver.Driver                        { return nil }

type fakeConn struct{ *fake }

func (c fakeConn) Prepare(string) (driver.Stmt, error) { return nil, errors.ErrUnsupported }
func (c fakeConn) Begin() (driver.Tx, error)           { return nil, errors.ErrUnsupported }
func (c fakeConn) Close() error {
	c.set(func(f *fake) { f.closed++ })
	return nil
}

var errAway = errors.New("connection refused")

// types are the generators of this package, with properties for their fakes.
var types = []struct {
	name  string
	typ   string
	props map[string]any
}{
	{"LEAF_SEGMENT", "LEAF_SEGMENT", map[string]any{"leaf.key": "order", "dsn": "u@tcp(a:1)/d"}},
	{"TICKET", "TICKET", map[string]any{"dsns": "u@tcp(a:1)/d"}},
	{"TICKET in batches", "TICKET", map[string]any{"dsns": "u@tcp(a:1)/d", "batch": "20"}},
	{"TICKET of three servers", "TICKET", map[string]any{"dsns": three, "batch": "5"}},
}

// eachType runs a test with fakes of each type in a synctest bubble.
func eachType(t *testing.T, props map[string]any, test func(*testing.T, *generator, []*fake)) {
	for _, typ := range types {
		t.Run(typ.name, func(t *testing.T) { inBubble(t, typ.typ, with(typ.props, props), test) })
	}
}

// with returns props with more added.
func with(props, more map[string]any) map[string]any {
	all := maps.Clone(props)
	maps.Copy(all, more)
	return all
}

// construct returns a generator as a rule creates it.
func construct(t testing.TB, typ string, props map[string]any, host spi.Host) (spi.KeyGenerator, error) {
	t.Helper()
	p := must.Get(spi.NewProps(props, host))(t)
	g, err := spi.NewKeyGenerator(typ, p)
	if g, ok := g.(*generator); ok {
		t.Cleanup(func() { g.Close() })
	}
	return g, err
}

// newGen returns a generator with a timeout that a busy machine doesn't reach.
func newGen(t testing.TB, typ string, props map[string]any) *generator {
	t.Helper()
	g := must.Get(construct(t, typ, with(map[string]any{"timeout": "1m"}, props), spi.Host{}))(t)
	return g.(*generator)
}

// newFake returns a generator whose servers are fakes with a step of 100, unless the type sets
// another one.
func newFake(t testing.TB, typ string, props map[string]any) (*generator, []*fake) {
	t.Helper()
	made := must.Get(construct(t, typ, props, spi.Host{}))(t)
	g := made.(*generator)
	var fakes []*fake
	for i, s := range g.servers {
		f := &fake{server: s, next: int64(1 + i), stride: int64(len(g.servers)), base: s.step()}
		if f.base == 0 {
			f.base = 100
		}
		s.claim, s.connector = f, f
		fakes = append(fakes, f)
	}
	return g, fakes
}

// ledger finds duplicate keys.
type ledger struct {
	mu   sync.Mutex
	seen map[int64]string
}

func (l *ledger) add(t testing.TB, who string, keys ...int64) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen == nil {
		l.seen = map[int64]string{}
	}
	for i, k := range keys {
		if k < 1 || i > 0 && k <= keys[i-1] {
			t.Errorf("keys of %s\nhave: %d in %v\nwant: a positive, ascending key", who, k, keys)
		}
		if other, twice := l.seen[k]; twice {
			t.Errorf("key %d is of %s and of %s", k, other, who)
		}
		l.seen[k] = who
	}
}

func (l *ledger) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.seen)
}

func generate(ctx context.Context, g *generator, n int) ([]int64, error) {
	keys := make([]int64, n)
	err := g.GenerateInt64Keys(ctx, column, keys)
	return keys, err
}

func mustKeys(t testing.TB, g *generator, n int) []int64 {
	t.Helper()
	return must.Get(generate(t.Context(), g, n))(t)
}

func mustKey(t testing.TB, g *generator) int64 { t.Helper(); return mustKeys(t, g, 1)[0] }

// idleServer returns the server of a generator of one, when no goroutine fetches from it.
func idleServer(g *generator) *server {
	for {
		g.mu.Lock()
		done := g.done
		g.mu.Unlock()
		if done == nil {
			return g.servers[0]
		}
		<-done
	}
}

// wantError fails the test unless err wraps kind and spi.ErrStore.
func wantError(t testing.TB, err, kind error) {
	t.Helper()
	if !errors.Is(err, kind) || !errors.Is(err, spi.ErrStore) {
		t.Errorf("\nhave: %v\nwant: spi.ErrStore and %v", err, kind)
	}
}

// inParallel calls do in n goroutines and waits for them.
func inParallel(n int, do func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { do(i) })
	}
	wg.Wait()
}

func who(i int) string { return fmt.Sprint("caller ", i) }
