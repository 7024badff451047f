//go:build !unix

package bench

import "time"

// ProcessorTime is not known here; the cores of a load are then zero.
func ProcessorTime() time.Duration { return 0 }
