//go:build !linux

package workerid

import "time"

func identity() string { return "" }

func uptime() (time.Duration, bool) { return 0, false }
