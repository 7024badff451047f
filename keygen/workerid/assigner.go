package workerid

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shardkey/shardkey/internal/panics"
	"github.com/shardkey/shardkey/internal/sqlstate"
	"github.com/shardkey/shardkey/keygen/internal/stats"
	"github.com/shardkey/shardkey/spi"
)

var (
	_ spi.WorkerIDAssigner = (*assigner)(nil)
	_ spi.Describer        = (*assigner)(nil)
	_ spi.HealthReporter   = (*assigner)(nil)
	_ spi.WorkerIDLister   = (*assigner)(nil)
	_ sqlstate.Keeper      = (*assigner)(nil)
)

// assigner leases worker IDs from a [Store]. Each lease renews itself in its own goroutine until it
// is released or lost, or until the assigner is closed. Its methods may be called by multiple
// goroutines at once.
type assigner struct {
	store   Store
	info    Info
	display display
	config  config
	holder  string
	intN    func(n int) int               // returns a random number; seeded in the simulation
	renew   func(context.Context, *lease) // renews a lease in the background; nil in the simulation

	identity func() string                // see process_linux.go
	uptime   func() (time.Duration, bool) // see process_linux.go

	background context.Context // ends with Close
	stop       context.CancelFunc
	running    sync.WaitGroup

	changed  atomic.Int64                 // when the store's server was replaced; 0 if unknown
	notNoted atomic.Pointer[error]        // why the server couldn't be recorded; nil if it was
	lengths  atomic.Pointer[leaseLengths] // nil if they aren't recorded
	clocks   clocks

	mu      sync.Mutex
	closed  bool
	leases  map[*lease]struct{}
	forgets []string       // the store's latest warnings
	layouts []string       // of the generators; see UsedWith
	odd     []string       // warnings about worker IDs, from the last reading of the store
	logged  map[int64]bool // worker IDs whose warning was logged
	// figures.Err is the error of the last acquisition.
	figures stats.Figures
}

// newAssigner returns an assigner for a store of the namespace in c, which leases and display use.
// It does no I/O. Close closes the store.
func newAssigner(store Store, info Info, c config) *assigner {
	background, stop := context.WithCancel(context.Background())
	c.Logger = c.Logger.With("namespace", c.Namespace)
	return &assigner{
		store: store, info: info, display: display{store: store, info: info}, config: c, holder: holderName(), intN: rand.IntN,
		renew:    func(ctx context.Context, l *lease) { l.renewForever(ctx) },
		identity: identity, uptime: uptime,
		background: background, stop: stop, leases: map[*lease]struct{}{}, logged: map[int64]bool{},
		figures: stats.Figures{Health: spi.Health{Lease: new(spi.LeaseHealth)}},
	}
}

// holderPID is the separator between the host and the process in a holder's name.
const holderPID = " pid "

// holderName returns the description of this process as holder of a worker ID: host and process,
// without secrets.
func holderName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	if len(host) > 150 {
		host = host[:150]
	}
	return host + holderPID + strconv.Itoa(os.Getpid())
}

// AcquireWorkerID leases a free worker ID in 0..maxWorkerID. The error wraps [spi.ErrNoWorkerID],
// [spi.ErrStore] or [spi.ErrClosed].
func (a *assigner) AcquireWorkerID(ctx context.Context, maxWorkerID int64) (spi.WorkerIDLease, error) {
	lease, err := a.acquire(ctx, maxWorkerID)
	if err != nil {
		a.failed(err)
		return nil, err
	}
	return lease, nil
}

func (a *assigner) acquire(ctx context.Context, maxWorkerID int64) (_ *lease, err error) {
	defer panics.Recover(&err, "the store of worker IDs")
	if a.background.Err() != nil {
		return nil, fmt.Errorf("%w: worker-ID assigner %s", spi.ErrClosed, a.info.Name)
	}
	l := newLease(a)
	found, err := a.take(ctx, l, maxWorkerID)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, a.noWorkerID(ctx, maxWorkerID)
	}
	if err := a.start(l); err != nil {
		return nil, err
	}
	a.config.Logger.Info("shardkey: worker ID leased", "worker_id", l.workerID, "until", formatTime(l.Limit()))
	return l, nil
}

// start starts the renewal of a new lease, unless the assigner was closed in the meantime.
func (a *assigner) start(l *lease) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return fmt.Errorf("%w: worker-ID assigner %s", spi.ErrClosed, a.info.Name)
	}
	a.leases[l] = struct{}{}
	a.figures.Err = nil
	if a.renew != nil {
		ctx, stop := context.WithCancel(a.background)
		l.stop = stop
		a.running.Go(func() { a.renew(ctx, l) })
	}
	return nil
}

// Close releases all leases, and ends the background work and the store's connections. It waits for
// the store at most as long as one operation may take. It is idempotent.
func (a *assigner) Close() error {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return nil
	}
	a.closed = true
	held := slices.Collect(maps.Keys(a.leases))
	a.mu.Unlock()

	a.stop()
	a.running.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), a.opTimeout())
	defer cancel()
	var errs []error
	for _, l := range held {
		errs = append(errs, l.Release(ctx, lastUsedUnknown))
	}
	for _, s := range []Store{a.store, a.display.store} {
		errs = append(errs, panics.Call("the store of worker IDs", s.Close))
	}
	return errors.Join(errs...)
}

// forget removes a lease that has ended.
func (a *assigner) forget(l *lease) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.leases, l)
}

// Describe returns the store, the namespace, the intervals and the held worker IDs.
func (a *assigner) Describe() string {
	var held []int64
	a.mu.Lock()
	for l := range a.leases {
		held = append(held, l.workerID)
	}
	a.mu.Unlock()
	ids := "none held"
	if slices.Sort(held); len(held) > 0 {
		ids = fmt.Sprintf("holds %v", held)
	}
	return fmt.Sprintf("%s namespace=%s lease=%v renew=%v: %s",
		a.info.Name, a.config.Namespace, a.config.Lease, a.config.Renew, ids)
}

// opTimeout returns the maximum duration of one store operation, because a store may never answer.
func (a *assigner) opTimeout() time.Duration {
	return max(a.config.Renew, 2*time.Second)
}

// now returns the clock's time in milliseconds since the Unix epoch.
func (a *assigner) now() int64 { return a.config.Clock.Now().UnixMilli() }

func (a *assigner) storeError(op string, err error) error {
	if err == nil || errors.Is(err, spi.ErrStore) {
		return err
	}
	return &spi.StoreError{Store: a.info.Name, Detail: op, Cause: err}
}
