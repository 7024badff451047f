package workerid_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	testclock "github.com/shardkey/shardkey/internal/test/clock"
	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/keygen/workerid/workeridtest"
	"github.com/shardkey/shardkey/spi"
)

// A clock that stepped back needs no new reservation, but the renewal still checks the lease.
func TestClock_backStillLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, clock := new(workeridtest.Memory), new(testclock.Clock)
		l := mustAcquire(t, newAssigner(t, m, clock), 0)
		limit := l.Limit()
		clock.Set(-time.Hour)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		wantMS(t, "limit", l.Limit(), limit)
		m.Put(0, workerid.Record{Owner: "other", ReservedUntil: limit + 1})
		time.Sleep(3 * time.Second)
		synctest.Wait()
		must.Equal(t, l.Limit(), 0, "limit of a lost lease")
	})
}

// A record of 2080 is not changed and is reported. Other worker IDs are leased.
func TestClock_recordDecadesAhead(t *testing.T) {
	m := new(workeridtest.Memory)
	a := newAssigner(t, m, nil)
	in2080 := time.Date(2080, 1, 1, 0, 0, 0, 0, time.UTC).UnixMilli()
	m.Put(0, workerid.Record{Owner: "x", ReservedUntil: in2080, FreeFrom: in2080, Holder: "h pid 1"})
	if l := mustAcquire(t, a, 1); l.WorkerID() != 1 {
		t.Errorf("have: worker ID %d\nwant: 1", l.WorkerID())
	}
	if h := a.Health(); len(h.Warnings) != 1 || !strings.Contains(h.Warnings[0], "2080") {
		t.Errorf("warnings\nhave: %q\nwant: one that speaks of 2080", h.Warnings)
	}
	if _, err := a.AcquireWorkerID(t.Context(), 1); !errors.Is(err, spi.ErrNoWorkerID) || !strings.Contains(err.Error(), "2080") {
		t.Errorf("have: %v\nwant: no worker ID, naming 2080", err)
	}
}

func openGenerator(t *testing.T, m *workeridtest.Memory, layout map[string]any, clock spi.Clock) workerid.Snowflake {
	t.Helper()
	return openGeneratorOn(t, m.Open(), layout, clock)
}

func openGeneratorOn(t *testing.T, store workerid.Store, layout map[string]any, clock spi.Clock) workerid.Snowflake {
	t.Helper()
	a := workerid.Assign(t, store, workerid.Config{Clock: clock})
	g := must.Get(workerid.NewSnowflake(a, spi.Host{Clock: clock}, 1, layout))(t)
	t.Cleanup(func() {
		_ = g.Close()
		_ = a.Close()
	})
	return g
}

// A worker ID used by a clock three hours ahead is leased last, and is not kept. It doesn't make
// other clocks look wrong.
func TestAssigner_startAheadIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, ahead := new(workeridtest.Memory), new(testclock.Clock)
		two := map[string]any{"layout": "41-1-21", "epoch": "1999-01-01"}
		ahead.Set(3 * time.Hour)
		wrong := openGenerator(t, m, two, ahead)
		mustKey(t, wrong)
		must.Do(t, wrong.Close())
		holder, waiting := openGenerator(t, m, two, nil), openGenerator(t, m, two, nil)
		mustKey(t, holder)
		held := *holder.Health().WorkerID

		for range 3 {
			_, err := waiting.Next(context.Background())
			if !errors.Is(err, spi.ErrNoWorkerID) || errors.Is(err, spi.ErrClockBack) {
				t.Fatalf("have: %v\nwant: that no worker ID can be had", err)
			}
			_, text, _ := strings.Cut(err.Error(), "its keys begin at ")
			text, _, _ = strings.Cut(text, ",")
			start, parseErr := time.Parse(time.RFC3339Nano, text)
			if parseErr != nil {
				t.Fatalf("have: %v\nwant: the time at which its keys begin", err)
			}
			if from := time.Until(start); from < 2*time.Hour || from > 3*time.Hour+11*time.Second {
				t.Errorf("start\nhave: %v ahead\nwant: three hours, not more with each attempt", from)
			}
			time.Sleep(time.Second)
		}
		must.Do(t, holder.Close())
		mustKey(t, waiting)
		must.Equal(t, *waiting.Health().WorkerID, held, "worker ID", "which has become free")
	})
}

// With ticks of an hour, a start is rounded up to the next hour. Keys begin there at once: with
// an empty store, after a restart, and after several.
func TestAssigner_longTicksDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(workeridtest.Memory)
		hours := map[string]any{"layout": "30-1-30", "tick": "1h", "epoch": "1999-01-01"}
		seen := map[int64]bool{}
		began := time.Now()
		for range 3 {
			g := openGenerator(t, m, hours, nil)
			for range 3 {
				key := mustKey(t, g)
				if seen[key] {
					t.Fatalf("key %d twice", key)
				}
				seen[key] = true
			}
			must.Do(t, g.Close())
		}
		if waited := time.Since(began); waited > time.Second {
			t.Errorf("waited\nhave: %v\nwant: no wait", waited)
		}
	})
}

// All holders' clocks are a year ahead for some seconds. Nothing is reserved up to that time,
// Health and Ready return the reason, and keys continue as soon as the clocks are right.
func TestClock_aheadForAMomentReservesNothing(t *testing.T) {
	for name, clocked := range map[string]bool{"a store with a clock": true, "a store without one": false} {
		t.Run(name, func(t *testing.T) {
			if !clocked && runtime.GOOS != "linux" {
				t.Skip("without the uptime of the machine a step ahead isn't told from a suspension")
			}
			synctest.Test(t, func(t *testing.T) {
				m, clock := new(workeridtest.Memory), new(testclock.Clock)
				var generators []workerid.Snowflake
				for range 16 {
					store := m.Open()
					if clocked {
						store = rightClock{store}
					}
					generators = append(generators, openGeneratorOn(t, store, map[string]any{"layout": "js53", "epoch": "1999-01-01"}, clock))
				}
				for _, g := range generators {
					mustKey(t, g)
				}
				for _, ahead := range []time.Duration{time.Hour, 365 * 24 * time.Hour} {
					clock.Set(ahead)
					for _, g := range generators {
						_, err := g.Next(t.Context())
						for what, err := range map[string]error{"next": err, "ready": g.Ready(t.Context()), "health": g.Health().Err} {
							if !errors.Is(err, workerid.ErrClock) || !errors.Is(err, spi.ErrStore) {
								t.Fatalf("%s\nhave: %v\nwant: ErrClock", what, err)
							}
						}
					}
					time.Sleep(20 * time.Second)
					clock.Set(0)
					for _, g := range generators {
						mustKey(t, g)
						if err := g.Ready(t.Context()); err != nil {
							t.Errorf("ready\nhave: %v", err)
						}
					}
				}
				time.Sleep(10 * time.Second)
				for _, g := range generators {
					if err := g.Health().Err; err != nil {
						t.Errorf("health\nhave: %v", err)
					}
				}
			})
		})
	}
}

// rightClock is a store with a correct clock.
type rightClock struct{ workerid.Store }

func (rightClock) Now(context.Context) (time.Time, error) { return time.Now(), nil }
