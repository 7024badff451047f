package machine

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// vmClockFile is a file with the device's memory in it.
func vmClockFile(t *testing.T, flags uint64, change func([]byte) []byte) (path string, set func(at int, value uint64)) {
	t.Helper()
	memory := make([]byte, os.Getpagesize())
	copy(memory, vmClockMagic)
	memory[vmClockVersion] = 1
	binary.LittleEndian.PutUint64(memory[vmClockFlags:], flags)
	path = filepath.Join(t.TempDir(), "vmclock0")
	if err := os.WriteFile(path, change(memory), 0o600); err != nil {
		t.Fatal(err)
	}
	return path, func(at int, value uint64) {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteAt(binary.LittleEndian.AppendUint64(nil, value), int64(at)); err != nil {
			t.Fatal(err)
		}
	}
}

func same(b []byte) []byte { return b }

func TestMapVMClock_followsTheCounter(t *testing.T) {
	for name, c := range map[string]struct {
		flags           uint64
		counts, ignored int
	}{
		"with a generation":    {vmClockHasGeneration | 1, vmClockGeneration, vmClockDisruption},
		"without a generation": {1, vmClockDisruption, vmClockGeneration},
	} {
		t.Run(name, func(t *testing.T) {
			path, set := vmClockFile(t, c.flags, same)
			counter := mapVMClock(path)
			if counter == nil {
				t.Fatal("have: none\nwant: a counter")
			}
			before := counter.Load()
			set(c.ignored, 77)
			if counter.Load() != before {
				t.Errorf("byte %d counts", c.ignored)
			}
			set(c.counts, before+1)
			if counter.Load() == before {
				t.Errorf("byte %d does not count", c.counts)
			}
		})
	}
}

func TestMapVMClock_isNothingElse(t *testing.T) {
	for name, change := range map[string]func([]byte) []byte{
		"another magic":   func(b []byte) []byte { b[0] = 'X'; return b },
		"another version": func(b []byte) []byte { b[vmClockVersion] = 2; return b },
		"short":           func(b []byte) []byte { return b[:vmClockEnd-1] },
		"empty":           func([]byte) []byte { return nil },
	} {
		path, _ := vmClockFile(t, vmClockHasGeneration, change)
		if mapVMClock(path) != nil {
			t.Errorf("%s: it is taken for a VMClock", name)
		}
	}
	if mapVMClock(filepath.Join(t.TempDir(), "none")) != nil {
		t.Error("a missing file is taken for a VMClock")
	}
}

func TestIdentity_staysAndHasTheStartTime(t *testing.T) {
	first := Identity()
	if first == "" || first != Identity() {
		t.Errorf("have: %q, then %q\nwant: one that stays", first, Identity())
	}
	boot, start, _ := strings.Cut(first, " ")
	if len(boot) != 36 || start == "" || start == "0" {
		t.Errorf("have: %q\nwant: a boot id and a start time", first)
	}
}

func TestStartTime_nameWithParentheses(t *testing.T) {
	stat := "7870 (a) b (c) R 7862 7862 17991 0 -1 4194304 99 0 0 0 0 0 0 0 20 0 1 0 1282791 3133440 407"
	if have := startTime([]byte(stat)); have != "1282791" {
		t.Errorf("have: %s\nwant: 1282791", have)
	}
	if have := startTime([]byte("1 (x) R")); have != "" {
		t.Errorf("have: %s\nwant: nothing", have)
	}
}
