//go:build race

package uuid

// The race detector allocates.
func init() { raceEnabled = true }
