package workeridtest

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/test/memory"
	"github.com/shardkey/shardkey/keygen/workerid"
)

func TestMemory_conforms(t *testing.T) {
	TestStore(t, func(testing.TB) Namespace { return in(new(memory.Records), nil) })
}

// in returns a namespace of a store in memory. wrap may replace its methods.
func in(m *memory.Records, wrap func(*faulty)) Namespace {
	lose := new(bool)
	return Namespace{
		Open: func() (workerid.Store, workerid.Info) {
			s := m.Open()
			f := &faulty{Store: s, memory: m, list: s.List, get: s.Get, swap: s.CompareAndSet, info: workerid.Info{Name: "MEMORY"}}
			swap := s.CompareAndSet
			f.swap = func(ctx context.Context, id int64, prev, next workerid.Record) (bool, error) {
				ok, err := swap(ctx, id, prev, next)
				if *lose {
					*lose = false
					return false, errors.New("connection closed")
				}
				return ok, err
			}
			if wrap != nil {
				wrap(f)
			}
			return f, f.info
		},
		PutForeign: func(id int64) { m.Put(id, workerid.Record{Owner: foreign}) },
		LoseAnswer: func() { *lose = true },
	}
}

// foreign is the owner of records that aren't shardkey's.
const foreign = "foreign"

// faulty is a store whose methods can be replaced.
type faulty struct {
	workerid.Store
	memory *memory.Records
	info   workerid.Info
	list   func(context.Context) ([]workerid.Entry, error)
	get    func(context.Context, int64) (workerid.Record, error)
	swap   func(context.Context, int64, workerid.Record, workerid.Record) (bool, error)

	blind bool // foreign records aren't recognized
}

func (f *faulty) List(ctx context.Context) ([]workerid.Entry, error) {
	entries, err := f.list(ctx)
	for i, e := range entries {
		entries[i].Record, entries[i].Err = f.check(e.WorkerID, e.Record)
	}
	return entries, err
}

func (f *faulty) Get(ctx context.Context, id int64) (workerid.Record, error) {
	r, err := f.get(ctx, id)
	if err != nil {
		return r, err
	}
	return f.check(id, r)
}

func (f *faulty) CompareAndSet(ctx context.Context, id int64, prev, next workerid.Record) (bool, error) {
	return f.swap(ctx, id, prev, next)
}

func (f *faulty) check(id int64, r workerid.Record) (workerid.Record, error) {
	switch {
	case r.Owner != foreign:
		return r, nil
	case f.blind:
		return workerid.Record{}, nil
	}
	return workerid.Record{}, &workerid.ForeignRecordError{WorkerID: id, Err: errors.New("foreign")}
}

