package leaf

import (
	"context"
	"database/sql"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// benchGenerator never asks a database for long: its segments are as large as
// they may be.
func benchGenerator(b *testing.B) *generator {
	g, s := newFake(b, maxStep, config{MaxStep: maxStep})
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
		b.ResetTimer()
		inParallel(b, 16, b.N, func() error {
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

// inParallel does times times do, in n goroutines.
func inParallel(b *testing.B, n, times int, do func() error) {
	var wg sync.WaitGroup
	for i := range n {
		times := (times + i) / n
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

// BenchmarkFetch claims segments through 16 connections, all of them of one
// row: by this package's statement, and by Leaf's transaction. The two take
// turns, so that what else the machine does falls on both.
func BenchmarkFetch(b *testing.B) {
	const conns, each = 16, 20 // fetches of each connection in a turn
	dsn, _ := leafDatabase(b, 1, 1000)
	c, err := config{Key: "order", DSN: dsn}.withDefaults()
	if err != nil {
		b.Fatal(err)
	}
	store, err := newSQLStore(c, conns)
	if err != nil {
		b.Fatal(err)
	}
	defer store.close()
	ours := func() error { _, err := store.claim(b.Context(), 1000, 1); return err }
	theirs := benchLeaf(b, dsn, conns)
	var spent [2]time.Duration
	for b.Loop() {
		for i, fetch := range []func() error{ours, theirs} {
			began := time.Now()
			inParallel(b, conns, conns*each, fetch)
			spent[i] += time.Since(began)
		}
	}
	fetches := float64(b.N * conns * each)
	b.ReportMetric(fetches/spent[0].Seconds(), "fetches/s")
	b.ReportMetric(fetches/spent[1].Seconds(), "Leaf's/s")
	b.ReportMetric(spent[1].Seconds()/spent[0].Seconds(), "times-Leaf's")
	b.ReportMetric(0, "ns/op")
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
