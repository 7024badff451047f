package spi

import (
	"testing"
	"time"
)

// Bounds in the wrong order panic, also while the property isn't set.
func TestProps_bounds(t *testing.T) {
	p, err := NewProps(map[string]any{"set": "7", "long": "7s"}, Host{})
	if err != nil {
		t.Fatal(err)
	}
	for name, get := range map[string]func(){
		"Int":          func() { _, _ = p.Int("set", 1, 100, 5) },
		"Int, missing": func() { _, _ = p.Int("missing", 1, 100, 5) },
		"Duration":     func() { _, _ = p.Duration("long", time.Second, time.Minute, time.Second) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: have: no panic", name)
				}
			}()
			get()
		}()
	}
	if n, err := p.Int("set", 1, 7, 7); n != 7 || err != nil {
		t.Errorf("have: %d, %v\nwant: 7", n, err)
	}
}
