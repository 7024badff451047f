package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// verdict is what became of a mutant.
type verdict int

const (
	killed   verdict = iota // a test failed
	byTime                  // tests hang, and no other test fails
	survived                // all tests pass
	exempt                  // it was not tried
	broken                  // it cannot be applied, or does not compile
)

// outcome is a verdict with its reason: the test that failed, or what is wrong.
type outcome struct {
	verdict verdict
	why     string
	took    time.Duration
}

// runner tries mutants one after the other.
type runner struct {
	root    string
	dir     string // for its own files
	env     []string
	timeout time.Duration
	all     bool // run all tests of the packages
}

// hangs is how many tests that hang are left out in search of one that fails.
const hangs = 3

// try runs a mutant's tests over the source with the rule taken out.
func (r *runner) try(ctx context.Context, dir string, m mutant) (o outcome) {
	began := time.Now()
	defer func() { o.took = time.Since(began) }()
	if m.exempt != "" {
		return outcome{verdict: exempt, why: m.exempt}
	}
	changed, err := m.apply(r.root, dir)
	if err != nil {
		return outcome{verdict: broken, why: err.Error()}
	}
	overlay, err := r.overlay(changed)
	if err != nil {
		return outcome{verdict: broken, why: err.Error()}
	}
	var hang []string
	for range hangs {
		out, err := r.test(ctx, overlay, dir, m, hang)
		switch failed, running := failures(out), running(out); {
		case ctx.Err() != nil:
			return outcome{verdict: broken, why: ctx.Err().Error()}
		case len(failed) > 0:
			return outcome{verdict: killed, why: because(failed[0], hang)}
		case err == nil && len(hang) > 0:
			return outcome{verdict: byTime, why: strings.Join(hang, ", ")}
		case err == nil:
			return outcome{verdict: survived}
		case len(running) > 0:
			hang = append(hang, running...)
		case bytes.Contains(out, []byte("[build failed]")), bytes.Contains(out, []byte("[setup failed]")):
			return outcome{verdict: broken, why: "it does not compile:\n" + string(out)}
		default:
			return outcome{verdict: killed, why: because(crash(out), hang)}
		}
	}
	return outcome{verdict: byTime, why: strings.Join(hang, ", ")}
}

func because(test string, hang []string) string {
	if len(hang) > 0 {
		test += " (" + strings.Join(hang, ", ") + " hangs)"
	}
	return test
}

// overlay writes the changed file, and the file that has go test read it.
func (r *runner) overlay(m mutated) (string, error) {
	source := filepath.Join(r.dir, "mutated"+filepath.Ext(m.path))
	if err := os.WriteFile(source, m.text, 0o600); err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(r.root, m.path): source}})
	if err != nil {
		return "", err
	}
	name := filepath.Join(r.dir, "overlay.json")
	return name, os.WriteFile(name, replace, 0o600)
}

// test runs a mutant's tests but those to skip, until the first one fails. An
// overlay of "" leaves the source as it is.
func (r *runner) test(ctx context.Context, overlay, dir string, m mutant, skip []string) ([]byte, error) {
	args := []string{"test", "-count=1", "-vet=off", "-failfast", "-timeout", r.timeout.String()}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	if m.by != "" && !r.all {
		args = append(args, "-run", m.pattern())
	}
	if len(skip) > 0 {
		args = append(args, "-skip", "^("+strings.Join(skip, "|")+")$")
	}
	if m.pkg != "" {
		dir = m.pkg
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+dir)...)
	cmd.Dir, cmd.Env = r.root, r.env
	cmd.WaitDelay = 10 * time.Second
	return cmd.CombinedOutput()
}

var (
	failLine  = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)
	timedOut  = regexp.MustCompile(`(?m)^panic: test timed out after`)
	runLine   = regexp.MustCompile(`(?m)^\t\t?(Test\w+|Example\w*|Fuzz\w+)(?:/\S*)? \(`)
	crashLine = regexp.MustCompile(`(?m)^(?:panic|fatal error): .*`)
)

// failures are the tests that failed before the output ends, or before its tests
// were ended because of the time.
func failures(out []byte) (names []string) {
	for _, m := range failLine.FindAllSubmatch(out, -1) {
		names = append(names, string(m[1]))
	}
	return names
}

// running are the tests that ran when the time was over.
func running(out []byte) (names []string) {
	at := timedOut.FindIndex(out)
	if at == nil {
		return nil
	}
	for _, m := range runLine.FindAllSubmatch(out[at[0]:], -1) {
		if name := string(m[1]); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// crash is what the runtime said when it ended the tests.
func crash(out []byte) string {
	if line := crashLine.Find(out); line != nil {
		return string(line)
	}
	return "go test:\n" + string(out)
}

// check runs the tests of mutants over the source as it is: what fails there
// shows nothing about a mutant.
func (r runner) check(ctx context.Context, chosen []chosen) error {
	r.timeout *= 10 // for all tests of a package's mutants together
	type tests struct{ dir, by, pkg string }
	regexps := map[tests][]string{}
	var order []tests
	for _, c := range chosen {
		if c.mutant.exempt != "" {
			continue
		}
		key := tests{dir: c.dir, pkg: c.mutant.pkg}
		if r.all || c.mutant.by == "" {
			key.by = "all"
		}
		if regexps[key] == nil {
			order = append(order, key)
		}
		if !slices.Contains(regexps[key], c.mutant.by) {
			regexps[key] = append(regexps[key], c.mutant.by)
		}
	}
	for _, key := range order {
		m := mutant{pkg: key.pkg}
		if key.by == "" {
			m.by = strings.Join(regexps[key], "|")
		}
		if out, err := r.test(ctx, "", key.dir, m, nil); err != nil {
			return errors.Join(fmt.Errorf("%s: the tests do not pass without a mutant: %w\n%s", key.dir, err, out), ctx.Err())
		}
	}
	return nil
}
