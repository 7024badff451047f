package workerid

import (
	"context"
	"errors"
)

// errAway is what a process sees of a store that it cannot reach, or that does
// not answer.
var errAway = errors.New("no answer")

// lossyStore is a process's view of the store.
type lossyStore struct{ p *process }

func (s *lossyStore) List(context.Context) ([]Entry, error) {
	w := s.p.world
	w.meanwhile()
	if s.p.cutOff {
		return nil, errAway
	}
	var entries []Entry
	for i := range w.maxID + 1 {
		if r := w.records[i]; !r.IsZero() {
			entries = append(entries, Entry{WorkerID: i, Record: r})
		}
	}
	w.meanwhile() // the answer is old when it comes
	return entries, nil
}

func (s *lossyStore) Get(_ context.Context, workerID int64) (Record, error) {
	w := s.p.world
	w.meanwhile()
	if s.p.cutOff {
		return Record{}, errAway
	}
	r := w.records[workerID]
	w.meanwhile()
	return r, nil
}

func (s *lossyStore) CompareAndSet(_ context.Context, workerID int64, prev, next Record) (bool, error) {
	w := s.p.world
	w.meanwhile()
	swap := func() bool {
		if !w.bugs.noCompare && !w.records[workerID].Same(prev) {
			return false
		}
		w.records[workerID] = next
		return true
	}
	switch {
	case s.p.cutOff:
		return false, errAway
	case w.chance(8): // the answer is lost
		w.figures.lostAnswers++
		swap()
		w.meanwhile()
		return false, errAway
	case w.chance(8): // the question comes late
		w.figures.lateWrites++
		w.late = append(w.late, func() { swap() })
		w.meanwhile()
		return false, errAway
	}
	swapped := swap()
	w.meanwhile()
	return swapped, nil
}

func (s *lossyStore) Describe() string { return "SIMULATED" }
func (s *lossyStore) Close() error     { return nil }
