//go:build !race

package workerid

const raceEnabled = false
