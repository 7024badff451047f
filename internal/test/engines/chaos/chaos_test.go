//go:build linux

package chaos

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	testclock "github.com/shardkey/shardkey/internal/test/clock"
	"github.com/shardkey/shardkey/internal/test/must"
	testserver "github.com/shardkey/shardkey/internal/test/server"
	"github.com/shardkey/shardkey/keygen/snowflake"
	"github.com/shardkey/shardkey/spi"
)

var (
	duration = flag.Duration("duration", fromEnv(), "duration of the faults for each subject")
	only     = flag.String("subjects", "", "subjects to test, separated by commas (default all)")
	seed     = flag.Uint64("seed", 0, "seed for the choice of faults; with SHARDKEY_SOAK, 0 means a random one")
)

func fromEnv() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("SHARDKEY_SOAK")); err == nil && d > 0 {
		return d
	}
	return 4 * time.Second
}

func TestMain(m *testing.M) {
	if text := os.Getenv(childEnv); text != "" {
		if err := child(text); err != nil {
			report(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	os.Exit(m.Run())
}

// TestChaos tests all subjects, one after another.
func TestChaos(t *testing.T) {
	for _, s := range subjects {
		if *only == "" || slices.Contains(strings.Split(*only, ","), s.name) {
			t.Run(s.name, func(t *testing.T) {
				r := newRun(t, s)
				r.try(func() {
					var running sync.WaitGroup
					for _, a := range r.agents {
						running.Go(func() { a.work(*duration) })
					}
					running.Wait()
				})
			})
		}
	}
}

const (
	processes = 5
	// keysInAll limits the memory of a long run.
	keysInAll = 40_000_000
	// recovery is the time after which a process that generates no keys after a fault counts as
	// stuck. The documented time is far shorter, and is printed. A test machine may be slow.
	recovery = 10 * time.Minute
)

// run is the test of one subject.
type run struct {
	subject
	t      *testing.T
	server *testserver.Server // nil without a server
	where  string             // address of the server, or directory of FILE
	slots  []*slot
	agents []*agent
	// whole is read-locked while a process closes, because the store must then be available to
	// some process.
	whole sync.RWMutex
}

func newRun(t *testing.T, s subject) *run {
	start := *seed
	if start == 0 && os.Getenv("SHARDKEY_SOAK") != "" {
		start = rand.Uint64()
	}
	r := &run{subject: s, t: t, where: t.TempDir()}
	if s.server != nil {
		r.server = s.server(t)
		r.where = r.server.Addr()
	}
	t.Logf("seed %d", start)
	for i := range processes {
		one := &slot{errors: map[string]int{}}
		where := r.where
		if r.server != nil {
			one.proxy = startProxy(t, where)
			where = one.proxy.addr()
		}
		one.orders = s.orders(where, i)
		one.orders.Pause = max(2*time.Millisecond, time.Duration(float64(*duration)/keysInAll*25*processes))
		r.slots = append(r.slots, one)
	}
	r.agents = []*agent{newAgent(r, start, r.slots[:processes/2]), newAgent(r, start+1, r.slots[processes/2:])}
	return r
}

// try starts the processes, disturbs them, ends them, and checks their keys.
func (r *run) try(disturb func()) {
	for _, s := range r.slots {
		must.Do(r.t, s.start(0))
		r.t.Cleanup(func() { _ = s.cmd.Process.Kill() })
	}
	disturb()
	for _, s := range r.slots {
		s.quit()
	}
	r.check()
}

// check searches for duplicate keys and for undocumented errors.
func (r *run) check() {
	var all []int64
	for _, s := range r.slots {
		all = append(all, s.keys...)
		s.keys = nil
	}
	errors := countErrors(r.t, r.slots)
	slices.Sort(all)
	duplicates := 0
	for i := 1; i < len(all); i++ {
		if all[i] == all[i-1] {
			if duplicates++; duplicates <= 5 {
				r.t.Errorf("key %d twice: %s", all[i], r.parts(all[i]))
			}
		}
	}
	faults, n, slowest := map[string]int{}, 0, map[string]time.Duration{}
	for _, a := range r.agents {
		for name, times := range a.faults {
			faults[name] += times
			n += times
			slowest[name] = max(slowest[name], a.slowest[name])
		}
		if a.stuck != nil {
			r.t.Error(a.stuck)
		}
	}
	r.t.Logf("%s: keys=%d processes=%d faults=%d %s errors=%s duplicates=%d",
		r.name, len(all), processes, n, counts(faults), counts(errors), duplicates)
	r.t.Logf("%s: slowest time to the next key after a fault: %s", r.name, counts(slowest))
}

// countErrors returns how many errors of each kind processes had. Undocumented ones are the test's.
func countErrors(t *testing.T, slots []*slot) map[string]int {
	errors := map[string]int{}
	for _, s := range slots {
		for kind, n := range s.errors {
			errors[kind] += n
		}
		for _, strange := range s.strange {
			t.Errorf("not documented: %s", strange)
		}
	}
	return errors
}

// parts describes the worker ID and sequence of a key, with any epoch.
func (r *run) parts(key int64) string {
	p, err := snowflake.Decode(r.layout, snowflake.DefaultEpoch, key)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("worker %d, sequence %d", p.WorkerID, p.Sequence)
}

func counts[V any](m map[string]V) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		all = append(all, fmt.Sprintf("%s: %v", name, m[name]))
	}
	return "{" + strings.Join(all, ", ") + "}"
}

// slot is the place of a process. When the process ends, another one takes its place.
type slot struct {
	orders orders
	proxy  *proxy // nil for a store without a server

	cmd   *exec.Cmd
	stdin io.WriteCloser
	done  chan struct{} // closed after all output of the process was read
	off   time.Duration // error of its clock
	ahead bool          // its clock was far ahead at some time

	mu      sync.Mutex
	keys    []int64
	rows    []record // of a writer, instead of keys
	errors  map[string]int
	strange []string // undocumented errors and unexpected exits
	last    time.Time
}

// farOff is an error of a clock for which a test can't wait.
const farOff = time.Minute

// start starts a process whose clock has the error clockOff.
func (s *slot) start(clockOff time.Duration) error {
	o := s.orders
	o.Clock = clockOff
	s.off, s.ahead = clockOff, clockOff > farOff
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	s.cmd = exec.Command(os.Args[0])
	// With the race detector's default, each process would wait for a second at its end.
	s.cmd.Env = append(os.Environ(), childEnv+"="+string(text), "GORACE="+os.Getenv("GORACE")+" atexit_sleep_ms=0")
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		return err
	}
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		return err
	}
	var reading sync.WaitGroup
	reading.Go(func() { s.readKeys(stdout) })
	reading.Go(func() { s.readErrors(stderr) })
	done := make(chan struct{})
	s.done = done
	go func() { reading.Wait(); close(done) }()
	return nil
}

