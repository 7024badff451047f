package bench

import (
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Median returns the middle of the durations, which it sorts.
func Median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// Turn lets so many goroutines make keys of s together, so many in all, and returns
// what that took. Generators are opened anew in each turn, since peers have settings
// that hold for the whole process.
func Turn(s Subject, goroutines, keys int) (time.Duration, error) {
	next, done, err := s.Open()
	if err != nil {
		return 0, err
	}
	defer done()
	if err := next(); err != nil {
		return 0, err
	}
	errs := make([]error, goroutines)
	each := max(1, keys/goroutines)
	var ready, ended sync.WaitGroup
	start := make(chan struct{})
	for i := range goroutines {
		ready.Add(1)
		ended.Go(func() {
			ready.Done()
			<-start
			for range each {
				if err := next(); err != nil {
					errs[i] = err
					return
				}
			}
		})
	}
	ready.Wait()
	from := time.Now()
	close(start)
	ended.Wait()
	took := time.Since(from)
	for _, err := range errs {
		if err != nil {
			return 0, err
		}
	}
	return took * time.Duration(keys) / time.Duration(each*goroutines), nil
}

// Pin puts this process and the server of admin on one processor, and says whether
// it could. On a virtual machine a statement takes two or three times as long where
// two processors have to wake each other. It needs taskset, and a server of this
// machine whose process may be changed.
func Pin(cpu int, admin *sql.DB) string {
	if cpu < 0 {
		return "client and server not pinned"
	}
	if err := pin(cpu, admin); err != nil {
		return fmt.Sprintf("client and server not pinned to one processor (%v): the figures depend on where they run", err)
	}
	return fmt.Sprintf("client and server pinned to processor %d", cpu)
}

func pin(cpu int, admin *sql.DB) error {
	var file, dir, host string
	if err := admin.QueryRow("SELECT @@pid_file, @@datadir, @@hostname").Scan(&file, &dir, &host); err != nil {
		return err
	}
	if own, err := os.Hostname(); err != nil || own != host {
		return fmt.Errorf("the server is on %s", host)
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(dir, file)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for _, pid := range []string{strings.TrimSpace(string(text)), strconv.Itoa(os.Getpid())} {
		if out, err := exec.Command("taskset", "-apc", strconv.Itoa(cpu), pid).CombinedOutput(); err != nil {
			return fmt.Errorf("taskset: %w %s", err, strings.TrimSpace(string(out)))
		}
	}
	runtime.GOMAXPROCS(1) // more of them would wake each other
	return nil
}

// Machine says where figures were made.
func Machine() string {
	text := fmt.Sprintf("%s, %s/%s, %d processors, %s", time.Now().Format(time.DateOnly), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		one, _, _ := strings.Cut(string(load), " ")
		text += ", load " + one
	}
	return text
}
