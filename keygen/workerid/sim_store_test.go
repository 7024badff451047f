package workerid

import (
	"context"
	"errors"
)

// errAway is what a process sees of a store that it cannot reach, or that does
// not answer.
var errAway = errors.New("no answer")

// shown is the record that the store shows.
func (w *world) shown(workerID int64) Record {
	if log := w.log[workerID]; len(log) > 0 {
		return log[len(log)-1]
	}
	return Record{}
}

// swap shows next in place of prev, as InnoDB shows a commit before it is on disk.
// It returns next's place in the log, 0 when the record is not prev.
func (w *world) swap(workerID int64, prev, next Record) int {
	if !w.bugs.noCompare && !w.shown(workerID).Same(prev) {
		return 0
	}
	w.log[workerID] = append(w.log[workerID], next)
	return len(w.log[workerID])
}

// keep has the log of a worker id last up to a place.
func (w *world) keep(workerID int64, place int) { w.kept[workerID] = max(w.kept[workerID], place) }

// crashStore makes the store forget what it has shown and not confirmed.
func (w *world) crashStore() {
	w.starts++
	for id, log := range w.log {
		w.figures.forgotten += len(log) - w.kept[id]
		w.log[id] = log[:w.kept[id]:w.kept[id]]
	}
}

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
		if r := w.shown(i); !r.IsZero() {
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
	r := w.shown(workerID)
	w.meanwhile()
	return r, nil
}

func (s *lossyStore) CompareAndSet(_ context.Context, workerID int64, prev, next Record) (bool, error) {
	w := s.p.world
	w.meanwhile()
	switch {
	case s.p.cutOff:
		return false, errAway
	case w.chance(8): // the answer is lost
		w.figures.lostAnswers++
		place := w.swap(workerID, prev, next)
		if w.chance(2) {
			w.keep(workerID, place)
		}
		w.meanwhile()
		return false, errAway
	case w.chance(8): // the question comes late
		w.figures.lateWrites++
		w.late = append(w.late, func() { w.keep(workerID, w.swap(workerID, prev, next)) })
		w.meanwhile()
		return false, errAway
	}
	starts := w.starts
	place := w.swap(workerID, prev, next)
	w.meanwhile()
	if w.starts != starts {
		return false, errAway // it crashed before it could answer
	}
	w.keep(workerID, place)
	w.meanwhile()
	return place > 0, nil
}

func (s *lossyStore) Describe() string { return "SIMULATED" }
func (s *lossyStore) Close() error     { return nil }
