package debug

import "time"

// SetNow gives a handler another clock.
func SetNow(h any, now func() time.Time) { h.(*handler).now = now }
