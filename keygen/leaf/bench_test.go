package leaf

import (
	"context"
	"database/sql"
	"math"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/shardkey/shardkey/spi"
)

// benchGenerator never asks a database for long: its segments are as large as
// they may be.
func benchGenerator(b *testing.B) *Generator {
	g, s := newFake(b, maxStep, Config{MaxStep: maxStep})
	mustReserve(b, g, 1)
	s.set(func(s *fakeStore) { s.maxID = min(s.maxID, math.MaxInt64/2) })
	return g
}

func BenchmarkKeyFromMemory(b *testing.B) {
	b.Run("alone", func(b *testing.B) {
		var g spi.Int64KeyGenerator = benchGenerator(b)
		key := make([]int64, 1)
		b.ReportAllocs()
		for b.Loop() {
			if err := g.GenerateInt64Keys(context.Background(), column, key); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("16 goroutines", func(b *testing.B) {
		var g spi.Int64KeyGenerator = benchGenerator(b)
		b.ReportAllocs()
		inParallel(b, 16, func() error {
			var key [1]int64
			return g.GenerateInt64Keys(context.Background(), column, key[:])
		})
	})
	b.Run("batch of 100", func(b *testing.B) {
		var g spi.Int64KeyGenerator = benchGenerator(b)
		keys := make([]int64, 100)
		for b.Loop() {
			if err := g.GenerateInt64Keys(context.Background(), column, keys); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100, "ns/key")
	})
}

// inParallel does b.N times do, in n goroutines.
func inParallel(b *testing.B, n int, do func() error) {
	var wg sync.WaitGroup
	b.ResetTimer()
	for i := range n {
		times := b.N / n
		if i < b.N%n {
			times++
		}
		wg.Go(func() {
			for range times {
				if err := do(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkFetch claims segments through 16 connections: this package's
// statement, and Leaf's transaction beside it.
func BenchmarkFetch(b *testing.B) {
	const conns = 16
	dsn, _ := leafDatabase(b, 1, 1000)
	c, err := Config{Key: "order", DSN: dsn}.withDefaults()
	if err != nil {
		b.Fatal(err)
	}
	ours, err := newSQLStore(c, conns)
	if err != nil {
		b.Fatal(err)
	}
	defer ours.close()
	theirs := benchLeaf(b, dsn, conns)
	b.Run("shardkey", func(b *testing.B) {
		inParallel(b, conns, func() error { _, err := ours.claim(b.Context(), 1000, 1); return err })
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "fetches/s")
	})
	b.Run("Leaf's transaction", func(b *testing.B) {
		inParallel(b, conns, theirs)
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "fetches/s")
	})
}

// benchLeaf is Leaf's fetch at its best: both statements are prepared once.
func benchLeaf(b *testing.B, dsn string, conns int) func() error {
	db := openDB(b, dsn)
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	update, err := db.Prepare("UPDATE leaf_alloc SET max_id = max_id + ? WHERE biz_tag = ?")
	if err != nil {
		b.Fatal(err)
	}
	query, err := db.Prepare("SELECT biz_tag, max_id, step FROM leaf_alloc WHERE biz_tag = ?")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { update.Close(); query.Close() })
	var last atomic.Int64
	return func() error {
		tx, err := db.Begin()
		if err != nil {
			return err
		}
		defer tx.Rollback()
		maxID, err := leafStatements(tx.Stmt(update), tx.Stmt(query))
		if err != nil {
			return err
		}
		last.Store(maxID)
		return tx.Commit()
	}
}

func leafStatements(update, query *sql.Stmt) (maxID int64, err error) {
	if _, err := update.Exec(1000, "order"); err != nil {
		return 0, err
	}
	var tag string
	var step int64
	err = query.QueryRow("order").Scan(&tag, &maxID, &step)
	return maxID, err
}
