package bench

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Times are the wall time of a turn, and the processor time that the client and the server used.
type Times struct{ Wall, Client, Server time.Duration }

// Processor returns the processor time of client and server, or 0 if the server's is unknown.
func (t Times) Processor() time.Duration {
	if t.Server == 0 {
		return 0
	}
	return t.Client + t.Server
}

// Meter adds up the times between Start and Stop. Its Times are valid after Stop.
type Meter struct {
	Times
	PID int // the server's process; 0 if it is unknown
}

// Start starts the meter.
func (m *Meter) Start() { m.add(-1) }

// Stop stops the meter.
func (m *Meter) Stop() { m.add(1) }

var began = time.Now()

// add adds the clocks' times, or subtracts them if sign is -1.
func (m *Meter) add(sign time.Duration) {
	m.Wall += sign * time.Since(began)
	m.Client += sign * ProcessorTime(0)
	if m.PID != 0 {
		m.Server += sign * ProcessorTime(m.PID)
	}
}

// Rounds runs the subjects in turn, each round in another order, and returns the times of each
// turn. A first round warms up.
func Rounds(rounds, subjects int, turn func(i int) (Times, error)) ([][]Times, error) {
	took := make([][]Times, subjects)
	order := rand.New(rand.NewPCG(1, 1))
	for round := range rounds + 1 {
		for _, i := range order.Perm(subjects) {
			t, err := turn(i)
			if err != nil {
				return nil, err
			}
			if round > 0 {
				took[i] = append(took[i], t)
			}
		}
	}
	return took, nil
}

// AtOnce calls f in that many goroutines.
func AtOnce(goroutines int, f func(i int) error) error {
	if goroutines == 1 {
		return f(0)
	}
	errs := make([]error, goroutines)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = f(i) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// ServerPID returns the process ID of the server of admin, which must run on this machine.
func ServerPID(admin *sql.DB) (int, error) {
	var file, dir, host string
	if err := admin.QueryRow("SELECT @@pid_file, @@datadir, @@hostname").Scan(&file, &dir, &host); err != nil {
		return 0, err
	}
	if own, err := os.Hostname(); err != nil || own != host {
		return 0, fmt.Errorf("the server is on another machine, %s", host)
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(text)))
}

// Pin pins this process and a server to one processor. On a virtual machine, a statement takes two
// or three times as long if two processors have to wake each other. Pin needs taskset, and the
// permission to change the server's process.
func Pin(cpu, server int) error {
	for _, pid := range []int{server, os.Getpid()} {
		out, err := exec.Command("taskset", "-apc", strconv.Itoa(cpu), strconv.Itoa(pid)).CombinedOutput()
		if err != nil {
			return fmt.Errorf("taskset: %w %s", err, strings.TrimSpace(string(out)))
		}
	}
	runtime.GOMAXPROCS(1) // with more threads, they would wake each other
	return nil
}

// Machine describes this machine and the Go version.
func Machine() string {
	text := fmt.Sprintf("%s, %s/%s, %d processors, %s",
		time.Now().Format(time.DateOnly), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		one, _, _ := strings.Cut(string(load), " ")
		text += ", load " + one
	}
	return text
}
