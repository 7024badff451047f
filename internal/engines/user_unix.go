//go:build unix

package engines

import "syscall"

// asUser starts a process with the user and group of this ID.
func asUser(id uint32) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: id, Gid: id}}
}