// readKeys reads a process' output: keys, or the rows of a writer.
func (s *slot) readKeys(r io.Reader) {
	in := bufio.NewReader(r)
	var b [16]byte
	size := 8
	if s.orders.Writer != nil {
		size = 16
	}
	for {
		if _, err := io.ReadFull(in, b[:size]); err != nil {
			return
		}
		first, second := int64(binary.BigEndian.Uint64(b[:])), int64(binary.BigEndian.Uint64(b[8:]))
		s.mu.Lock()
		if s.orders.Writer != nil {
			s.rows = append(s.rows, record{token: first, key: second})
		} else {
			s.keys = append(s.keys, first)
		}
		s.last = time.Now()
		s.mu.Unlock()
	}
}

func (s *slot) readErrors(r io.Reader) {
	for in := bufio.NewScanner(r); in.Scan(); {
		kind, message, _ := strings.Cut(in.Text(), "\t")
		s.mu.Lock()
		s.errors[kind]++
		if message == "" || kind == undocumented {
			s.strange = append(s.strange, in.Text())
		}
		s.mu.Unlock()
	}
}

func (s *slot) signal(sig syscall.Signal) { _ = s.cmd.Process.Signal(sig) }

// step changes the process' clock.
func (s *slot) step(d time.Duration) {
	s.off += d
	s.ahead = s.ahead || s.off > farOff
	s.tell("step " + d.String())
}

// tell sends a command. A process that has ended ignores it.
func (s *slot) tell(command string) { _, _ = fmt.Fprintln(s.stdin, command) }

// kill kills the process.
func (s *slot) kill() {
	s.signal(syscall.SIGKILL)
	<-s.done
	_ = s.cmd.Wait()
}

// quit ends the process regularly.
func (s *slot) quit() {
	s.tell("quit")
	<-s.done
	if err := s.cmd.Wait(); err != nil {
		s.mu.Lock()
		s.strange = append(s.strange, fmt.Sprintf("ended in good order, but: %v", err))
		s.mu.Unlock()
	}
	_ = s.stdin.Close()
}

