package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
)

// stdinName stands for standard input where a file's name is shown.
const stdinName = "<stdin>"

// maxInput bounds a text that is read whole from standard input, in bytes.
const maxInput = 64 << 20

// isPiped reports whether standard input is a pipe or a file: not a terminal,
// nor /dev/null.
func isPiped(stdin *os.File) bool {
	info, err := stdin.Stat()
	return err == nil && (info.Mode().IsRegular() || info.Mode()&os.ModeNamedPipe != 0)
}

// arguments are those of the command line; where there are none and something
// is piped into the program, "-", which is standard input.
func (p *program) arguments(args []string) []string {
	if len(args) == 0 && p.piped {
		return []string{"-"}
	}
	return args
}

// readText reads all of standard input, which can be done once.
func (p *program) readText() ([]byte, error) {
	if p.read {
		return nil, usagef("standard input is asked for twice")
	}
	p.read = true
	text, err := io.ReadAll(io.LimitReader(p.stdin, maxInput+1))
	if err == nil && len(text) > maxInput {
		err = fmt.Errorf("longer than %d bytes", maxInput)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("standard input: %w", err)
	case len(bytes.TrimSpace(text)) == 0:
		return nil, usagef("standard input is empty")
	}
	return text, nil
}

// words are the arguments in turn, and for "-" the lines of standard input,
// trimmed and without the empty ones. Standard input without a line is wrong use.
func (p *program) words(args []string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, arg := range args {
			if arg != "-" {
				if !yield(arg, nil) {
					return
				}
				continue
			}
			if !p.lines(yield) {
				return
			}
		}
	}
}

func (p *program) lines(yield func(string, error) bool) bool {
	if p.read {
		return yield("", usagef("standard input is asked for twice"))
	}
	p.read = true
	in := bufio.NewScanner(flusher{p})
	n, found := 0, false
	for in.Scan() {
		n++
		if line := strings.TrimSpace(in.Text()); line != "" {
			if found = true; !yield(line, nil) {
				return false
			}
		}
	}
	err := in.Err()
	switch {
	case errors.Is(err, errOutput): // it is not the input's
	case errors.Is(err, bufio.ErrTooLong):
		err = fmt.Errorf("standard input: line %d is longer than %d bytes", n+1, bufio.MaxScanTokenSize)
	case err != nil:
		err = fmt.Errorf("standard input: %w", err)
	case !found:
		err = usagef("standard input is empty")
	}
	return err == nil || yield("", err)
}

// errInterrupted ends a wait for input.
var errInterrupted = errors.New("interrupted")

// interruptible is an input whose reader need not wait when ctx has ended, as a
// terminal's would at Ctrl-C.
type interruptible struct {
	ctx context.Context
	in  io.Reader
}

func (i interruptible) Read(b []byte) (int, error) {
	type result struct {
		n   int
		err error
	}
	own, read := make([]byte, len(b)), make(chan result, 1)
	go func() {
		n, err := i.in.Read(own)
		read <- result{n, err}
	}()
	select {
	case r := <-read:
		return copy(b, own[:r.n]), r.err
	case <-i.ctx.Done():
		return 0, errInterrupted
	}
}

// flusher reads standard input, and shows what is printed so far before it waits
// for more.
type flusher struct{ p *program }

func (f flusher) Read(b []byte) (int, error) {
	if f.p.beforeWait != nil {
		f.p.beforeWait()
	}
	if f.p.out.Flush() != nil {
		return 0, errOutput
	}
	return f.p.stdin.Read(b)
}
