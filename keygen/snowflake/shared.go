package snowflake

import (
	"reflect"
	"sync"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// identity is what makes the keys of two generators collide: the same bits,
// the same zero of time and the same worker. The clock belongs to it, since
// generators in different times of different tests have nothing in common.
type identity struct {
	layout Layout
	epoch  int64
	worker int64
	clock  spi.Clock
}

type sharedState struct {
	state *state
	users int
}

// shared holds the states of worker ids that were given, not leased. A state
// outlives its generators, so that one that is opened again goes on behind
// the keys that were made before.
var shared = struct {
	sync.Mutex
	states map[identity]*sharedState
}{states: map[identity]*sharedState{}}

// join returns the state of an identity; from is its first position when the
// identity is new. leave gives it back, once.
func join(id identity, ringSize, seqBits int, from uint64) (s *state, leave func(), err error) {
	if !reflect.TypeOf(id.clock).Comparable() {
		return newState(ringSize, from, seqBits), func() {}, nil
	}
	shared.Lock()
	defer shared.Unlock()
	entry := shared.states[id]
	switch {
	case entry == nil:
		entry = &sharedState{state: newState(ringSize, from, seqBits)}
		shared.states[id] = entry
	case entry.state.ringSize() == ringSize:
	case entry.users > 0:
		return nil, nil, &SharedError{WorkerID: id.worker, RingSize: ringSize, Used: entry.state.ringSize()}
	default:
		// Everything below the old state's top counts as used. Ending it stops
		// a caller that still holds it.
		entry.state = newState(ringSize, max(from, entry.state.end()), seqBits)
	}
	entry.users++
	return entry.state, sync.OnceFunc(func() {
		shared.Lock()
		defer shared.Unlock()
		entry.users--
	}), nil
}

func (c Config) identity(worker int64) identity {
	return identity{layout: c.Layout, epoch: c.Epoch.UnixNano(), worker: worker, clock: c.Clock}
}

// closeTimeout bounds how long Close waits for the store to take a lease back.
const closeTimeout = 3 * time.Second
