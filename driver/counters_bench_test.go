package driver

import "testing"

// BenchmarkCounters is what one INSERT of the short way counts: its key, and that its
// prepared statement was kept.
func BenchmarkCounters(b *testing.B) {
	var t tableCounts
	kept := keptStatements{total: new(keptTotal)}
	b.ReportAllocs()
	for b.Loop() {
		start := t.start()
		t.madeOne(start, nil)
		kept.hit()
	}
}
