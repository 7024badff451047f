package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/spi"
)

// stepper is a clock that does something in place of each sleep, and ends with the
// last.
type stepper struct {
	still
	steps []func()
}

func (s *stepper) Sleep(ctx context.Context, d time.Duration) error {
	if len(s.steps) == 0 {
		return context.Canceled
	}
	step := s.steps[0]
	s.steps = s.steps[1:]
	s.now = s.now.Add(d)
	step()
	return nil
}

// watched runs workers -watch on a directory of records, with changes between
// the looks.
func watched(t *testing.T, terminal bool, args ...string) (stdout, stderr string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "orders"), os.DirFS(filepath.Join("testdata", "workers", "orders"))); err != nil {
		t.Fatal(err)
	}
	rule, err := os.ReadFile(filepath.Join("testdata", "workers.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	file := write(t, strings.ReplaceAll(string(rule), "path: workers", "path: "+dir))
	record := func(name, text string) func() {
		return func() {
			if err := os.WriteFile(filepath.Join(dir, "orders", name), []byte(text), 0o600); err != nil {
				t.Error(err)
			}
		}
	}
	clock := &stepper{still: still{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}}
	clock.steps = []func(){
		func() {}, // nothing happens
		record("0005.json", `{"shardkey":1,"owner":"n","reserved_until":1767323055000,"holder":"new\u001b[31m pid 2","since":1767323049000}`),
		func() {
			if err := os.Rename(filepath.Join(dir, "orders"), filepath.Join(dir, "gone")); err != nil {
				t.Error(err)
			}
			record("../orders", "a file")()
		},
		func() {}, // still away
	}
	var out, errs bytes.Buffer
	p := newProgram(strings.NewReader(""), &out, &errs, clock)
	p.terminal = terminal
	if status := p.run(t.Context(), append([]string{"workers", "-rule", file, "-watch", "snowflake"}, args...)); status != 0 {
		t.Errorf("have: status %d\nwant: 0, as it was interrupted", status)
	}
	return strings.ReplaceAll(out.String(), dir, "DIR"), errs.String()
}

// Where no terminal shows it, a line is printed for each change, and one for a store
// that is away.
func TestWorkers_watchChanges(t *testing.T) {
	stdout, stderr := watched(t, false)
	const want = `2026-01-02T03:04:05.000Z FILE DIR namespace=orders worker id 0: held orders-7d4 pid 1
2026-01-02T03:04:05.000Z FILE DIR namespace=orders worker id 1: free orders-7d5 pid 1
2026-01-02T03:04:05.000Z FILE DIR namespace=orders worker id 2: expired orders-7d6 pid 4711
2026-01-02T03:04:05.000Z FILE DIR namespace=orders worker id 3: ahead build-1 pid 99
2026-01-02T03:04:05.000Z FILE DIR namespace=orders worker id 4: unknown
2026-01-02T03:04:09.000Z FILE DIR namespace=orders worker id 5: held new�[31m pid 2
`
	if stdout != want {
		t.Errorf("have:\n%s\nwant:\n%s", stdout, want)
	}
	if strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "generator snowflake") {
		t.Errorf("have: %s\nwant: one line for the store that is away", stderr)
	}
}

func TestWorkers_watchRedraws(t *testing.T) {
	stdout, _ := watched(t, true)
	if n := strings.Count(stdout, "\x1b[H\x1b[2JFILE"); n != 3 || strings.Count(stdout, "new�[31m pid 2") != 1 {
		t.Errorf("%d looks that clear the screen\nhave: %q\nwant: 3", n, stdout)
	}
}

// With -o json each look is an object on a line, as is each look that failed.
func TestWorkers_watchJSON(t *testing.T) {
	stdout, stderr := watched(t, true, "-o", "json")
	if stderr != "" || strings.Contains(stdout, "\x1b") {
		t.Errorf("have: %q, %s", stdout, stderr)
	}
	var looks []workerStore
	failed := 0
	for line := range strings.Lines(stdout) {
		var v struct {
			workerStore
			Error string
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		if v.Error != "" {
			failed++
			continue
		}
		looks = append(looks, v.workerStore)
	}
	if len(looks) != 3 || failed != 2 || len(looks[0].Workers) != 5 || len(looks[2].Workers) != 6 || looks[2].Generators[0].Free != looks[0].Generators[0].Free-1 {
		t.Errorf("%d looks, %d failed\nhave: %+v", len(looks), failed, looks)
	}
	if w := looks[0].Workers[0]; w.Host != "orders-7d4" || w.PID != 1 {
		t.Errorf("have: %+v\nwant: its host and process", w)
	}
}

// A reader that goes away ends the watch.
func TestWorkers_watchWithoutReader(t *testing.T) {
	clock := &stepper{steps: make([]func(), 1)}
	var errs bytes.Buffer
	p := newProgram(strings.NewReader(""), fullDisk{}, &errs, clock)
	if status := p.run(t.Context(), []string{"workers", "-watch", "-rule", "testdata/rule.yaml"}); status != statusError || len(clock.steps) != 1 {
		t.Errorf("have: status %d, %d steps left", status, len(clock.steps))
	}
}

// Ctrl-C ends a watch, and is no error.
func TestWorkers_interrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := newProgram(strings.NewReader(""), io.Discard, io.Discard, spi.SystemClock)
	if status := p.run(ctx, []string{"workers", "-watch", "-rule", "testdata/workers.yaml"}); status != 0 {
		t.Errorf("have: status %d\nwant: 0", status)
	}
}
