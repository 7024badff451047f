package testserver

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// process is a child process that is waited for from its start.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	err  error         // how it ended; valid after done
}

// startProcess starts cmd in a process group of its own, so that the
// terminal's ^C does not reach it before the tests have ended.
func startProcess(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, done: make(chan struct{})}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	setAttributes(cmd.SysProcAttr)
	started := make(chan error)
	go func() {
		// The kernel sends the parent-death signal when the thread that
		// forked ends: hold on to that thread for the child's life.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
	}()
	return p, <-started
}

// kill ends the process at once.
func (p *process) kill() error {
	_ = p.cmd.Process.Kill() // fails only when it has ended
	<-p.done
	return nil
}

// terminate asks the process to end, and kills it if it does not.
func (p *process) terminate() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	_ = p.cmd.Process.Signal(resumeSignal) // a paused one would not hear it
	select {
	case <-p.done:
		return nil
	case <-time.After(stopTimeout):
		return errors.Join(fmt.Errorf("did not end within %v of SIGTERM, and was killed", stopTimeout), p.kill())
	}
}

// awaitStopped returns when SIGSTOP has taken effect.
func (p *process) awaitStopped() error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(stopTimeout)
	for !stopped(p.cmd.Process.Pid) {
		select {
		case <-tick.C:
		case <-p.done:
			return fmt.Errorf("it ended instead of pausing: %v", p.err)
		case <-deadline:
			return fmt.Errorf("it still runs %v after SIGSTOP", stopTimeout)
		}
	}
	return nil
}
