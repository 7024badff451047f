package bench

import (
	"database/sql"
	"errors"
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

	"github.com/go-sql-driver/mysql"
)

// Median sorts the durations and returns the middle one.
func Median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// Rounds runs the subjects in turn, each round in another order, and returns the time of each
// turn. A first round warms up.
func Rounds(rounds, subjects int, turn func(i int) (time.Duration, error)) ([][]time.Duration, error) {
	took := make([][]time.Duration, subjects)
	for round := range rounds + 1 {
		for at := range subjects {
			i := (at + round) % subjects
			d, err := turn(i)
			if err != nil {
				return nil, err
			}
			if round > 0 {
				took[i] = append(took[i], d)
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

// Pin pins this process and the server of admin to one processor, and reports whether that was
// possible. On a virtual machine, a statement takes two or three times as long if two processors
// have to wake each other. Pin needs taskset, and a server on this machine with permission to
// change its process.
func Pin(cpu int, admin *sql.DB) string {
	if cpu < 0 {
		return "client and server not pinned"
	}
	if err := pin(cpu, admin); err != nil {
		return fmt.Sprintf("client and server not pinned to one processor (%v): "+
			"the figures depend on the processors that run them", err)
	}
	return fmt.Sprintf("client and server pinned to processor %d", cpu)
}

func pin(cpu int, admin *sql.DB) error {
	var file, dir, host string
	if err := admin.QueryRow("SELECT @@pid_file, @@datadir, @@hostname").Scan(&file, &dir, &host); err != nil {
		return err
	}
	if own, err := os.Hostname(); err != nil || own != host {
		return fmt.Errorf("the server is on another machine, %s", host)
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
	runtime.GOMAXPROCS(1) // with more threads, they would wake each other
	return nil
}

// Database creates an empty database with tables. It returns the DSN of the server with that
// database and more parameters.
func Database(admin *sql.DB, dsn, name, params string, tables ...string) (string, error) {
	queries := []string{"DROP DATABASE IF EXISTS " + name, "CREATE DATABASE " + name}
	for _, table := range tables {
		queries = append(queries, "CREATE TABLE "+name+"."+table)
	}
	for _, query := range queries {
		if _, err := admin.Exec(query); err != nil {
			return "", err
		}
	}
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return "", err
	}
	cfg.DBName = name
	dsn = cfg.FormatDSN()
	switch {
	case params == "":
		return dsn, nil
	case strings.Contains(dsn[strings.LastIndex(dsn, "/"):], "?"):
		return dsn + "&" + params, nil
	}
	return dsn + "?" + params, nil
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
