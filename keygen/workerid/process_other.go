//go:build !linux

package workerid

import "time"

func identity() string { return "" }

func fileSystem(string) (uint32, error) { return 0, nil }

func uptime() (time.Duration, bool) { return 0, false }
