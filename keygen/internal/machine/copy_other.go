//go:build !linux

package machine

func identity() string { return "" }
