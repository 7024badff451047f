// Package memory has a store of leases in memory, for tests.
package memory

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/shardkey/shardkey/keygen/workerid"
)

// Records are the records of a store in memory. All stores that [Records.Open] returns share them,
// like the stores of several processes. The zero Records is empty.
type Records struct {
	mu      sync.Mutex
	records map[int64]workerid.Record
	away    error
}

// Open returns a store of the records.
func (m *Records) Open() workerid.Store { return &store{of: m} }

// SetAway makes every operation of every store return err, until it is called with nil.
func (m *Records) SetAway(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.away = err
}

// Put sets a record without a comparison, which no lease does.
func (m *Records) Put(workerID int64, r workerid.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(workerID, r)
}

func (m *Records) put(workerID int64, r workerid.Record) {
	if m.records == nil {
		m.records = map[int64]workerid.Record{}
	}
	m.records[workerID] = r
	if r.IsZero() {
		delete(m.records, workerID)
	}
}

type store struct {
	of     *Records
	closed bool
}

// use locks the records for one operation. Unlock with s.of.mu.Unlock.
func (s *store) use(ctx context.Context) error {
	s.of.mu.Lock()
	err := ctx.Err()
	switch {
	case err != nil:
	case s.closed:
		err = errors.New("memory store is closed")
	case s.of.away != nil:
		err = s.of.away
	}
	if err != nil {
		s.of.mu.Unlock()
	}
	return err
}

func (s *store) List(ctx context.Context) ([]workerid.Entry, error) {
	if err := s.use(ctx); err != nil {
		return nil, err
	}
	defer s.of.mu.Unlock()
	var entries []workerid.Entry
	for _, id := range slices.Sorted(maps.Keys(s.of.records)) {
		entries = append(entries, workerid.Entry{WorkerID: id, Record: s.of.records[id]})
	}
	return entries, nil
}

func (s *store) Get(ctx context.Context, workerID int64) (workerid.Record, error) {
	if err := s.use(ctx); err != nil {
		return workerid.Record{}, err
	}
	defer s.of.mu.Unlock()
	return s.of.records[workerID], nil
}

func (s *store) CompareAndSet(ctx context.Context, workerID int64, prev, next workerid.Record) (bool, error) {
	if err := s.use(ctx); err != nil {
		return false, err
	}
	defer s.of.mu.Unlock()
	if !s.of.records[workerID].Same(prev) {
		return false, nil
	}
	s.of.put(workerID, next)
	return true, nil
}

func (s *store) Close() error {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.closed = true
	return nil
}
