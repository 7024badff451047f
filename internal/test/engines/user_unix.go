//go:build unix

package engines

import "syscall"

// asUser returns attributes that start a process with this user and group ID.
func asUser(id uint32) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: id, Gid: id}}
}
