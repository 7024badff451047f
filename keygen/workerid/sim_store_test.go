package workerid

import (
	"context"
	"errors"
	"strconv"
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
	w.at[workerID] = append(w.at[workerID], w.time)
	return len(w.log[workerID])
}

// keep has the log of a worker id last up to a place.
func (w *world) keep(workerID int64, place int) { w.kept[workerID] = max(w.kept[workerID], place) }

// crashStore makes the store forget what it has shown and not confirmed.
func (w *world) crashStore() {
	w.starts++
	for id, log := range w.log {
		w.figures.forgotten += len(log) - w.kept[id]
		w.cut(id, w.kept[id])
	}
}

func (w *world) cut(workerID int64, n int) {
	w.log[workerID] = w.log[workerID][:n:n]
	w.at[workerID] = w.at[workerID][:n:n]
	w.kept[workerID] = n
}

// simLag is how much a replica lacks at most: no more than the shortest lease.
const simLag = 20

// failOver puts a replica in the server's place, one that has the note of which server it
// replaces: without it, it would look like a first start, or like the server before that.
func (w *world) failOver() {
	since, lost := w.time-simLag, 0
	has := func(id int64) int {
		n := len(w.at[id])
		for n > 0 && w.at[id][n-1] > since {
			n--
		}
		return n
	}
	if n := len(w.log[noteID(serverNote)]); n == 0 || has(noteID(serverNote)) < n {
		return
	}
	for id, log := range w.log {
		lost += len(log) - has(id)
	}
	if lost == 0 {
		return
	}
	for id := range w.log {
		w.cut(id, has(id))
	}
	w.server++
	w.starts++
	w.late = nil // they were for the server before
	w.figures.failovers++
}

// noteID is where a world keeps a note.
func noteID(id int64) int64 { return -1 - id }

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

// replicatedStore is a lossyStore whose server has a name, and notes.
type replicatedStore struct{ *lossyStore }

func (s replicatedStore) ServerID(context.Context) (string, error) {
	w := s.p.world
	w.meanwhile()
	if s.p.cutOff {
		return "", errAway
	}
	name := strconv.Itoa(w.server)
	w.meanwhile()
	return name, nil
}

func (s replicatedStore) Notes() Store { return simNotes(s) }

type simNotes struct{ *lossyStore }

func (s simNotes) Get(ctx context.Context, id int64) (Record, error) {
	return s.lossyStore.Get(ctx, noteID(id))
}

func (s simNotes) CompareAndSet(ctx context.Context, id int64, prev, next Record) (bool, error) {
	return s.lossyStore.CompareAndSet(ctx, noteID(id), prev, next)
}

func (s *lossyStore) Close() error { return nil }
