package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"

	"github.com/shardkey/shardkey/cmd/shardkey/internal/textfile"
)

const stdinName = "<stdin>"

// maxInput is the largest standard input that readAll accepts, in bytes.
const maxInput = 64 << 20

// isPiped reports whether standard input is a pipe or a file, not a terminal or /dev/null.
func isPiped(stdin *os.File) bool {
	info, err := stdin.Stat()
	return err == nil && (info.Mode().IsRegular() || info.Mode()&os.ModeNamedPipe != 0)
}

func (p *program) arguments(args []string) []string {
	if len(args) == 0 && p.piped {
		return []string{"-"}
	}
	return args
}

func (p *program) readOnce() (io.Reader, error) {
	if p.read {
		return nil, usagef("standard input can be read only once")
	}
	p.read = true
	return p.stdin, nil
}

var errNoInput = usagef("standard input is empty")

func (p *program) readAll() ([]byte, error) {
	stdin, err := p.readOnce()
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(stdin, maxInput+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("standard input: %w", err)
	case len(content) > maxInput:
		return nil, fmt.Errorf("standard input: longer than %d bytes", maxInput)
	}
	content, err = textfile.Text(content)
	switch {
	case err != nil:
		return nil, fmt.Errorf("standard input: %w", err)
	case len(bytes.TrimSpace(content)) == 0:
		return nil, errNoInput
	}
	return content, nil
}

// words yields the arguments. For the argument "-" it yields the lines of standard input,
// trimmed, except empty lines.
func (p *program) words(args []string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for _, arg := range args {
			if arg == "-" && !p.lines(yield) || arg != "-" && !yield(arg, nil) {
				return
			}
		}
	}
}

func (p *program) lines(yield func(string, error) bool) bool {
	if _, err := p.readOnce(); err != nil {
		return yield("", err)
	}
	in := bufio.NewScanner(flusher{p})
	n, found := 0, false
	for ; in.Scan(); n++ {
		if line := strings.TrimSpace(in.Text()); line != "" {
			if found = true; !yield(line, nil) {
				return false
			}
		}
	}
	err := in.Err()
	switch {
	case errors.Is(err, errOutput): // a failed write, not a failed read
	case errors.Is(err, bufio.ErrTooLong):
		err = fmt.Errorf("standard input: line %d is longer than %d bytes", n+1, bufio.MaxScanTokenSize)
	case err != nil:
		err = fmt.Errorf("standard input: %w", err)
	case !found:
		err = errNoInput
	}
	return err == nil || yield("", err)
}

// flusher reads standard input. Before each read it shows the results so far.
type flusher struct{ p *program }

func (f flusher) Read(b []byte) (int, error) {
	f.p.beforeWait()
	if f.p.out.Flush() != nil {
		return 0, errOutput
	}
	return f.p.stdin.Read(b)
}