// madeKeySince reports whether the process has generated a key since t.
func (s *slot) madeKeySince(t time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last.After(t)
}

func (s *slot) seenErrors() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprint(s.errors, s.strange)
}

// childEnv is the environment variable with a child's orders. A test binary with it runs as a
// child.
const childEnv = "SHARDKEY_CHAOS_CHILD"

// orders are a child's instructions at its start.
type orders struct {
	Generator part
	Assigner  part          // of the generator; Type is empty if there is none
	Clock     time.Duration // error of the child's clock
	Pause     time.Duration // average pause between two batches
	Writer    *writer       // writes rows, instead of generating keys
}

// part is a generator or an assigner of a rule.
type part struct {
	Type  string
	Props map[string]any
}

// child generates keys until it reads "quit" or the end of standard input. It writes each batch
// of keys to standard output in one write, eight bytes big-endian for each key. It writes a line
// to standard error for each error.
func child(text string) error {
	var o orders
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	if o.Writer != nil {
		return o.Writer.work()
	}
	clock := testclock.New(o.Clock)
	host := spi.Host{Clock: clock, Logger: slog.New(slog.DiscardHandler)}
	var all []any // closed at the end
	if o.Assigner.Type != "" {
		itsProps, err := spi.NewProps(o.Assigner.Props, host)
		if err != nil {
			return err
		}
		assigner, err := spi.NewWorkerIDAssigner(o.Assigner.Type, itsProps)
		if err != nil {
			return err
		}
		host.WorkerIDAssigner = func(string) (spi.WorkerIDAssigner, error) { return assigner, nil }
		all = append(all, assigner)
	}
	props, err := spi.NewProps(o.Generator.Props, host)
	if err != nil {
		return err
	}
	generator, err := spi.NewKeyGenerator(o.Generator.Type, props)
	if err != nil {
		return err
	}
	ctx, quit := context.WithCancel(context.Background())
	go obey(clock, quit)
	makeKeys(ctx, generator.(spi.Int64KeyGenerator), o.Pause)
	for _, c := range append([]any{generator}, all...) {
		if err := c.(io.Closer).Close(); err != nil {
			report(err)
		}
	}
	return nil
}

// obey reads the parent's commands: "step 1h", "quit".
func obey(clock *testclock.Clock, quit context.CancelFunc) {
	defer quit()
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		step, ok := strings.CutPrefix(in.Text(), "step ")
		d, err := time.ParseDuration(step)
		if !ok || err != nil {
			return
		}
		clock.Set(clock.Off() + d)
	}
}

func makeKeys(ctx context.Context, g spi.Int64KeyGenerator, pause time.Duration) {
	buffer := make([]byte, 0, 8*50) // written at once: small enough for an atomic write to a pipe
	for ctx.Err() == nil {
		keys := make([]int64, 1+rand.IntN(50))
		if err := g.GenerateInt64Keys(ctx, spi.Column{}, keys); err != nil {
			if ctx.Err() == nil {
				report(err)
			}
			_ = spi.SystemClock.Sleep(ctx, 10*time.Millisecond)
			continue
		}
		buffer = buffer[:0]
		for _, k := range keys {
			buffer = binary.BigEndian.AppendUint64(buffer, uint64(k))
		}
		if _, err := os.Stdout.Write(buffer); err != nil {
			return // the parent has ended
		}
		_ = spi.SystemClock.Sleep(ctx, rand.N(2*pause))
	}
}

func report(err error) { reportAs(kind(err), err) }

func reportAs(kind string, err error) {
	fmt.Fprintf(os.Stderr, "%s\t%s\n", kind, strings.ReplaceAll(err.Error(), "\n", " "))
}

// undocumented is the kind of errors that the documentation doesn't list.
const undocumented = "UNDOCUMENTED"

func kind(err error) string {
	for _, k := range []struct {
		err  error
		name string
	}{
		{spi.ErrLeaseLost, "lease-lost"}, {spi.ErrLeaseLimit, "lease-limit"}, {spi.ErrNoWorkerID, "no-worker-id"},
		{spi.ErrClockBack, "clock-back"}, {spi.ErrStore, "store"},
	} {
		if errors.Is(err, k.err) {
			return k.name
		}
	}
	return undocumented
}
