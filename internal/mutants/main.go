// Command mutants takes out, one at a time, the rules that unique keys rest on,
// and shows which test notices each:
//
//	go run ./internal/mutants
//	go run ./internal/mutants -run 'snowflake.*word'
//	go run ./internal/mutants -run ring -all
//
// A mutant is a change of a few characters, in the files beside this one. It is
// given to go test as an overlay: no file of the tree changes. The tests that a
// mutant names are run over it until the first one fails; with -all every test of
// the package. First they must all pass without a mutant.
//
// The servers that tests need are started, but those that the environment names
// (package testserver). Beside what each mutant came to, the end is a table, and the exit
// code is 0 when every mutant was killed, by a test that failed or by one that
// hung; 1 when one survived, 2 when one cannot be tried.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/shardkey/shardkey/internal/testserver"
)

func main() {
	run := flag.String("run", "", "try the mutants whose package and name match `regexp`")
	all := flag.Bool("all", false, "run all tests of a mutant's package, not only those that it names")
	list := flag.Bool("list", false, "list the mutants")
	timeout := flag.Duration("timeout", time.Minute, "for the tests of one mutant")
	flag.Parse()
	matches, err := regexp.Compile(*run)
	if err != nil || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "usage: mutants [-run regexp] [-all] [-list] [-timeout duration]")
		os.Exit(2)
	}
	chosen := choose(matches)
	if *list {
		for _, c := range chosen {
			fmt.Println(c)
		}
		return
	}
	code, err := try(chosen, runner{timeout: *timeout, all: *all})
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
	}
	os.Exit(code)
}

// chosen is a mutant that is tried.
type chosen struct {
	dir     string
	servers bool
	mutant  mutant
}

func (c chosen) String() string { return c.dir + ": " + c.mutant.what }

func choose(matches *regexp.Regexp) (some []chosen) {
	for _, g := range groups {
		for _, m := range g.mutants {
			if c := (chosen{g.dir, g.servers, m}); matches.MatchString(c.String()) {
				some = append(some, c)
			}
		}
	}
	return some
}

func try(some []chosen, r runner) (code int, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if r.root, err = findRoot(); err != nil {
		return 2, err
	}
	if r.dir, err = os.MkdirTemp("", "shardkey-mutants-"); err != nil {
		return 2, err
	}
	defer os.RemoveAll(r.dir)
	r.env = os.Environ()
	for _, c := range some {
		if c.servers {
			servers, err := testserver.StartAll()
			if err != nil {
				return 2, err
			}
			defer servers.Close()
			r.env = append(r.env, servers.Env()...)
			break
		}
	}
	fmt.Printf("%d mutants; their tests without them ...\n", len(some))
	if err := r.check(ctx, some); err != nil {
		return 2, err
	}
	outcomes := make([]outcome, len(some))
	for i, c := range some {
		outcomes[i] = r.try(ctx, c.dir, c.mutant)
		fmt.Printf("%3d/%d %s: %s\n", i+1, len(some), c, outcomes[i])
		if ctx.Err() != nil {
			return 2, ctx.Err()
		}
	}
	return report(some, outcomes), nil
}

// findRoot is the directory of the tree, in or below which the command runs.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.work here or above: run it in the source's tree")
		}
	}
	return "", err
}

func (o outcome) String() string {
	took := o.took.Round(100 * time.Millisecond)
	switch o.verdict {
	case killed:
		return fmt.Sprintf("killed by %s, %v", o.why, took)
	case byTime:
		return fmt.Sprintf("killed by time only: %s, %v", o.why, took)
	case survived:
		return fmt.Sprintf("SURVIVED, %v", took)
	case exempt:
		return "not tried: " + o.why
	}
	return "BROKEN: " + o.why
}

// report prints the table and returns the exit code.
func report(some []chosen, outcomes []outcome) int {
	count := map[verdict]int{}
	width := 0
	for i, c := range some {
		count[outcomes[i].verdict]++
		width = max(width, len([]rune(c.String())))
	}
	fmt.Println()
	for i, c := range some {
		why, _, _ := strings.Cut(outcomes[i].String(), "\n")
		fmt.Printf("%-*s  %s\n", width, c, why)
	}
	tried := len(some) - count[exempt]
	fmt.Printf("\n%d mutants: %d killed by a test that fails, %d by time only, %d survived, %d broken; not counted: %d that are exempt\n",
		tried, count[killed], count[byTime], count[survived], count[broken], count[exempt])
	switch {
	case count[broken] > 0:
		return 2
	case count[survived] > 0:
		return 1
	}
	return 0
}
