package debug

import (
	"sync"
	"time"

	"github.com/shardkey/shardkey/driver"
)

// window is how far back the charts go.
const window = 5 * time.Minute

// minInterval is how far samples are apart at least, whoever looks how often.
const minInterval = time.Second

// sample is what a connector had counted at one moment.
type sample struct {
	at         time.Time
	generators map[string]int64 // keys by generator
	keys       int64
	waits      int64
	refused    int64
	generate   driver.Histogram // of all tables
}

// history holds the samples of the window, the oldest first. Many goroutines use it.
type history struct {
	mu      sync.Mutex
	samples []sample
}

// add adds a sample, and returns those of the window. Right after another one it is only
// returned.
func (h *history) add(now time.Time, s driver.Stats) []sample {
	next := newSample(now, s)
	h.mu.Lock()
	defer h.mu.Unlock()
	first := 0
	for first < len(h.samples) && now.Sub(h.samples[first].at) > window {
		first++
	}
	kept := append([]sample(nil), h.samples[first:]...)
	if n := len(kept); n == 0 || now.Sub(kept[n-1].at) >= minInterval {
		kept = append(kept, next)
		h.samples = kept
	}
	return kept
}

func newSample(now time.Time, s driver.Stats) sample {
	next := sample{at: now, generators: map[string]int64{}}
	for _, g := range s.Generators {
		next.waits += value(g.Health.Waits)
		if !g.Assigner {
			next.generators[g.Name] = keysOf(g, s.Tables)
		}
	}
	for _, t := range s.Tables {
		next.keys += t.Keys
		next.generate = sum(next.generate, t.Generate)
	}
	for _, n := range s.Refused {
		next.refused += n
	}
	return next
}

// sum adds a histogram to one that is zero or has the same bounds.
func sum(to, h driver.Histogram) driver.Histogram {
	if to.Counts == nil {
		to = driver.Histogram{Bounds: h.Bounds, Counts: make([]int64, len(h.Counts))}
	}
	to.Sum += h.Sum
	for i := range min(len(h.Counts), len(to.Counts)) {
		to.Counts[i] += h.Counts[i]
	}
	return to
}
