package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// A command shows its steps once it has taken two seconds, and nothing after its end.
func TestProgress(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps []time.Duration
		want  string
	}{
		{"fast", []time.Duration{time.Second, time.Second / 2}, ""},
		{"slow", []time.Duration{3 * time.Second, time.Second}, "a b"},
		{"a slow second step", []time.Duration{time.Second, 3 * time.Second}, "b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var have []string
				p := &progress{warn: func(step string) { have = append(have, step) }, clock: spi.SystemClock}
				for i, takes := range c.steps {
					p.step(string(rune('a' + i)))
					time.Sleep(takes)
				}
				p.stop()
				time.Sleep(time.Minute)
				if have := strings.Join(have, " "); have != c.want {
					t.Errorf("have: %q\nwant: %q", have, c.want)
				}
			})
		})
	}
}
