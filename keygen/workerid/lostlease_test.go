package workerid_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/keygen/workerid/workeridtest"
	"github.com/shardkey/shardkey/spi"
)

func TestLease_storeAwayKeepsTheLimitAndShowsInHealth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(workeridtest.Memory)
		a := newAssigner(t, m, nil)
		l := mustAcquire(t, a, 0)
		limit := l.Limit()
		cause := errors.New("connection refused")
		m.SetAway(cause)
		time.Sleep(4 * time.Second) // one renewal has failed
		synctest.Wait()
		wantMS(t, "limit", l.Limit(), limit)
		if h := a.Health(); !errors.Is(h.Err, cause) || !errors.Is(h.Err, spi.ErrStore) || h.LeaseLimit.UnixMilli() != limit || h.LeaseLength != 10*time.Second {
			t.Errorf("health before the limit\nhave: %+v\nwant: the store's error, and how long a lease is", h)
		}
		if err := l.Renew(t.Context(), limit); !errors.Is(err, cause) || !errors.Is(err, spi.ErrStore) {
			t.Errorf("Renew\nhave: %v\nwant: the store's error", err)
		}
		time.Sleep(time.Hour)
		wantMS(t, "limit after an hour", l.Limit(), limit)
		m.SetAway(nil)
		time.Sleep(3001 * time.Millisecond) // renew
		synctest.Wait()
		if h := a.Health(); h.Err != nil || l.Limit() <= nowMS() {
			t.Errorf("after the store came back\nhave: %v, limit %d\nwant: no error, a limit ahead of %d", h.Err, l.Limit(), nowMS())
		}
	})
}

// A process that slept past its limit finds its worker id taken over, starting
// at its limit, and takes another one.
func TestLease_takeoverAfterTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(workeridtest.Memory)
		late := new(shiftedClock)
		a, b := newAssigner(t, m, nil), newAssigner(t, m, late)
		old := mustAcquire(t, a, 0)
		limit := old.Limit()
		late.set(10 * time.Second) // to b's clock the lease has run out
		l := mustAcquire(t, b, 0)
		wantMS(t, "floor of the successor", l.Floor(), limit)
		if err := old.Renew(t.Context(), limit); !errors.Is(err, spi.ErrLeaseLost) {
			t.Errorf("Renew of the former owner\nhave: %v\nwant: spi.ErrLeaseLost", err)
		}
		if old.Limit() > old.Floor() {
			t.Errorf("limit of a lost lease\nhave: %d\nwant: none", old.Limit())
		}
		if h := a.Health(); *h.LeasesLost != 1 || h.Errors["lease-lost"] != 1 {
			t.Errorf("health\nhave: %+v\nwant: one lease lost", h)
		}
	})
}

// A renewal in the background finds out too, without being asked.
func TestLease_lostIsNoticedAtTheNextRenewal(t *testing.T) {
	for name, record := range map[string]workerid.Record{
		"another owner":  {Owner: "other", ReservedUntil: 1 << 50, Holder: "elsewhere pid 1"},
		"record removed": {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := new(workeridtest.Memory)
				l := mustAcquire(t, newAssigner(t, m, nil), 0)
				m.Put(0, record)
				time.Sleep(3 * time.Second)
				synctest.Wait()
				var lost *workerid.LeaseLostError
				if err := l.Renew(t.Context(), nowMS()); !errors.As(err, &lost) || lost.Found != record {
					t.Errorf("have: %v\nwant: a LeaseLostError that shows %v", err, record)
				}
			})
		})
	}
}

// What an operator reads of a lease's life, each line once.
func TestLease_logsItsLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(workeridtest.Memory)
		var log bytes.Buffer
		a := workerid.Assign(t, m.Open(), workerid.Config{Namespace: "orders", Logger: slog.New(slog.NewTextHandler(&log, nil))})
		m.SetAway(errors.New("away"))
		for range 2 {
			if _, err := a.AcquireWorkerID(t.Context(), 0); err == nil {
				t.Fatal("a worker id of a store that is away")
			}
		}
		m.SetAway(nil)
		l := mustAcquire(t, a, 0)
		m.SetAway(errors.New("away"))
		time.Sleep(time.Minute)
		m.SetAway(nil)
		time.Sleep(time.Minute)
		if err := l.Release(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		mustAcquire(t, a, 0)
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		want := []string{
			`level=ERROR msg="shardkey: no worker id could be leased; no keys are made until one is" namespace=orders error=`,
			`level=INFO msg="shardkey: worker id leased" namespace=orders worker_id=0 until=`,
			`level=WARN msg="shardkey: worker-id lease could not be renewed; keys continue to its limit" namespace=orders worker_id=0 until=`,
			`level=ERROR msg="shardkey: worker-id lease is at its limit; no keys are made until it is renewed" namespace=orders worker_id=0 until=`,
			`level=INFO msg="shardkey: worker-id lease renewed again" namespace=orders worker_id=0 until=`,
			`level=INFO msg="shardkey: worker id released" namespace=orders worker_id=0`,
			`level=INFO msg="shardkey: worker id leased" namespace=orders worker_id=0 until=`,
			`level=INFO msg="shardkey: worker id released" namespace=orders worker_id=0`,
		}
		have := strings.Split(strings.TrimSpace(log.String()), "\n")
		for i, line := range have {
			if i >= len(want) || !strings.Contains(line, want[i]) {
				t.Fatalf("line %d\nhave: %s\nwant: %s", i, log.String(), strings.Join(want, "\n"))
			}
		}
		if len(have) != len(want) {
			t.Errorf("have: %s\nwant: %d lines", log.String(), len(want))
		}
	})
}
