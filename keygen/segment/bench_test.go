package segment

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/shardkey/shardkey/internal/test/must"
)

func BenchmarkLeafKeyFromMemory(b *testing.B) {
	// The segments are so large that fetches are rare.
	generator := func(b *testing.B) *generator {
		step := fmt.Sprint(largestStep)
		g, _ := newFake(b, "LEAF_SEGMENT", with(types[0].props, map[string]any{"min-step": step, "max-step": step}))
		mustKey(b, g)
		b.ReportAllocs()
		b.ResetTimer()
		return g
	}
	for _, n := range []int{1, 100} {
		b.Run(fmt.Sprintf("%d at a time", n), func(b *testing.B) {
			g, keys := generator(b), make([]int64, n)
			for b.Loop() {
				if err := g.GenerateInt64Keys(context.Background(), column, keys); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/key")
		})
	}
	b.Run("16 goroutines", func(b *testing.B) {
		g := generator(b)
		inParallel(16, func(i int) {
			for range (b.N + i) / 16 {
				var key [1]int64
				if err := g.GenerateInt64Keys(context.Background(), column, key[:]); err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}

// BenchmarkLeafFetch claims segments of one row on 16 connections: with this package's statement,
// and with Leaf's transaction, whose two statements are prepared once. The two take turns, so
// that other load affects both.
func BenchmarkLeafFetch(b *testing.B) {
	const conns, each = 16, 20 // fetches of each connection in a turn
	dsn, _ := leafAlloc.database(b)
	var ours, theirs []func() error
	for range conns {
		s := leafAlloc.generator(b, dsn, nil).servers[0]
		ours = append(ours, func() error {
			_, err := s.fetch(context.Background(), func(int64) int64 { return 1000 })
			return err
		})
		theirs = append(theirs, leafTransaction(b, dsn))
	}
	var spent [2]time.Duration
	for b.Loop() {
		for i, fetch := range [][]func() error{ours, theirs} {
			began := time.Now()
			inParallel(conns, func(j int) {
				for range each {
					if err := fetch[j](); err != nil {
						b.Error(err)
						return
					}
				}
			})
			spent[i] += time.Since(began)
		}
	}
	fetches := float64(b.N * conns * each)
	b.ReportMetric(fetches/spent[0].Seconds(), "fetches/s")
	b.ReportMetric(fetches/spent[1].Seconds(), "Leaf's/s")
	b.ReportMetric(spent[1].Seconds()/spent[0].Seconds(), "times-Leaf's")
	b.ReportMetric(0, "ns/op")
}

func leafTransaction(b *testing.B, dsn string) func() error {
	db := must.Open(b, "mysql", dsn)
	db.SetMaxOpenConns(1)
	update, err := db.Prepare("UPDATE leaf_alloc SET max_id = max_id + ? WHERE biz_tag = ?")
	if err != nil {
		b.Fatal(err)
	}
	query, err := db.Prepare("SELECT biz_tag, max_id, step FROM leaf_alloc WHERE biz_tag = ?")
	if err != nil {
		b.Fatal(err)
	}
	return func() error {
		tx, err := db.Begin()
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if _, err := tx.Stmt(update).Exec(1000, "order"); err != nil {
			return err
		}
		var tag string
		var maxID, step int64
		if err := tx.Stmt(query).QueryRow("order").Scan(&tag, &maxID, &step); err != nil {
			return err
		}
		return tx.Commit()
	}
}

// BenchmarkTicketFetch requests n numbers at a time from one server, without a buffer.
func BenchmarkTicketFetch(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			dsn, _ := tickets64.database(b)
			g := tickets64.generator(b, dsn, nil)
			keys := make([]int64, n)
			for b.Loop() {
				if err := g.GenerateInt64Keys(context.Background(), column, keys); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/key")
		})
	}
}
