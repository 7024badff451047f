//go:build unix && !linux

package testserver

import "syscall"

func setAttributes(a *syscall.SysProcAttr) { a.Setpgid = true }

// stopped cannot be told here.
func stopped(int) bool { return true }
