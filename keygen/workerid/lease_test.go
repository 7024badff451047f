package workerid_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/keygen/workerid/workeridtest"
	"github.com/shardkey/shardkey/spi"
)

func TestLease_reservesAheadAndRenews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustAcquire(t, newAssigner(t, new(workeridtest.Memory), nil), 1023)
		wantMS(t, "floor", l.Floor(), nowMS())
		wantMS(t, "limit", l.Limit(), nowMS()+10_000)
		time.Sleep(1400 * time.Millisecond)
		wantMS(t, "limit before the renewal", l.Limit(), nowMS()+8_600)
		time.Sleep(time.Minute)
		synctest.Wait()
		if ahead := l.Limit() - nowMS(); ahead < 7_000 || ahead > 10_000 {
			t.Errorf("limit ahead of now after a minute\nhave: %d ms\nwant: 7000..10000", ahead)
		}
	})
}

// A released worker id can be leased again immediately, from after its last id.
func TestLease_releaseLetsTheNextBeginAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(workeridtest.Memory)
		a, b := newAssigner(t, m, nil), newAssigner(t, m, nil)
		first := mustAcquire(t, a, 0)
		used := nowMS() + 1234
		if err := first.Release(t.Context(), used); err != nil {
			t.Fatal(err)
		}
		if first.Limit() > first.Floor() {
			t.Errorf("limit of a released lease: %d", first.Limit())
		}
		if err := first.Renew(t.Context(), used+1); !errors.Is(err, spi.ErrClosed) {
			t.Errorf("Renew of a released lease\nhave: %v\nwant: spi.ErrClosed", err)
		}
		if err := first.Release(t.Context(), 0); err != nil {
			t.Errorf("Release again: %v", err)
		}
		second := mustAcquire(t, b, 0)
		wantMS(t, "floor", second.Floor(), used+1)
		if second.Limit() < used+10_000 {
			t.Errorf("limit\nhave: %d\nwant: at least %d", second.Limit(), used+10_000)
		}
	})
}

// Nothing used: the next begins where the lease did, never below.
func TestLease_releaseUnused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(workeridtest.Memory)
		first := mustAcquire(t, newAssigner(t, m, nil), 0)
		time.Sleep(time.Second)
		if err := first.Release(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		wantMS(t, "floor", mustAcquire(t, newAssigner(t, m, nil), 0).Floor(), first.Floor())
	})
}

// A released lease leaves no goroutine, even while its assigner is open.
func TestLease_releaseEndsTheRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(workeridtest.Memory)
		s := newSlowStore(m.Open(), 0)
		a := workerid.Assign(t, s, workerid.Config{})
		l := mustAcquire(t, a, 0)
		if err := l.Release(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		calls := s.calls()
		time.Sleep(time.Minute)
		if n := s.calls() - calls; n != 0 {
			t.Errorf("calls of the store after Release\nhave: %d\nwant: 0", n)
		}
	})
}
