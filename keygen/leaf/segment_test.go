package leaf

import (
	"sync"
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
			s := &segment{first: 100, size: 10}
			s.used.Store(tt.used)
			offset, ok := s.take(tt.n)
			if ok != tt.ok || ok && offset != tt.want {
				t.Errorf("\nhave: %d %v\nwant: %d %v", offset, ok, tt.want, tt.ok)
			}
		})
	}
}

// A wish that is too large leaves what is left to smaller ones.
func TestSegment_takeWastesNothing(t *testing.T) {
	s := &segment{size: 10}
	s.take(6)
	if _, ok := s.take(5); ok {
		t.Fatal("5 of 4 were given")
	}
	if offset, ok := s.take(4); !ok || offset != 6 {
		t.Errorf("\nhave: %d %v\nwant: 6 true", offset, ok)
	}
	if s.left() != 0 {
		t.Errorf("\nhave: %d left\nwant: 0", s.left())
	}
}

// What retire counts is what was given, while others go on taking.
func TestSegment_retire(t *testing.T) {
	const goroutines, size = 16, 10_000
	s := &segment{size: size}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var taken, retired int64
	for i := range goroutines {
		wg.Go(func() {
			var own int64
			for j := range int64(size / goroutines) {
				n := 1 + (j+int64(i))%3
				if _, ok := s.take(n); ok {
					own += n
				}
				if i == 0 && j == 100 {
					retired = s.retire()
				}
			}
			mu.Lock()
			taken += own
			mu.Unlock()
		})
	}
	wg.Wait()
	if taken != retired {
		t.Errorf("\nhave: %d given\nwant: %d, what retire counted", taken, retired)
	}
}
