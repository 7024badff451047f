//go:build !linux

package machine

import "sync/atomic"

func vmClock() *atomic.Uint64 { return nil }

func identity() string { return "" }
