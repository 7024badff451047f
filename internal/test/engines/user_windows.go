package engines

import "syscall"

// asUser returns nil, because Windows has no numeric user IDs and no root.
func asUser(uint32) *syscall.SysProcAttr { return nil }
