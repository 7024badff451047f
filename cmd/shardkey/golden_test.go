package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/shardkey/shardkey/cmd/shardkey/internal/lint"
	"github.com/shardkey/shardkey/internal/test/must"
	"github.com/shardkey/shardkey/spi"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write the output to testdata/*.golden and docs/reference/cli.md")

// still is a clock that stands still, so that each run generates the same first keys.
type still struct{ now time.Time }

func (c *still) Now() time.Time { return c.now }

func (c *still) Sleep(context.Context, time.Duration) error { return fmt.Errorf("nothing sleeps here") }

func newStill() spi.Clock { return &still{time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func systemClock() spi.Clock { return spi.SystemClock }

// session runs the commands in text, the lines that begin with "$ ", and returns them with
// their output, as a terminal shows it. An exit status other than 0 follows as a line. The
// other lines of text are earlier output.
func session(t *testing.T, text string, newClock func() spi.Clock) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(text) {
		command, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "$ shardkey")
		if !ok {
			continue
		}
		fmt.Fprintf(&b, "$ shardkey%s\n", command)
		if status := pipeline(t, &b, command, newClock()); status != 0 {
			fmt.Fprintf(&b, "[exit status %d]\n", status)
		}
	}
	wd := must.Get(os.Getwd())(t)
	return strings.ReplaceAll(progressLine.ReplaceAllString(b.String(), ""), wd, "/home/me")
}

// progressLine matches what a command prints only if it takes long.
var progressLine = regexp.MustCompile(`(?m)^shardkey: (?:listing packages|loading \d+ packages)\n`)

// pipeline runs commands, each with the output of the previous one as its input. The first
// reads a file (< FILE), or a statement if its arguments request standard input.
func pipeline(t *testing.T, b *strings.Builder, line string, clock spi.Clock) (status int) {
	t.Helper()
	input, piped := "INSERT INTO t_order (user_id) VALUES (1)\n", false
	for command := range strings.SplitSeq(line, " | shardkey") {
		words := split(t, command)
		if n := len(words); n > 1 && words[n-2] == "<" {
			content := must.Get(os.ReadFile(words[n-1]))(t)
			words, input, piped = words[:n-2], string(content), true
		}
		var out bytes.Buffer // standard output and standard error, in order
		p := newProgram(strings.NewReader(input), &out, &out, clock)
		p.piped = piped
		status = p.run(t.Context(), words)
		input, piped = out.String(), true
	}
	b.WriteString(input)
	return status
}

var shellWord = regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`)

// split splits a command line like a shell. It supports the quoting of the sessions.
func split(t *testing.T, line string) (words []string) {
	t.Helper()
	for _, word := range shellWord.FindAllString(line, -1) {
		if n := len(word); n > 1 && (word[0] == '\'' || word[0] == '"') && word[n-1] == word[0] {
			word = word[1 : n-1]
		}
		words = append(words, word)
	}
	return words
}

func TestGolden(t *testing.T) {
	needsUnix(t)
	t.Setenv(ruleVariable, "")
	t.Setenv(dsnVariable, "")
	t.Setenv("GOWORK", "off") // the packages in testdata/lint/app are a module
	t.Setenv("GOFLAGS", "-mod=mod")
	withoutCompiler(t)
	writtenByOwner(t)
	files, err := filepath.Glob(filepath.Join("testdata", "*.golden"))
	if err != nil || len(files) != 10 {
		t.Fatalf("%d golden files, %v", len(files), err)
	}
	for _, file := range append(files, filepath.Join("testdata", "lint", "app", "lint.golden")) {
		t.Run(filepath.Base(filepath.Dir(file))+"/"+filepath.Base(file), func(t *testing.T) {
			t.Chdir(filepath.Dir(file))
			want := must.Get(os.ReadFile(filepath.Base(file)))(t)
			compare(t, filepath.Base(file), session(t, string(want), newStill), string(want))
		})
	}
}

// withoutCompiler lets the go command find no C compiler. It then leaves out files with cgo unless
// CGO_ENABLED is set.
func withoutCompiler(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	must.Do(t, os.Symlink(must.Get(exec.LookPath("go"))(t), filepath.Join(dir, "go")))
	t.Setenv("PATH", dir)
	for _, name := range []string{"CC", "CGO_ENABLED"} {
		t.Setenv(name, "") // the test restores it
		must.Do(t, os.Unsetenv(name))
	}
}

// writtenByOwner removes the permissions of others from rule files, since git checks them out with
// the user's umask, and check warns of them.
func writtenByOwner(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", "*.yaml"))
	for _, file := range files {
		err = errors.Join(err, os.Chmod(file, 0o644))
	}
	must.Do(t, err)
}

// needsUnix skips a test of output that has the paths and the errors of Unix.
func needsUnix(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the expected output has the paths and the errors of Unix")
	}
}

func compare(t *testing.T, file, have, want string) {
	t.Helper()
	if have == want {
		return
	}
	if *update {
		must.Do(t, os.WriteFile(file, []byte(have), 0o644))
		return
	}
	haveLines, wantLines := strings.Split(have, "\n"), strings.Split(want, "\n")
	for i, line := range haveLines {
		if i >= len(wantLines) || line != wantLines[i] {
			t.Fatalf("%s:%d\nhave: %s\nwant: %s\nif that is right: go test . -run 'Golden|Docs' -update", file, i+1, line, wantLines[min(i, len(wantLines)-1)])
		}
	}
	t.Fatalf("%s ends at line %d\nwant: more lines, or run go test . -run 'Golden|Docs' -update", file, len(haveLines))
}

// TestDocs_sessions runs the sessions in docs/reference/cli.md with the rule of that page.
func TestDocs_sessions(t *testing.T) {
	needsUnix(t)
	const fence = "```console\n"
	writtenByOwner(t)
	t.Chdir("testdata")
	t.Setenv(ruleVariable, "")
	file := filepath.Join("..", "..", "..", "docs", "reference", "cli.md")
	want := must.Get(os.ReadFile(file))(t)
	rule := must.Get(os.ReadFile("rule.yaml"))(t)
	if !bytes.Contains(want, rule) {
		t.Errorf("%s does not show testdata/rule.yaml as it is", file)
	}
	parts := strings.Split(string(want), fence)
	if len(parts) < 5 {
		t.Fatalf("%s shows %d sessions", file, len(parts)-1)
	}
	have := parts[0]
	for _, part := range parts[1:] {
		shown, rest, _ := strings.Cut(part, "```")
		have += fence + session(t, shown, newStill) + "```" + rest
	}
	compare(t, file, have, string(want))
}

// TestDocs_names looks for each command, flag and JSON field in docs/reference/cli.md.
func TestDocs_names(t *testing.T) {
	text := page(t, "docs/reference/cli.md")
	for _, c := range newProgram(nil, nil, nil, newStill()).rootCommand().Commands() {
		if !strings.Contains(text, "shardkey "+c.Name()) && !strings.Contains(text, "`"+c.Name()+"`") {
			t.Errorf("command %s is not documented", c.Name())
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && !regexp.MustCompile("[` ]--"+regexp.QuoteMeta(f.Name)+"[ `]").MatchString(text) {
				t.Errorf("%s: flag --%s is not documented", c.Name(), f.Name)
			}
		})
	}
	_, fields, _ := strings.Cut(text, "## JSON")
	for _, v := range []any{
		decodedKeys{}, decoded{}, guess{}, interval{}, checkedRules{}, checkedRule{}, component{}, checkedTable{}, problem{},
		planned{}, plannedInsert{}, planFinding{}, lintFindings{}, lint.Finding{}, lint.Summary{}, generatedKeys{}, workerStores{},
		workerStore{}, storeUser{}, workerIDRecord{}, doctorReport{}, newRule{}, version{},
	} {
		typ := reflect.TypeOf(v)
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			if name != "" && !strings.Contains(fields, "`"+name+"`") {
				t.Errorf("%s: the field %s is not documented", typ, name)
			}
		}
	}
}
