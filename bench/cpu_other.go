//go:build !unix

package bench

import "time"

// ProcessorTime returns 0, because this system isn't supported. The cores of a load are then 0.
func ProcessorTime() time.Duration { return 0 }
