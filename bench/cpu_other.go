//go:build !unix

package bench

import "time"

// processorTime is not known here; the cores of a load are then zero.
func processorTime() time.Duration { return 0 }
