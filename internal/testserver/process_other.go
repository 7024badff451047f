//go:build !linux

package testserver

import "syscall"

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// stopped cannot be told here.
func stopped(int) bool { return true }
