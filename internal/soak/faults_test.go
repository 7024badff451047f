package soak

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// fault does something bad to a process, and makes it good again before it
// returns: faults of different processes do not overlap, except that a cut
// hits all of them now and then.
func (k *soak) fault(s *slot) {
	switch n := k.rng.IntN(18); {
	case n < 3:
		k.restart(s, "killed", s.kill, 0)
	case n < 4:
		k.restart(s, "killed, clock back", s.kill, -time.Hour)
	case n < 5:
		k.restart(s, "killed, clock ahead", s.kill, time.Hour)
	case n < 7:
		// To this clock all leases have run out: it takes a live holder's.
		k.restart(s, "usurper", s.kill, 2*lease+rand.N(lease))
	case n < 9:
		k.restart(s, "closed", s.quit, 0)
	case n < 11:
		k.stop(s)
	case n < 13:
		k.step(s)
	case n < 14:
		k.cut(k.slots...)
	default:
		k.cut(s)
	}
}

func (k *soak) restart(s *slot, name string, end func(), clockOff time.Duration) {
	if s.ahead {
		// Killed, it would leave a worker id that is not free for an hour, and
		// soon there would be none.
		name, end = "closed", s.quit
	}
	k.faults[name]++
	end()
	k.must(s.start(clockOff))
}

// stop pauses a process for a part of its lease, or well beyond it.
func (k *soak) stop(s *slot) {
	k.faults["stopped"]++
	s.signal(syscall.SIGSTOP)
	k.wait(time.Duration(k.rng.Int64N(int64(2 * lease))))
	s.signal(syscall.SIGCONT)
}

// step moves a running process's clock.
func (k *soak) step(s *slot) {
	k.faults["clock stepped"]++
	steps := []time.Duration{-time.Hour, time.Hour, -3 * time.Second, 3 * time.Second, -50 * time.Millisecond, 50 * time.Millisecond}
	s.step(steps[k.rng.IntN(len(steps))])
}

// cut takes the store away for a part of the lease, or well beyond it.
func (k *soak) cut(slots ...*slot) {
	away := time.Duration(k.rng.Int64N(int64(2 * lease)))
	if slots[0].proxy == nil {
		k.lockFiles(away)
		return
	}
	m := []mode{refusing, holding}[k.rng.IntN(2)]
	k.faults[map[mode]string{refusing: "cut off", holding: "held up"}[m]] += len(slots)
	for _, s := range slots {
		s.proxy.set(m)
	}
	k.wait(away)
	for _, s := range slots {
		s.proxy.set(passing)
	}
}

// lockFiles is what takes the store away that has no server: a process that
// stands still with all its locks.
func (k *soak) lockFiles(away time.Duration) {
	k.faults["locked"]++
	names, err := filepath.Glob(filepath.Join(k.where, "*", "*.lock"))
	k.must(err)
	for _, name := range names {
		f, err := os.Open(name)
		k.must(err)
		_ = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		defer f.Close()
	}
	k.wait(away)
}
