package fill

import (
	"slices"
	"testing"
	"time"
)

func TestHistogram_buckets(t *testing.T) {
	var c Counts
	for _, d := range []time.Duration{0, 250, 251, time.Second, 5 * time.Second, 5*time.Second + 1, time.Hour} {
		c.generate.add(d)
	}
	have := c.Totals().Generate
	want := make([]int64, len(bounds)+1)
	want[0], want[1], want[10], want[11], want[12] = 2, 1, 1, 1, 2
	if !slices.Equal(have.Counts, want) || have.Sum != 502+11*time.Second+time.Hour {
		t.Errorf("have: %+v\nwant: %v", have, want)
	}
}

// Keys that no row gets are keys, too.
func TestCounts_totals(t *testing.T) {
	var c Counts
	c.inserted(1, 0)
	c.inserted(3, 2)
	c.notInserted(4)
	if have := c.Totals(); have.Statements != 2 || have.Rows != 4 || have.Keys != 10 {
		t.Errorf("have: %+v\nwant: 2 statements, 4 rows, 10 keys", have)
	}
}
