package rewrite

import (
	"fmt"
	"strings"
	"testing"

	"github.com/shardkey/shardkey/internal/sqltoken"
)

// rowsText is an INSERT of literal rows of about 60 bytes, at least size long.
func rowsText(size int) string {
	var b strings.Builder
	b.WriteString("INSERT INTO t (a, s) VALUES ")
	for i := 0; b.Len() < size; i++ {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "(%d, 'a row of some sixty bytes, it''s no. %08d')", i, i)
	}
	return b.String()
}

func benchmarkOptions() Options {
	table := &Table{Key: "id"}
	return Options{Table: func(_, name string) *Table {
		if name != "t" {
			return nil
		}
		return table
	}}
}

func benchmarkKeys(p *Plan) Keys {
	keys := Keys{Ints: make([]int64, p.NumKeys)}
	for i := range keys.Ints {
		keys.Ints[i] = 1_000_000_000_000_000_000 + int64(i)
	}
	return keys
}

func BenchmarkScan(b *testing.B) {
	for name, text := range map[string]string{
		"SELECT":  "SELECT id, name FROM users WHERE id = ? AND deleted = 0 ORDER BY id LIMIT 10",
		"comment": "/* traceparent='00-5bd66ef5095369c7b0d1f8f4bd33716a-c532cb4098ac3dd2-01' */ SELECT id FROM users WHERE id = ?",
		"INSERT":  "INSERT INTO t (a) VALUES (?)",
		"SET":     "SET NAMES utf8mb4",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				sqltoken.Scan(text, true)
			}
		})
	}
}

// BenchmarkParse plans statements that aren't cached.
func BenchmarkParse(b *testing.B) {
	for _, c := range []struct{ name, text string }{
		{"one row", "INSERT INTO t (user_id, amount, note) VALUES (?, ?, ?)"},
		{"1000 placeholders", "INSERT INTO t (a, s) VALUES " + strings.Repeat("(?, ?), ", 499) + "(?, ?)"},
		{"1000 rows", rowsText(60 << 10)},
		{"1 MB", rowsText(1 << 20)},
		{"4 MB", rowsText(4 << 20)},
		{"16 MB", rowsText(16 << 20)},
		{"16 MB without rule", strings.Replace(rowsText(16<<20), "INTO t", "INTO free", 1)},
	} {
		opts := benchmarkOptions()
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse(c.text, opts); err != nil {
					b.Fatal(err)
				}
			}
			perByte(b, c.text)
		})
	}
}

// BenchmarkLiteralText plans a statement and writes the keys into it.
func BenchmarkLiteralText(b *testing.B) {
	for _, mb := range []int{1, 4, 16} {
		text, opts := rowsText(mb<<20), benchmarkOptions()
		plan, err := Parse(text, opts)
		if err != nil {
			b.Fatal(err)
		}
		keys := benchmarkKeys(plan)
		b.Run(fmt.Sprintf("%d MB", mb), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				plan, err := Parse(text, opts)
				if err != nil {
					b.Fatal(err)
				}
				plan.literal(&keys)
			}
			perByte(b, text)
		})
	}
}

func perByte(b *testing.B, text string) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(text)), "ns/byte")
}
