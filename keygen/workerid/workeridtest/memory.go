package workeridtest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/shardkey/shardkey/keygen/workerid"
)

// Memory is a store in memory, for tests of code that uses leases. All stores that [Memory.Open]
// returns share its records, like the stores of several processes. The zero Memory is empty.
type Memory struct {
	mu      sync.Mutex
	records map[int64]workerid.Record
	away    error
}

// Open returns a store of the records.
func (m *Memory) Open() workerid.Store { return &memoryStore{memory: m} }

// SetAway makes every operation of every store return err, until it is called with nil.
func (m *Memory) SetAway(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.away = err
}

// Put sets a record without a comparison, which no lease does.
func (m *Memory) Put(workerID int64, r workerid.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(workerID, r)
}

func (m *Memory) put(workerID int64, r workerid.Record) {
	if m.records == nil {
		m.records = map[int64]workerid.Record{}
	}
	m.records[workerID] = r
	if r.IsZero() {
		delete(m.records, workerID)
	}
}

type memoryStore struct {
	memory *Memory
	closed bool
}

// use locks the records for one operation. Unlock with s.memory.mu.Unlock.
func (s *memoryStore) use(ctx context.Context) error {
	s.memory.mu.Lock()
	err := ctx.Err()
	switch {
	case err != nil:
	case s.closed:
		err = errors.New("memory store is closed")
	case s.memory.away != nil:
		err = s.memory.away
	}
	if err != nil {
		s.memory.mu.Unlock()
	}
	return err
}

func (s *memoryStore) List(ctx context.Context) ([]workerid.Entry, error) {
	if err := s.use(ctx); err != nil {
		return nil, err
	}
	defer s.memory.mu.Unlock()
	var entries []workerid.Entry
	for _, id := range slices.Sorted(maps.Keys(s.memory.records)) {
		entries = append(entries, workerid.Entry{WorkerID: id, Record: s.memory.records[id]})
	}
	return entries, nil
}

func (s *memoryStore) Get(ctx context.Context, workerID int64) (workerid.Record, error) {
	if err := s.use(ctx); err != nil {
		return workerid.Record{}, err
	}
	defer s.memory.mu.Unlock()
	return s.memory.records[workerID], nil
}

func (s *memoryStore) CompareAndSet(ctx context.Context, workerID int64, prev, next workerid.Record) (bool, error) {
	if err := s.use(ctx); err != nil {
		return false, err
	}
	defer s.memory.mu.Unlock()
	if !s.memory.records[workerID].Same(prev) {
		return false, nil
	}
	s.memory.put(workerID, next)
	return true, nil
}

func (s *memoryStore) Close() error {
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	s.closed = true
	return nil
}
