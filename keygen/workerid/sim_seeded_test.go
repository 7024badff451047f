//go:build seeded

package workerid

import "testing"

// This test is run by TestSimulation_findsSeededRules.
func TestSimulation_seededRules(t *testing.T) {
	for _, b := range seededRules {
		t.Run(b.name, func(t *testing.T) {
			if b.kind.failovers && testing.Short() {
				t.Skip("finding it takes some thousand worlds")
			}
			seeded = b.name
			defer func() { seeded = "" }()
			findRepeat(t, b.kind, b.steps(), b.worlds())
		})
	}
}
