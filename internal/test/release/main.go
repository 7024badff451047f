// Command release releases the modules of this repository. It runs in the root directory:
//
//	go run ./internal/test/release commit v0.1.0
//	go run ./internal/test/release tidy
//
// The first runs make test, commits the version and prints the tags to push. The second
// reports each go.mod and go.sum that isn't as go mod tidy leaves it; with -w it writes them.
package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	r, err := open(".")
	if err != nil {
		return err
	}
	switch {
	case len(args) == 2 && args[0] == "commit":
		if err := r.ready(args[1]); err != nil {
			return err
		}
		if err := r.test(); err != nil {
			return err
		}
		if err := r.commit(args[1], time.Now().UTC()); err != nil {
			return err
		}
		return r.printTags(os.Stdout, args[1])
	case slices.Equal(args, []string{"tidy"}):
		return r.tidy(false)
	case slices.Equal(args, []string{"tidy", "-w"}):
		return r.tidy(true)
	}
	return errors.New("usage: release commit VERSION | tidy [-w]")
}
