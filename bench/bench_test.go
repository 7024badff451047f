package bench

import (
	"fmt"
	"testing"
	"time"
)

func BenchmarkBatch(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprint(n), Batch(n))
	}
}

// Every subject generates keys, so that no benchmark measures an error.
func TestSubjects(t *testing.T) {
	for _, list := range [][]Subject{Snowflakes(), Random(), Saturated()} {
		for _, s := range list {
			load, err := Saturate(s, 4, 5*time.Millisecond, true)
			if err != nil || load.Share <= 0 || load.Stall <= 0 {
				t.Errorf("%s\nhave: %+v, %v\nwant: keys", s.Name, load, err)
			}
		}
	}
}