// Each bug fails the listed subtests.
func TestStore_catchesBugs(t *testing.T) {
	type swap = func(context.Context, int64, workerid.Record, workerid.Record) (bool, error)
	change := func(change func(f *faulty, swap swap, ctx context.Context, id int64, prev, next workerid.Record) (bool, error)) func(*faulty) {
		return func(f *faulty) {
			swap := f.swap
			f.swap = func(ctx context.Context, id int64, prev, next workerid.Record) (bool, error) {
				return change(f, swap, ctx, id, prev, next)
			}
		}
	}
	for name, bug := range map[string]struct {
		put    func(*faulty)
		caught string
	}{
		"drops a write": {change(func(f *faulty, swap swap, ctx context.Context, id int64, prev, next workerid.Record) (bool, error) {
			if r, err := f.get(ctx, id); !prev.IsZero() && err == nil && r.Same(prev) {
				return true, nil
			}
			return swap(ctx, id, prev, next)
		}), "compare, fields, lost answer, list"},
		"ignores prev": {change(func(f *faulty, swap swap, ctx context.Context, id int64, _, next workerid.Record) (bool, error) {
			r, _ := f.get(ctx, id)
			return swap(ctx, id, r, next)
		}), "compare, create once, foreign records"},
		"compares, then sets": {change(func(f *faulty, swap swap, ctx context.Context, id int64, prev, next workerid.Record) (bool, error) {
			r, err := f.get(ctx, id)
			if err != nil || !r.Same(prev) {
				return false, err
			}
			for range 100 {
				runtime.Gosched() // lets others compare, too
			}
			f.memory.Put(id, next)
			return true, nil
		}), "one of many wins"},
		"compares without case": {change(func(f *faulty, swap swap, ctx context.Context, id int64, prev, next workerid.Record) (bool, error) {
			if r, err := f.get(ctx, id); err == nil && strings.EqualFold(r.Owner, prev.Owner) && r.ReservedUntil == prev.ReservedUntil {
				prev = r
			}
			return swap(ctx, id, prev, next)
		}), "compare"},
		"makes a record in place of any": {change(func(f *faulty, swap swap, ctx context.Context, id int64, prev, next workerid.Record) (bool, error) {
			if prev.IsZero() {
				f.memory.Put(id, next)
				return true, ctx.Err()
			}
			return swap(ctx, id, prev, next)
		}), "create once, foreign records"},
		"rounds times": {change(func(_ *faulty, swap swap, ctx context.Context, id int64, prev, next workerid.Record) (bool, error) {
			next.ReservedUntil = int64(float64(next.ReservedUntil))
			return swap(ctx, id, prev, next)
		}), "fields"},
		"keeps free_from": {change(func(f *faulty, swap swap, ctx context.Context, id int64, prev, next workerid.Record) (bool, error) {
			r, _ := f.get(ctx, id)
			next.FreeFrom = max(next.FreeFrom, r.FreeFrom)
			return swap(ctx, id, prev, next)
		}), "fields"},
		"treats a foreign record as empty": {func(f *faulty) {
			f.blind = true
			swap := f.swap
			f.swap = func(ctx context.Context, id int64, prev, next workerid.Record) (bool, error) {
				if r, err := f.get(ctx, id); prev.IsZero() && err == nil && r.Owner == foreign {
					prev = r
				}
				return swap(ctx, id, prev, next)
			}
		}, "foreign records"},
		"shows a foreign record as empty": {func(f *faulty) { f.blind = true }, "foreign records"},
		"repeats a write whose answer is lost": {change(func(_ *faulty, swap swap, ctx context.Context, id int64, prev, next workerid.Record) (bool, error) {
			ok, err := swap(ctx, id, prev, next)
			if err != nil && ctx.Err() == nil {
				return swap(ctx, id, prev, next)
			}
			return ok, err
		}), "lost answer"},
		"keeps records in the process": {func(f *faulty) {
			own := new(memory.Records).Open()
			f.Store, f.list, f.get, f.swap = own, own.List, own.Get, own.CompareAndSet
		}, "create once, list"},
		"forgets when it is closed": {func(f *faulty) { f.Store = forgetful{f.Store, f.memory} }, "list"},
		"lists one worker ID too few": {func(f *faulty) {
			list := f.list
			f.list = func(ctx context.Context) ([]workerid.Entry, error) {
				entries, err := list(ctx)
				return entries[:max(0, len(entries)-1)], err
			}
		}, "list"},
		"mixes worker IDs": {func(f *faulty) {
			get, swap := f.get, f.swap
			f.get = func(ctx context.Context, id int64) (workerid.Record, error) { return get(ctx, id%10) }
			f.swap = func(ctx context.Context, id int64, prev, next workerid.Record) (bool, error) {
				return swap(ctx, id%10, prev, next)
			}
		}, "list"},
		"ignores its context": {func(f *faulty) {
			get, swap, list := f.get, f.swap, f.list
			f.get = func(_ context.Context, id int64) (workerid.Record, error) { return get(context.Background(), id) }
			f.list = func(context.Context) ([]workerid.Entry, error) { return list(context.Background()) }
			f.swap = func(_ context.Context, id int64, prev, next workerid.Record) (bool, error) {
				return swap(context.Background(), id, prev, next)
			}
		}, "cancelled"},
		"stays open":     {func(f *faulty) { f.Store = new(memory.Records).Open() }, "close twice"},
		"fails to close": {func(f *faulty) { f.Store = unclosable{f.Store} }, "close twice"},
		"has no name":    {func(f *faulty) { f.info.Name = "" }, "info"},
		"has no clock, and a function": {func(f *faulty) {
			f.info.Now = func(context.Context) (time.Time, error) { return time.Unix(1, 0), nil }
		}, "info"},
		"writes while it lists": {func(f *faulty) {
			list := f.list
			f.list = func(ctx context.Context) ([]workerid.Entry, error) {
				f.memory.Put(99, record("a", 1))
				return list(ctx)
			}
		}, "list, leases"},
	} {
		t.Run(name, func(t *testing.T) {
			var caught []string
			for _, test := range tests {
				if fails(t, func(t testing.TB) { test.run(t, in(new(memory.Records), bug.put)) }) {
					caught = append(caught, test.name)
				}
			}
			for want := range strings.SplitSeq(bug.caught, ", ") {
				if !slices.Contains(caught, want) {
					t.Errorf("caught by\nhave: %q\nwant: %q among them", caught, want)
				}
			}
		})
	}
}

type forgetful struct {
	workerid.Store
	memory *memory.Records
}

func (f forgetful) Close() error {
	entries, _ := f.List(context.Background())
	for _, e := range entries {
		f.memory.Put(e.WorkerID, workerid.Record{})
	}
	return f.Store.Close()
}

type unclosable struct{ workerid.Store }

func (unclosable) Close() error { return errors.New("not closed") }

// fails runs a test and reports whether it failed, without failing t.
func fails(t *testing.T, test func(testing.TB)) bool {
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		test(r)
	}()
	<-done
	return r.failed.Load()
}

// recorder is a testing.TB that records failures.
type recorder struct {
	testing.TB
	failed atomic.Bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Failed() bool          { return r.failed.Load() }
func (r *recorder) Error(...any)          { r.failed.Store(true) }
func (r *recorder) Errorf(string, ...any) { r.failed.Store(true) }
func (r *recorder) Fatal(...any)          { r.failed.Store(true); runtime.Goexit() }
func (r *recorder) Fatalf(string, ...any) { r.failed.Store(true); runtime.Goexit() }
