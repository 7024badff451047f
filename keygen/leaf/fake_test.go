package leaf

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// fakeStore is a row of leaf_alloc in memory. Its delay passes on the clock of
// a synctest bubble.
type fakeStore struct {
	mu     sync.Mutex
	maxID  int64
	step   int64
	delay  time.Duration
	fail   error
	claims []int64 // the sizes, in order
	reads  int
	closed int
}

func (s *fakeStore) baseStep(ctx context.Context) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	return s.step, s.fail
}

func (s *fakeStore) claim(ctx context.Context, n, least int64) (int64, error) {
	s.mu.Lock()
	delay := s.delay
	s.mu.Unlock()
	if err := spi.SystemClock.Sleep(ctx, delay); err != nil {
		return 0, storeError("order", "fake", nil, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.fail != nil:
		return 0, s.fail
	case s.maxID < least:
		return 0, storeError("order", "fake", errMovedBack, nil)
	case s.maxID > math.MaxInt64-n:
		return 0, storeError("order", "fake", errExhausted, nil)
	}
	first := s.maxID
	s.maxID += n
	s.claims = append(s.claims, n)
	return first, nil
}

func (s *fakeStore) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed++
	return nil
}

func (s *fakeStore) set(change func(*fakeStore)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *fakeStore) sizes() []int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]int64(nil), s.claims...)
}

var errAway = storeError("order", "fake", nil, errors.New("connection refused"))

// newFake makes a generator over a row of max_id 1 and the step.
func newFake(t testing.TB, step int64, c config) (*generator, *fakeStore) {
	t.Helper()
	c.Key, c.DSN = "order", "unused"
	c, err := c.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	s := &fakeStore{maxID: 1, step: step}
	g := newWithStore(c, s)
	t.Cleanup(func() { g.Close() })
	return g, s
}

func mustReserve(t testing.TB, g *generator, n int64) int64 {
	t.Helper()
	first, err := g.reserve(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	if first < 1 {
		t.Fatalf("have: %d as a key\nwant: a positive one", first)
	}
	return first
}
