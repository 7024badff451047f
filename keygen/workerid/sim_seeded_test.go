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

func (b seededRule) steps() int {
	if b.kind.failovers {
		return failoverSteps
	}
	return simSteps
}

// worlds is the number of worlds in which the bug must be found. Bugs of failovers are rare.
func (b seededRule) worlds() int {
	if b.kind.failovers {
		return 6000
	}
	return 3000
}
