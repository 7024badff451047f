package testserver

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

func setAttributes(a *syscall.SysProcAttr) { a.Setpgid, a.Pdeathsig = true, syscall.SIGKILL }

// stopped tells whether SIGSTOP has reached every thread of the process, which
// takes it a moment: until then some may still answer.
func stopped(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	for _, file := range threads {
		stat, err := os.ReadFile(file)
		// The state is behind the name in brackets, which may hold brackets.
		_, state, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
		if err == nil && !bytes.HasPrefix(state, []byte("T")) {
			return false
		}
	}
	return true
}
