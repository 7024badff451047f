package workerid_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/keygen/workerid/workeridtest"
	"github.com/shardkey/shardkey/spi"
)

// A store that forgets breaks the promise. What is left is to end it soon: the
// holder finds out at its next renewal, and makes no key of the lost worker id
// afterwards, whatever it had reserved.
func TestLease_forgottenByItsStoreEndsAtTheNextRenewal(t *testing.T) {
	for _, ring := range []int{1, 200} {
		synctest.Test(t, func(t *testing.T) {
			m := new(workeridtest.Memory)
			first := startGenerator(t, m, ring)
			mustKey(t, first)
			time.Sleep(100 * time.Millisecond)
			m.Put(0, workerid.Record{})
			forgotten := time.Now()
			second := startGenerator(t, m, ring)

			made := map[int64]bool{}
			twice, last := 0, time.Duration(0)
			for time.Since(forgotten) < 12*time.Second {
				for _, g := range []workerid.Snowflake{first, second} {
					key := mustKey(t, g)
					if made[key] {
						twice++
						last = time.Since(forgotten)
					}
					made[key] = true
				}
				time.Sleep(time.Millisecond)
			}
			t.Logf("ring %d: %d keys twice, the last after %v", ring, twice, last)
			if twice == 0 || last > 3*time.Second {
				t.Errorf("keys twice\nhave: %d, the last after %v\nwant: some, none after the renewal at 3s", twice, last)
			}
		})
	}
}

func startGenerator(t *testing.T, m *workeridtest.Memory, ring int) workerid.Snowflake {
	t.Helper()
	a := workerid.Assign(t, m.Open(), workerid.Config{})
	g, err := workerid.NewSnowflake(a, spi.Host{}, ring, map[string]any{"max-vibration-offset": "0", "epoch": "1999-01-01"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = g.Close()
		_ = a.Close()
	})
	return g
}

func mustKey(t *testing.T, g workerid.Snowflake) int64 {
	t.Helper()
	key, err := g.Next(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return key
}
