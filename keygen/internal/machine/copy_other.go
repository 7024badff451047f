//go:build !linux

package machine

import "time"

func identity() string { return "" }

func uptime() (time.Duration, bool) { return 0, false }
