package segment

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

func TestSegment_take(t *testing.T) {
	tests := []struct {
		name string
		used int64
		n    int64
		want int64
		ok   bool
	}{
		{"one of a fresh one", 0, 1, 0, true},
		{"the last one", 9, 1, 9, true},
		{"one too many", 10, 1, 0, false},
		{"all at once", 0, 10, 0, true},
		{"the rest", 7, 3, 7, true},
		{"more than the rest", 7, 4, 0, false},
		{"several of a segment asked beyond its end", 15, 2, 0, false},
		{"more than any segment", 0, 1 << 62, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSegment(run{100, 10, 1})
			s.used.Store(tt.used)
			offset, ok := s.take(tt.n)
			if ok != tt.ok || ok && offset != tt.want {
				t.Errorf("\nhave: %d %v\nwant: %d %v", offset, ok, tt.want, tt.ok)
			}
		})
	}
}

// Callers in a tight loop take one number or several. Their total must equal the size of the
// segment and the count of retire. A duplicate would increase it.
func TestSegment_givesEachNumberOnce(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8))
	for _, most := range []int64{1, 3} {
		for _, early := range []bool{false, true} {
			s := newSegment(run{1, 1 << 22, 1})
			var given, retired atomic.Int64
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					own := int64(0)
					for n, calls := most, 0; ; n, calls = 1+n%most, calls+1 {
						if early && i == 0 && calls == 1000 {
							retired.Store(s.retire())
						}
						if _, ok := s.take(n); !ok {
							if early && i == 0 && calls < 1000 {
								retired.Store(s.retire()) // the others were faster
							}
							given.Add(own)
							return
						}
						own += n
					}
				})
			}
			wg.Wait()
			have := given.Load()
			if early && have != retired.Load() {
				t.Errorf("up to %d at a time\nhave: %d given\nwant: %d, as retire counted", most, have, retired.Load())
			}
			if !early && (have > s.count || have < s.count-8*most) {
				t.Errorf("up to %d at a time\nhave: %d given\nwant: the segment's %d, but for the last few", most, have, s.count)
			}
		}
	}
}
