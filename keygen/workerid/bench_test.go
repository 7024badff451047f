package workerid_test

import (
	"fmt"
	"testing"

	"github.com/shardkey/shardkey/internal/testserver"
	"github.com/shardkey/shardkey/keygen/workerid"
	"github.com/shardkey/shardkey/keygen/workerid/workeridtest"
)

// BenchmarkLimit measures the cost of a lease for each key.
func BenchmarkLimit(b *testing.B) {
	a := workerid.Assign(b, new(workeridtest.Memory).Open(), workerid.Config{})
	l, err := a.AcquireWorkerID(b.Context(), 0)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if l.Limit() == 0 {
			b.Fatal("no limit")
		}
	}
}

// BenchmarkCompareAndSet measures the cost of one renewal for its store.
func BenchmarkCompareAndSet(b *testing.B) {
	for _, c := range []struct {
		name string
		open func(testing.TB) workerid.Store
	}{
		{"FILE", func(t testing.TB) workerid.Store { return workerid.NewFileStore(t.TempDir(), "bench") }},
		{"SQL", func(t testing.TB) workerid.Store { return mustSQL(t, testserver.Database(t), "shardkey_worker") }},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := c.open(b)
			defer s.Close()
			prev := workerid.Record{}
			for i := 0; b.Loop(); i++ {
				next := workerid.Record{Owner: fmt.Sprint("owner-", i), ReservedUntil: int64(i) + 1}
				if ok, err := s.CompareAndSet(b.Context(), 0, prev, next); !ok || err != nil {
					b.Fatal(ok, err)
				}
				prev = next
			}
		})
	}
}
